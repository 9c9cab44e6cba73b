import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { createPublicClient, http } from 'viem'
import {
  channelClient,
  contractReader,
  handmade,
  openChannelShop,
  send,
  type PermitDepositFaults,
} from '../../../support/channels.ts'
import {
  addressOf,
  encode,
  randomKey,
  readHeader,
  type Challenge,
  type Hex,
} from '../../../support/payment.ts'
import { base } from '../../../support/base-chain.ts'
import { until } from '../../../support/until.ts'

t.setTimeout(240_000)

const CATALOG = fileURLToPath(new URL('../../../fixtures/channels/permits.yaml', import.meta.url))
const MUCH = 2n ** 255n
const SOMEBODY: Hex = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'

const shop = await openChannelShop({ CATALOG })
t.teardown(() => shop.close())
const contract = contractReader(shop.chain.rpcUrl)
const chain = createPublicClient({ chain: base, transport: http(shop.chain.rpcUrl) })
const work = `${shop.url}/paid/work`

/** A new wallet with tokens, all of which Permit2 may move. */
async function approved(atomic?: bigint): Promise<Hex> {
  const key = await shop.wallet(atomic)
  await shop.onchain.approvePermit2(addressOf(key), MUCH)
  return key
}

function errorOf(response: Response): string | undefined {
  const { error } = readHeader(response, 'payment-required') as unknown as Challenge & { error?: string }
  return error
}

/** Gas of the transaction of an answer with a deposit. */
async function gasOf(response: Response): Promise<bigint> {
  const { transaction } = readHeader(response, 'payment-response') as { transaction: Hex }
  return (await chain.getTransactionReceipt({ hash: transaction })).gasUsed
}

t.test('takes a deposit by Permit2 of the client of the SDK, and then its vouchers', async (t) => {
  const key = await approved()
  const buyer = channelClient(key, shop.chain.rpcUrl)
  for (const n of [1, 2, 3]) {
    const response = await buyer.fetch(`${work}?n=${n}`)
    t.equal(response.status, 200, response.statusText)
    const extra = { chargedAmount: '1000', channelState: { chargedCumulativeAmount: `${n}000` } }
    t.match(readHeader(response, 'payment-response'), { extra, amount: n === 1 ? '100000' : '' })
    if (n === 1) t.comment(`gas: ${await gasOf(response)}`)
    t.match(await response.json(), { n, payer: addressOf(key) })
  }
  const { id } = await handmade(shop, key)
  t.strictSame(await contract.channel(id), { balance: 100_000n, claimed: 0n })
  t.match(await buyer.scheme.refund(work), { success: true, amount: '97000' })
})

t.test('sends the approval of a wallet without gas along', async (t) => {
  const key = await shop.wallet()
  const response = await channelClient(key, shop.chain.rpcUrl).fetch(work)
  t.equal(response.status, 200, response.statusText)
  t.comment(`gas: ${await gasOf(response)}`)
  const { id } = await handmade(shop, key)
  t.equal((await contract.channel(id)).balance, 100_000n)
  t.equal(await shop.onchain.permit2Allowance(addressOf(key)), 0n, 'for this deposit, and no more')
})

t.test('sells for a token without EIP-3009', async (t) => {
  const IMPLEMENTATION: Hex = '0x000000000000000000000000000000000003009a'
  const code = await chain.getCode({ address: IMPLEMENTATION })
  const receive = '88b7ab63'
  if (code === undefined || !code.includes(receive)) throw new Error('the token has no such function')
  await shop.chain.setCode(IMPLEMENTATION, `0x${code.slice(2).replaceAll(receive, '00000000')}`)
  t.teardown(() => shop.chain.setCode(IMPLEMENTATION, code))
  const key = await approved()
  const channel = await handmade(shop, key)
  const refused = await send(shop, '/paid/work', await channel.deposit(1000, 100_000))
  t.equal(errorOf(refused), 'invalid_batch_settlement_evm_deposit_simulation_failed')
  const response = await channelClient(key, shop.chain.rpcUrl).fetch(work)
  t.equal(response.status, 200, await response.text())
})

