import { Receipt } from 'mppx'
import { tempo } from 'mppx/client'
import { McpClient } from 'mppx/mcp/client'
import { createClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { tempo as tempoChain } from 'viem/tempo/chains'
import t from 'tap'
import { isJsonObject, type JsonObject } from '../../../../src/engine/base/json.ts'
import { callTool } from '../../../support/mcp.ts'
import { openMppService } from '../../../support/mpp.ts'
import { stockPayer, TEMPO_CHAIN } from '../../../support/tempo.ts'

const shop = await openMppService()
t.teardown(() => shop.close())
const tools = `${shop.url}/mcp/tools`
const account = privateKeyToAccount(await shop.chain.wallet())
const client = createClient({
  account,
  chain: { ...tempoChain, id: TEMPO_CHAIN },
  transport: http(shop.chain.rpcUrl),
})

interface Asked {
  readonly name: string
  readonly arguments: JsonObject
  readonly _meta?: JsonObject
}

/** `mppx` as it comes from the registry, around a client that keeps what it sends. */
function openClient() {
  const sent: JsonObject[] = []
  const plain = {
    callTool: async ({ name, arguments: args, _meta: meta = {} }: Asked) => {
      sent.push(meta)
      return (await callTool(tools, name, args, { meta })).whole
    },
  }
  const { callTool: pay } = McpClient.wrap(plain, {
    methods: [tempo.charge({ account, getClient: () => client })],
  })
  return { sent, pay: (args: JsonObject) => pay({ name: 'work', arguments: args }) }
}

async function transfers(): Promise<number> {
  return (await shop.chain.received(shop.recipient)).length
}

t.test('lets the stock MPP client pay for a tool once and get a receipt for its challenge', async (t) => {
  const before = await transfers()
  const { sent, pay } = openClient()
  const result = await pay({ n: 3 })
  t.match(result, { structuredContent: { endpoint: '/paid/work', n: 3, payer: account.address } })
  const [, paid] = sent
  const credential = paid?.['org.paymentauth/credential']
  t.ok(isJsonObject(credential) && isJsonObject(credential['challenge']))
  t.match(result.receipt, {
    status: 'success',
    method: 'tempo',
    reference: /^0x[0-9a-f]{64}$/,
    challengeId: /./,
  })
  t.ok(Receipt.Schema.safeParse(result.receipt).success)
  if (isJsonObject(credential) && isJsonObject(credential['challenge']))
    t.equal(result.receipt?.['challengeId' as keyof typeof result.receipt], credential['challenge']['id'])
  t.equal((await transfers()) - before, 1)

  await t.test('refuses the same credential for other arguments, uncharged', async (t) => {
    const other = await callTool(tools, 'work', { n: 4 }, { meta: paid ?? {} })
    t.ok(other.isError)
    t.match(other.content, { charged: /no|yes/ })
    t.equal((await transfers()) - before, 1)
  })
})

t.test('offers both protocols to an unpaid call, each where its clients look', async (t) => {
  const { content, meta } = await callTool(tools, 'work', { n: 5 })
  t.match(content, { x402Version: 2, code: 'payment_required' })
  t.match(meta, {
    'x402/error': { accepts: [{}] },
    'org.paymentauth/payment-required': {
      httpStatus: 402,
      challenges: [
        { method: 'tempo', intent: 'charge', request: { amount: '5000', recipient: shop.recipient } },
      ],
    },
  })
})

t.test(
  'accepts a credential of HTTP for the tool of the same operation, and refuses both at once',
  async (t) => {
    const before = await transfers()
    const payer = stockPayer(shop.chain.rpcUrl, account)
    const header = await payer.createCredential(await fetch(`${shop.url}/paid/work?n=6`))
    const credential: unknown = JSON.parse(
      Buffer.from(header.replace(/^Payment /, ''), 'base64url').toString('utf8'),
    )
    if (!isJsonObject(credential)) throw new Error('no credential')
    const both = { 'org.paymentauth/credential': credential, 'x402/payment': { x402Version: 2 } }
    const conflict = await callTool(tools, 'work', { n: 6 }, { meta: both })
    t.ok(conflict.isError)
    t.match(conflict.content, { code: 'multiple_payments', charged: 'no' })
    t.equal((await transfers()) - before, 0)
    const paid = await callTool(
      tools,
      'work',
      { n: 6 },
      { meta: { 'org.paymentauth/credential': credential } },
    )
    t.notOk(paid.isError, paid.text)
    t.match(paid.content, { n: 6, payer: account.address })
    t.equal((await transfers()) - before, 1)
    const broken = await callTool(tools, 'work', { n: 6 }, { meta: { 'org.paymentauth/credential': 'x' } })
    t.match(broken.content, { code: 'malformed_credential', charged: 'no' })
  },
)
