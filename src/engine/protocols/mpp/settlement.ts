import type { PayerTransaction } from '../../ledger/entry.ts'
import type { Chain, TransactionReceipt } from '../../chains/evm/rpc.ts'
import type { Settlement } from '../protocol.ts'
import { showsTransfer, type Transfer } from './transfer.ts'

export interface Bench {
  readonly chain: Chain
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** One transaction of a payer, and what it has to bring about. */
export interface Order {
  /** CAIP-2. */
  readonly network: string
  readonly transaction: PayerTransaction
  readonly transfer: Transfer
  /** Milliseconds since the epoch; no block at or after it can hold the transaction. */
  readonly validBefore: number
}

/** How long a broadcast transaction is waited for before the buyer is told to ask again. */
const PATIENCE_MS = 30_000
const FIRST_POLL_MS = 50
const LONGEST_POLL_MS = 1_000
/** How far a node may be behind the one that has told the time. */
const LAG_MS = 5_000

/**
 * Broadcasts and waits for the block. A refusal proves nothing: it may be the second answer to bytes that a proxy has sent
 * twice. The transaction’s validity ends soon, and blocks beyond it decide.
 */
export async function send(bench: Bench, order: Order): Promise<Settlement> {
  await broadcast(bench, order)
  return wait(bench, order)
}

/** Finds out what became of a transaction that another attempt has sent, or was about to send. */
export async function resume(bench: Bench, order: Order): Promise<Settlement> {
  const seen = await findReceipt(bench, order)
  if (seen !== undefined) return seen
  if (bench.now() < order.validBefore) await broadcast(bench, order)
  return wait(bench, order)
}

async function broadcast({ chain }: Bench, { transaction: { raw } }: Order): Promise<void> {
  if (raw !== undefined && isHexText(raw)) await chain.broadcast(raw)
}

async function wait(bench: Bench, order: Order): Promise<Settlement> {
  const patience = bench.now() + PATIENCE_MS
  for (let pause = FIRST_POLL_MS; bench.now() < patience; pause = Math.min(pause * 1.5, LONGEST_POLL_MS)) {
    const seen = (await findReceipt(bench, order)) ?? (await judgeExpired(bench, order))
    if (seen !== undefined) return seen
    await bench.sleep(pause)
  }
  return { kind: 'unknown', detail: 'the network has not confirmed the payment yet' }
}

/** Failed once the time in which it could be mined is over for every node; undefined before. */
async function judgeExpired(bench: Bench, order: Order): Promise<Settlement | undefined> {
  const end = order.validBefore + LAG_MS
  if (bench.now() < end) return undefined
  const newest = await bench.chain.block('latest')
  if (newest.kind !== 'result' || Number(newest.result.timestamp) * 1000 < end) return undefined
  // Asked after the time: a receipt that is missing now will be missing for ever.
  const seen = await bench.chain.receipt(order.transaction.hash)
  if (seen.kind !== 'result') return undefined
  return seen.result === null ? FAILED : judge(order, seen.result)
}

/** How it ended, if it is in a block. */
export async function findReceipt(bench: Bench, order: Order): Promise<Settlement | undefined> {
  const seen = await bench.chain.receipt(order.transaction.hash)
  return seen.kind === 'result' && seen.result !== null ? judge(order, seen.result) : undefined
}

function judge({ network, transfer }: Order, { hash, succeeded, logs }: TransactionReceipt): Settlement {
  if (!succeeded || !showsTransfer(logs, transfer)) return FAILED
  const receipt = { transaction: hash, network, payer: transfer.from, amount: transfer.amount.toString() }
  return { kind: 'settled', receipt }
}

export const FAILED: Settlement = {
  kind: 'failed',
  refusal: { code: 'settlement_failed', detail: 'the transfer was not carried out; nothing was charged' },
}

function isHexText(text: string): text is `0x${string}` {
  return /^0x[0-9a-fA-F]+$/.test(text)
}