t.test('takes deposits by EIP-3009 too', async (t) => {
  const channel = await handmade(shop, await shop.wallet())
  t.equal((await send(shop, '/paid/work', await channel.deposit(1000, 100_000))).status, 200)
})

t.test('refuses permits that move no money into the channel, before any work', async (t) => {
  const now = BigInt(Math.floor(Date.now() / 1000))
  const used = BigInt(`0x${'07'.repeat(32)}`)
  const failed = 'invalid_batch_settlement_evm_deposit_simulation_failed'
  const faults: readonly [string, PermitDepositFaults, string][] = [
    ['of another key', { key: randomKey() }, failed],
    ['for another channel', { channelId: `0x${'ab'.repeat(32)}` }, failed],
    ['for another spender', { spender: SOMEBODY }, failed],
    ['of another token', { token: SOMEBODY }, failed],
    ['of another amount', { amount: 99_999 }, failed],
    ['on another chain', { chainId: 1 }, failed],
    ['that has ended', { deadline: now - 1n }, 'deadline_too_short'],
    ['that ends soon', { deadline: now + 30n }, 'deadline_too_short'],
  ]
  const key = await approved()
  const channel = await handmade(shop, key)
  const runs = shop.upstream.runs()
  const sent = (): number => shop.node.calls().filter((method) => method === 'eth_sendRawTransaction').length
  const before = sent()
  for (const [name, fault, code] of faults) {
    const response = await send(shop, '/paid/work', await channel.permit(1000, 100_000, fault))
    t.equal(response.status, 402, name)
    t.equal(errorOf(response), code, name)
  }
  const small = await send(shop, '/paid/work', await channel.permit(1000, 99_999))
  t.equal(errorOf(small), 'invalid_batch_settlement_evm_deposit_below_min_deposit')
  const poor = await handmade(shop, await approved(50_000n))
  const unfunded = await send(shop, '/paid/work', await poor.permit(1000, 100_000))
  t.equal(errorOf(unfunded), 'invalid_batch_settlement_evm_insufficient_balance')
  const unapproved = await handmade(shop, await shop.wallet())
  const refused = await send(shop, '/paid/work', await unapproved.permit(1000, 100_000))
  t.equal(errorOf(refused), 'permit2_allowance_required')
  await shop.onchain.cancelPermit(addressOf(key), used)
  const canceled = await send(shop, '/paid/work', await channel.permit(1000, 100_000, { nonce: used }))
  t.equal(canceled.status, 402, 'its nonce is canceled')
  t.equal(shop.upstream.runs(), runs)
  t.equal(sent(), before, 'nothing is sent for them')
  t.equal((await contract.channel(channel.id)).balance, 0n)
})

t.test('refuses an approval that is not one for the deposit', async (t) => {
  const bends: readonly [object, string][] = [
    [{ amount: '5' }, 'permit2_allowance_required'],
    [{ spender: SOMEBODY }, 'permit2_allowance_required'],
    [{ deadline: '1' }, 'deadline_too_short'],
    [{ signature: `0x${'11'.repeat(64)}1b` }, 'permit2_allowance_required'],
    [{ signature: '0x11' }, 'invalid_payload'],
  ]
  for (const [bend, code] of bends) {
    const said: (string | undefined)[] = []
    const transport: typeof fetch = async (input, init) => {
      const request = new Request(input, init)
      const header = request.headers.get('payment-signature')
      if (header !== null) request.headers.set('payment-signature', bent(header, bend))
      const response = await fetch(request)
      if (header !== null) said.push(await codeOf(response.clone()))
      return response
    }
    await channelClient(await shop.wallet(), shop.chain.rpcUrl, transport)
      .fetch(work)
      .catch(() => undefined)
    t.equal(said[0], code, JSON.stringify(bend))
  }
})

