import t from 'tap'
import { findTransfer } from '../../../../src/engine/x402/exact-evm/onchain-status.ts'
import { resume } from '../../../../src/engine/x402/exact-evm/own-settler.ts'
import { startBase } from '../../../support/base-chain.ts'
import { askNode, openRpcProxy, type StandIn } from '../../../support/rpc-proxy.ts'
import {
  authorize,
  newRecorder,
  openSettlementContext,
  openChainControl,
  recorded,
  settleOn,
  type QuickSettlementContext,
} from '../../../support/settlement-context.ts'
import { openTemporaryLedger } from '../../../support/temporary-ledger.ts'

const chain = await startBase()
t.teardown(() => chain.stop())
const ledger = await openTemporaryLedger(t)
const chainControl = openChainControl(chain)
const proxy = await openRpcProxy(chain.rpcUrl)
t.teardown(proxy.close)

const FAR = 64_060_588_800_000

/** A context that asks only a few times, so that a lagging node stays behind. */
async function openHasty(): Promise<QuickSettlementContext> {
  const context = await openSettlementContext(chain, { ledger, url: proxy.url })
  return { ...context, sleep: async () => context.wait(10_000) }
}

/** The questions by which an outcome is told; each may meet a node that is behind the others. */
const QUESTIONS = [
  'eth_getBlockByNumber',
  'eth_call',
  'eth_getTransactionCount',
  'eth_getTransactionReceipt',
  'eth_getLogs',
]

const choices = Array.from({ length: 2 ** QUESTIONS.length }, (_, mask) =>
  QUESTIONS.filter((_, place) => ((mask >> place) & 1) === 1),
)

const label = (methods: readonly string[]): string => methods.join(', ') || 'none'

t.test('reports the charge to the buyer although some nodes are behind', async (t) => {
  const direct = await openSettlementContext(chain, { ledger })
  const signed = await authorize(chain)
  const old = await chainControl.newest()
  const journal = newRecorder()
  t.match(await settleOn(direct, signed, journal), { kind: 'settled' })
  const transaction = recorded(journal)
  for (const methods of choices) {
    proxy.instead(behind(chain.rpcUrl, old, methods))
    const context = await openHasty()
    const { kind } = await resume(context, signed.expected, transaction, FAR, Date.now())
    t.not(kind, 'failed', `behind: ${label(methods)}`)
    // Whether the money has moved follows from the receipt alone, or from block, state and logs of the same moment.
    const receipt = !methods.includes('eth_getTransactionReceipt')
    if (receipt) t.equal(kind, 'settled', `behind: ${label(methods)}`)
  }
  t.equal(await chainControl.charges(signed), 1)
})

t.test('counts a stranger’s transaction although some nodes lack it', async (t) => {
  const signed = await authorize(chain)
  const old = await chainControl.newest()
  await chainControl.mined(chainControl.submit(signed))
  // The simulation has met a node that knows, or there would be nothing to find.
  for (const methods of choices.filter((each) => !each.includes('eth_call'))) {
    proxy.instead(behind(chain.rpcUrl, old, methods))
    const context = await openHasty()
    const journal = newRecorder()
    const { kind } = await settleOn(context, signed, journal)
    t.not(kind, 'failed', `behind: ${label(methods)}`)
    t.strictSame(journal.dispatches, [])
  }
  for (const methods of choices) {
    proxy.instead(behind(chain.rpcUrl, old, methods))
    const context = await openHasty()
    const { kind } = await findTransfer(context, signed.expected, FAR, Date.now())
    t.not(kind, 'failed', `behind: ${label(methods)}`)
  }
})

t.test('charges a transaction that a stranger has overtaken, although some nodes are behind', async (t) => {
  const direct = await openSettlementContext(chain, { ledger })
  const signed = await authorize(chain)
  const old = await chainControl.newest()
  await chainControl.automine('off')
  const journal = newRecorder()
  const settling = settleOn(direct, signed, journal)
  while (journal.dispatches.length === 0) await direct.sleep(0)
  const theirs = await chainControl.submit(signed)
  await chainControl.automine('on')
  await chainControl.mine()
  // The clock of the context may have run out by now; what happened is the same.
  t.not((await settling).kind, 'failed')
  for (const methods of choices) {
    proxy.instead(behind(chain.rpcUrl, old, methods))
    const context = await openHasty()
    const settlement = await resume(context, signed.expected, recorded(journal), FAR, Date.now())
    t.not(settlement.kind, 'failed', `behind: ${label(methods)}`)
    if (methods.length === 0) t.match(settlement, { receipt: { transaction: theirs } })
  }
  t.equal(await chainControl.charges(signed), 1)
})

/**
 * A node that has not got further than one block, instead of one that has: for `methods`, as when one address leads
 * to several nodes.
 */
function behind(node: string, block: number, methods: readonly string[]): StandIn {
  const at = `0x${block.toString(16)}`
  const isAhead = (name: unknown): boolean =>
    typeof name === 'string' && name.startsWith('0x') && Number(name) > block
  const inTime = (name: unknown): unknown => (name === 'latest' || name === 'pending' ? at : name)
  return async (method, params) => {
    if (!methods.includes(method)) return undefined
    const [first, second] = params
    switch (method) {
      case 'eth_blockNumber':
        return { result: at }
      case 'eth_getBlockByNumber':
        return isAhead(first) ? { result: null } : askNode(node, method, [inTime(first), second])
      case 'eth_call':
      case 'eth_getTransactionCount':
        return isAhead(second)
          ? { error: { code: -32000, message: 'header not found' } }
          : askNode(node, method, [first, inTime(second)])
      case 'eth_getTransactionReceipt': {
        const answer = await askNode(node, method, params)
        return isAhead(answer.result?.['blockNumber']) ? { result: null } : answer
      }
      case 'eth_getLogs': {
        const filter = first as { fromBlock: string; toBlock: string }
        if (isAhead(filter.fromBlock)) return { result: [] }
        return askNode(node, method, [{ ...filter, toBlock: isAhead(filter.toBlock) ? at : filter.toBlock }])
      }
      default:
        return undefined
    }
  }
}
