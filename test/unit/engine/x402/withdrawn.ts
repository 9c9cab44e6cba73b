import t from 'tap'
import { CANNOT_LOOK } from '../../../../src/engine/chains/evm/finality.ts'
import { encodeAbiParameters, encodeEventTopics, parseAbi } from 'viem'
import type { PaymentRecord } from '../../../../src/engine/ledger/payment-record.ts'
import { Chain } from '../../../../src/engine/chains/evm/chain.ts'
import { createFacilitatorSettler } from '../../../../src/engine/x402/exact-evm/facilitator-settler.ts'
import { exactScheme } from '../../../../src/engine/x402/exact-evm/exact.ts'
import { createX402 } from '../../../../src/engine/x402/x402.ts'
import type { Settler } from '../../../../src/engine/x402/exact-evm/settler.ts'
import { makeRecord } from '../../../support/payment-records.ts'
import { challengeIn, encode, randomKey, sign } from '../../../support/payment.ts'
import {
  BASE_URL,
  networkNamed,
  paidRoutes,
  PAY_TO,
  quietX402,
  shippedCatalog,
} from '../../../support/shipped-catalog.ts'
import { fixedPriceOf } from '../../../support/catalogs.ts'

const catalog = shippedCatalog()
const network = networkNamed('base')
const token = network.token.address
const [route] = paidRoutes(catalog)
if (route === undefined) throw new Error('no route')
const resource = `${BASE_URL}${route.path}`
const price = fixedPriceOf(route)
const offer = { endpoint: route, resource, scope: 'none', price }
const PAYER = '0x52908400098527886E0F7030069857D2E4169EE7'
const NONCE = `0x${'ab'.repeat(32)}` as const
const HASH = `0x${'cd'.repeat(32)}` as const
const EVENTS = parseAbi([
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
])

function logsOf(to: `0x${string}`) {
  const moved = encodeEventTopics({ abi: EVENTS, eventName: 'Transfer', args: { from: PAYER, to } })
  const used = encodeEventTopics({
    abi: EVENTS,
    eventName: 'AuthorizationUsed',
    args: { authorizer: PAYER, nonce: NONCE },
  })
  const data = encodeAbiParameters([{ type: 'uint256' }], [5000n])
  // In the order the token writes them.
  return [
    { address: token, topics: used, data: '0x', transactionHash: HASH, blockNumber: '0x10', logIndex: '0x0' },
    { address: token, topics: moved, data, transactionHash: HASH, blockNumber: '0x10', logIndex: '0x1' },
  ]
}

/** A node on which somebody else has carried the authorization out. */
function nodeWith(to: `0x${string}`): typeof fetch {
  return async (_, init) => {
    const { id, method } = JSON.parse(typeof init?.body === 'string' ? init.body : '{}') as {
      id: number
      method: string
    }
    const receipt = { status: '0x1', transactionHash: HASH, blockNumber: '0x10', logs: logsOf(to) }
    const answers: Readonly<Record<string, unknown>> = {
      eth_getBlockByNumber: { number: '0x10', timestamp: '0x1', baseFeePerGas: '0x1' },
      eth_call: `0x${'1'.padStart(64, '0')}`,
      eth_getLogs: [logsOf(to)[0]],
      eth_getTransactionReceipt: receipt,
    }
    return Response.json({ jsonrpc: '2.0', id, result: answers[method] })
  }
}

function reachableOnly(node: typeof fetch) {
  const reader = {
    chain: new Chain('http://node.example', node),
    networkId: network.id,
    limits: network.limits,
  }
  const settler = async (): Promise<Settler> =>
    createFacilitatorSettler({
      networkId: network.id,
      facilitators: [],
      reader,
      listings: { note: async () => undefined },
      now: () => Date.now(),
      sleep: async () => undefined,
    })
  const lookAtBlocks = async () => CANNOT_LOOK
  const till = {
    network,
    payTo: PAY_TO,
    timeoutSeconds: 60,
    testnet: false,
    settler,
    own: undefined,
    theirs: undefined,
    lookAtBlocks,
  }
  const random = (bytes: number) => new Uint8Array(bytes)
  const schemes = [exactScheme({ offered: [], reachable: [till] })]
  return createX402({ service: catalog.service, baseUrl: BASE_URL, schemes, v1: true, random })
}

t.test('finds old payments on a withdrawn network, and refuses new ones', async (t) => {
  const x402 = reachableOnly(nodeWith(PAY_TO))
  const issued = quietX402(catalog, ['base'])
    .challenge(route)
    ?.issue({ resource, scope: 'none', error: 'payment_required' })
  const { payload } = await sign(challengeIn(issued), randomKey())
  const detection = x402.detect({ 'payment-signature': encode(payload) })
  t.equal(detection.kind, 'payment', 'so that the ledger is asked')
  if (detection.kind !== 'payment') return
  t.match(await detection.payment.verify(), { kind: 'verified' })
  t.match(detection.payment.check(offer, Date.now()), { code: 'no_matching_requirements' })
  t.equal(x402.challenge(route), undefined, 'and no new one is offered')
})

const unknown: PaymentRecord = {
  ...makeRecord(`x402:exact:${network.id}:${token}:${PAYER}:${NONCE}`),
  network: network.id,
  payee: PAY_TO,
  amount: '5000',
  state: 'unknown',
}

t.test('settles a payment whose money somebody else has moved', async (t) => {
  t.match(await reachableOnly(nodeWith(PAY_TO)).resolve(unknown), {
    kind: 'settled',
    receipt: { transaction: HASH, amount: '5000' },
  })
})

t.test('refuses a payment whose money went elsewhere', async (t) => {
  t.match(await reachableOnly(nodeWith(PAYER)).resolve(unknown), { kind: 'failed' })
})