function bent(header: string, bend: object): string {
  const payment = JSON.parse(Buffer.from(header, 'base64').toString())
  Object.assign(payment.extensions.eip2612GasSponsoring.info, bend)
  return encode(payment)
}

async function codeOf(response: Response): Promise<string | undefined> {
  const { code } = (await response.json()) as { code?: string }
  return code
}

t.test(
  'takes the payer of a permit for the payer of the calls, no matter who signs the vouchers',
  async (t) => {
    const [payer, key] = [await approved(), randomKey()]
    const channel = await handmade(shop, key, '/paid/work', {
      payer: addressOf(payer),
      payerAuthorizer: addressOf(key),
    })
    const forged = await send(shop, '/paid/work', await channel.permit(1000, 100_000))
    t.equal(forged.status, 402, 'the key of the vouchers has signed it')
    const opened = await send(shop, '/paid/work?n=1', await channel.permit(1000, 100_000, { key: payer }))
    t.match(await opened.json(), { n: 1, payer: addressOf(payer) })
    const next = await send(shop, '/paid/work?n=2', await channel.voucher(2000))
    t.match(await next.json(), { n: 2, payer: addressOf(payer) })
  },
)

t.test('takes payments for offers with another least deposit, and another way to make one', async (t) => {
  const older = await handmade(shop, await approved())
  const folder = t.testdir({
    'catalog.yaml': readFileSync(CATALOG, 'utf8').replace(
      'least_deposit: 0.1, deposit_by: permit2',
      'least_deposit: 0.05',
    ),
  })
  const server = await shop.branch({ CATALOG: join(folder, 'catalog.yaml') })
  const newer = await handmade({ ...shop, url: server.url }, await approved())
  t.equal((await send(server, '/paid/work?n=1', await older.permit(1000, 50_000))).status, 200)
  t.equal((await send(shop, '/paid/work?n=1', await newer.deposit(1000, 100_000))).status, 200)
  t.equal((await send(shop, '/paid/work?n=2', await newer.voucher(2000))).status, 200)
  t.equal((await send(server, '/paid/work?n=2', await older.voucher(2000))).status, 200)
  await server.stop()
})

t.test('goes on with a deposit that has landed before its process died', async (t) => {
  const channel = await handmade(shop, await approved())
  const header = await channel.permit(1000, 100_000)
  const killed = new Promise<void>((resolve) => {
    let isSent = false
    shop.node.onCall(async (method) => {
      if (method === 'eth_sendRawTransaction') isSent = true
      if (!isSent || method !== 'eth_getTransactionReceipt') return
      shop.node.onCall(async () => {})
      shop.server.process.kill('SIGKILL')
      resolve()
      throw new Error('nobody learns of it')
    })
  })
  await send(shop, '/paid/work?n=1', header).catch(() => undefined)
  await killed
  t.equal((await contract.channel(channel.id)).balance, 100_000n)
  await shop.restart()
  const again = await send(shop, '/paid/work?n=1', header)
  t.equal(again.status, 200, 'the same deposit pays for the call')
  t.match(await again.json(), { n: 1 })
  t.equal((await contract.channel(channel.id)).balance, 100_000n, 'and is taken once')
  t.equal((await send(shop, '/paid/work?n=2', await channel.voucher(2000))).status, 200)
})

t.test('sends a deposit again that a reorganization has undone', async (t) => {
  const channel = await handmade(shop, await approved())
  t.equal((await send(shop, '/paid/work?n=1', await channel.permit(1000, 100_000))).status, 200)
  await shop.onchain.undo(1)
  t.equal((await contract.channel(channel.id)).balance, 0n)
  await shop.server.said(/a reorganization has undone the deposit/)
  await until('it is there again', async () => {
    await shop.onchain.mine()
    return (await contract.channel(channel.id)).balance === 100_000n
  })
  t.equal((await send(shop, '/paid/work?n=2', await channel.voucher(2000))).status, 200)
})
