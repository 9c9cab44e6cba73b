import t, { type Test } from 'tap'
import { blockAt } from 'ratecard/chains/evm/block-at-time'
import { findTransfer, onchainStatus } from '../../../../src/engine/x402/exact-evm/onchain-status.ts'
import { startBase } from '../../../support/base-chain.ts'
import { askNode, type StandIn, openRpcProxy, type RpcProxy } from '../../../support/rpc-proxy.ts'
import { randomKey, type Hex } from '../../../support/payment.ts'
import {
  authorize,
  openSettlementContext,
  openChainControl,
  type QuickSettlementContext,
  type Signed,
} from '../../../support/settlement-context.ts'
import { openTemporaryLedger } from '../../../support/temporary-ledger.ts'

/** Blocks the chain seems to have for each it has, two seconds apart. */
const MAGNIFIED = 100
const SECONDS_PER_BLOCK = 2 * MAGNIFIED

const chain = await startBase()
t.teardown(() => chain.stop())
const ledger = await openTemporaryLedger(t)
const chainControl = openChainControl(chain)

const FAR = 64_060_588_800_000
const far = magnified(chain.rpcUrl)
/** As many hundreds of blocks, two seconds apart as on Base. */
const hundreds = (count: number): Promise<void> => chainControl.mine(count)

async function openFar(
  t: Test,
  before: StandIn = async () => undefined,
): Promise<{ readonly context: QuickSettlementContext; readonly proxy: RpcProxy }> {
  const proxy = await openRpcProxy(chain.rpcUrl)
  t.teardown(proxy.close)
  proxy.instead(async (method, params) => (await before(method, params)) ?? far(method, params))
  return { proxy, context: await openSettlementContext(chain, { ledger, url: proxy.url }) }
}

const asked = (proxy: RpcProxy, name: string): number =>
  proxy.calls().filter((method) => method === name).length

async function now(): Promise<number> {
  const { timestamp } = await chainControl.client.getBlock()
  return Number(timestamp) * 1000
}

// A chain of some nine hours: three payments, each used by a stranger soon after it came, and a canceled one.
await chainControl.client.setBlockTimestampInterval({ interval: SECONDS_PER_BLOCK })
await hundreds(30)
const validBefore = 10_000_000_000n
const signed = () => authorize(chain, randomKey(), { validBefore })
interface Past {
  readonly payment: Signed
  readonly came: number
  readonly transaction: string
}
const past = async (use: (payment: Signed) => Promise<Hex>): Promise<Past> => {
  const payment = await signed()
  const came = await now()
  const transaction = await chainControl.mined(use(payment))
  return { payment, came, transaction }
}
const ancient = await past(chainControl.submit)
await hundreds(70)
const canceled = await past(chainControl.cancel)
const old = await past(chainControl.submit)
await hundreds(60)
const recent = await past(chainControl.submit)
await hundreds(1)

const settledBy = (transaction: string) => ({ kind: 'settled', receipt: { transaction } })

t.test('finds a payment that a stranger has settled hours ago, by its time', async (t) => {
  for (const { payment, came, transaction } of [ancient, old, recent]) {
    const { context, proxy } = await openFar(t)
    t.match(await findTransfer(context, payment.expected, FAR, came), settledBy(transaction))
    t.ok(asked(proxy, 'eth_getLogs') <= 3, `${asked(proxy, 'eth_getLogs')} questions for logs`)
    t.ok(asked(proxy, 'eth_getBlockByNumber') <= 20, `${asked(proxy, 'eth_getBlockByNumber')} for blocks`)
  }
  const { context, proxy } = await openFar(t)
  await findTransfer(context, recent.payment.expected, FAR, recent.came)
  t.equal(asked(proxy, 'eth_getBlockByNumber'), 1, 'the newest blocks need no search')
})

t.test('reports a payment that was canceled hours ago as failed', async (t) => {
  const { context } = await openFar(t)
  t.match(await findTransfer(context, canceled.payment.expected, FAR, canceled.came), { kind: 'failed' })
})

function widthOf(filter: unknown): number {
  const { fromBlock, toBlock } = filter as { fromBlock: string; toBlock: string }
  return Number(toBlock) - Number(fromBlock) + 1
}

/** Words and codes in which providers refuse wide searches. */
const REFUSALS = [
  { code: -32602, message: 'range 4999 exceeds limit of 10' },
  { code: -32614, message: 'eth_getLogs is limited to a 5 range' },
  { code: -32600, message: 'You can make eth_getLogs requests with up to a 10 block range.' },
  { code: -32005, message: 'block range too large, max range: 10' },
]

t.test('does not report a payment as failed that is settled while the chain is asked', async (t) => {
  const { context } = await openFar(t)
  const payment = await signed()
  const came = await now()
  let transaction: Hex = '0x'
  const settledMeanwhile = async (): Promise<boolean> => {
    transaction = await chainControl.mined(chainControl.submit(payment))
    return true
  }
  t.equal(await onchainStatus(context, payment.expected, came, settledMeanwhile), undefined)
  t.match(await onchainStatus(context, payment.expected, came, () => true), settledBy(transaction))
})

t.test('searches few blocks at a time when the provider allows few', async (t) => {
  for (const error of REFUSALS) {
    const { context } = await openFar(t, async (method, [filter]) => {
      return method === 'eth_getLogs' && widthOf(filter) > 5 ? { error } : undefined
    })
    for (const { payment, came, transaction } of [ancient, recent])
      t.match(await findTransfer(context, payment.expected, FAR, came), settledBy(transaction), error.message)
  }
})

t.test('ends a hopeless search, and reports unknown', async (t) => {
  const { payment, came } = ancient
  const blind = { error: { code: -32601, message: 'the method eth_getLogs does not exist' } }
  const cases: Readonly<Record<string, StandIn>> = {
    'no logs for anybody': async (method) => (method === 'eth_getLogs' ? blind : undefined),
    'logs that are not kept': async (method) => (method === 'eth_getLogs' ? { result: [] } : undefined),
    'a payment that came after its use': async () => undefined,
    'logs of few blocks at once that are not kept': async (method, [filter]) => {
      if (method !== 'eth_getLogs') return undefined
      return widthOf(filter) > 5 ? { error: REFUSALS[0] } : { result: [] }
    },
  }
  for (const [name, before] of Object.entries(cases)) {
    const { context, proxy } = await openFar(t, before)
    const since = name.includes('came') ? await now() : came
    t.match(await findTransfer(context, payment.expected, FAR, since), { kind: 'unknown' }, name)
    t.ok(proxy.calls().length < 130, `${proxy.calls().length} calls: ${name}`)
  }
})

t.test('finds the block of a time closely', async (t) => {
  const { context } = await openFar(t)
  const newest = await context.chain.block('latest')
  if (newest.kind !== 'result') return t.fail('no block')
  const { number, timestamp } = newest.result
  const targets = [0n, 1n, 999n, 3_001n, number - 5_000n, number - 117n, number - 1n, number]
  for (const target of targets) {
    const block = await context.chain.block(target)
    if (block.kind !== 'result') return t.fail('no block')
    const found = await blockAt(context.chain, block.result.timestamp, newest.result)
    if (found === undefined) return t.fail('the chain was not asked')
    const age = block.result.timestamp - (await timeOf(context, found))
    t.ok(age >= 0n && age <= 100n, `${age} s older than block ${target}`)
  }
  t.equal(await blockAt(context.chain, timestamp + 100n, newest.result), number)
  t.equal(await blockAt(context.chain, 0n, newest.result), 0n, 'a time before the chain')
})

async function timeOf(context: QuickSettlementContext, number: bigint): Promise<bigint> {
  const block = await context.chain.block(number)
  return block.kind === 'result' ? block.result.timestamp : -1n
}

t.test('fails to find the block of a time when the node stops answering', async (t) => {
  const { context, proxy } = await openFar(t)
  const newest = await context.chain.block('latest')
  if (newest.kind !== 'result') return t.fail('no block')
  proxy.set('down')
  t.equal(await blockAt(context.chain, 1n, newest.result), undefined)
})

/** A chain of thousands of blocks out of one of dozens, which takes no hour to mine: the blocks between are empty. */
function magnified(node: string): StandIn {
  const up = (name: unknown): string => `0x${(Number(name) * MAGNIFIED).toString(16)}`
  const down = (name: unknown): string => `0x${Math.floor(Number(name) / MAGNIFIED).toString(16)}`
  const isNumber = (name: unknown): boolean => typeof name === 'string' && name.startsWith('0x')
  return async (method, params) => {
    const [first, second] = params
    switch (method) {
      case 'eth_blockNumber':
        return { result: up((await askNode(node, method, params)).result) }
      case 'eth_getBlockByNumber': {
        const { result } = await askNode(node, method, [isNumber(first) ? down(first) : first, second])
        const between = isNumber(first) ? Number(first) % MAGNIFIED : 0
        return {
          result: {
            ...result,
            number: isNumber(first) ? first : up(result?.['number']),
            timestamp: `0x${(Number(result?.['timestamp']) + between * 2).toString(16)}`,
          },
        }
      }
      case 'eth_call':
      case 'eth_getTransactionCount':
        return askNode(node, method, [first, isNumber(second) ? down(second) : second])
      case 'eth_getTransactionReceipt': {
        const { result } = await askNode(node, method, params)
        return { result: result && { ...result, blockNumber: up(result['blockNumber']) } }
      }
      case 'eth_getLogs': {
        const filter = first as { fromBlock: string; toBlock: string }
        const from = Math.ceil(Number(filter.fromBlock) / MAGNIFIED)
        const to = Math.floor(Number(filter.toBlock) / MAGNIFIED)
        if (from > to) return { result: [] }
        const span = { fromBlock: `0x${from.toString(16)}`, toBlock: `0x${to.toString(16)}` }
        return askNode(node, method, [{ ...filter, ...span }])
      }
      default:
        return undefined
    }
  }
}
