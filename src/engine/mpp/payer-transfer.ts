import { MPP_LATE_SETTLEMENT_MS } from '../base/money-times.ts'
import type { Address } from '../base/address.ts'
import { blockOf, isDeepEnough } from '../chains/evm/finality.ts'
import { isTransfer, type Transfer } from '../chains/evm/transfer-log.ts'
import { isHex, Chain, type TransactionReceipt } from '../chains/evm/chain.ts'
import { isRevert } from '../chains/evm/json-rpc.ts'
import { poll, type Clock } from '../base/poll.ts'
import { systemRuntime, type RpcTransport } from '../base/runtime.ts'
import type { Refusal } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { PayerTransaction } from '../ledger/payment-record.ts'
import { SETTLEMENT_FAILED, UNCONFIRMED, type Settlement } from '../payment/settlement.ts'

interface ChainContext extends Clock {
  readonly chain: Chain
}

/** One transaction of a payer, and the transfer it has to bring about. */
export interface PayerTransfer {
  /** CAIP-2. */
  readonly network: string
  readonly transaction: PayerTransaction
  readonly expected: Transfer & { readonly token: Address }
  /** Milliseconds since the epoch; no block at or after it can hold the transaction. */
  readonly validBefore: number
}

/** How long a broadcast transaction is awaited before the buyer is asked to try again. */
const PACE = { first: 50, factor: 1.5, longest: 1_000, patience: 30_000 }
/** How far a node may be behind the one that returned the time. */
const LAG_MS = 5_000

export const UNAVAILABLE: Refusal = {
  code: 'chain_unavailable',
  detail: 'the payment network cannot be reached now',
}

/** Messages about a transaction: Tempo nodes give the payer’s mistakes as internal errors too. */
const ABOUT_PAYMENT = /revert|range|transaction|nonce|valid_before|balance|funds/i

/** Error codes of a node that cannot answer now, and messages of one that lacks the block it is asked about. */
const PASSING: ReadonlySet<number> = new Set([-32002, -32005, -32016, 429])
const LOST_STATE = /(?:header|block|state) not (?:found|available)|unknown block|missing trie/i

export function openTempoChain(rpcUrl: string, caller: RpcTransport): Chain {
  return new Chain(rpcUrl, caller, systemRuntime.deadline, ABOUT_PAYMENT)
}

/** Lets the node carry the whole transaction out on trial, with its fee and its validity. */
export async function tryTransaction(chain: Chain, transaction: JsonObject): Promise<Refusal | undefined> {
  const answer = await chain.trial(transaction)
  if (answer.kind === 'result') return undefined
  if (answer.kind === 'unreachable' || PASSING.has(answer.code) || LOST_STATE.test(answer.message))
    return UNAVAILABLE
  const detail =
    'the network would not carry the transaction out: the payer needs the amount and the fee on top of it'
  return { code: 'verification_failed', detail }
}

/**
 * Simulates the transfer alone: not every node runs the inner calls of a transaction that it tries, anvil does not.
 */
export async function simulateTransfer(
  chain: Chain,
  { from, to, data }: { readonly from: Address; readonly to: Address; readonly data: `0x${string}` },
): Promise<Refusal | undefined> {
  const answer = await chain.callTogether(to, data, { from })
  if (answer.kind === 'result') return undefined
  if (!isRevert(answer)) return UNAVAILABLE
  const detail = 'the token would not carry the transfer out: the payer holds less of it, or it is paused'
  return { code: 'verification_failed', detail }
}

/**
 * Broadcasts and waits for the block. A refusal proves nothing: it may be the second answer to bytes that a proxy has sent
 * twice. The transaction’s validity ends soon, and blocks beyond it decide.
 */
export async function send(context: ChainContext, transfer: PayerTransfer): Promise<Settlement> {
  await broadcast(context, transfer.transaction)
  return wait(context, transfer)
}

/** Finds the outcome of a transaction that another attempt has sent, or was about to send. */
export async function resume(context: ChainContext, transfer: PayerTransfer): Promise<Settlement> {
  const seen = await findReceipt(context, transfer)
  if (seen !== undefined && seen.kind !== 'unknown') return seen
  if (context.now() < transfer.validBefore) await broadcast(context, transfer.transaction)
  return wait(context, transfer)
}

/** The same bytes are carried out once. */
export async function broadcast(
  { chain }: Pick<ChainContext, 'chain'>,
  { raw }: PayerTransaction,
): Promise<void> {
  if (isHex(raw)) await chain.broadcast(raw)
}

async function wait(context: ChainContext, transfer: PayerTransfer): Promise<Settlement> {
  let mined = false
  const look = async (): Promise<Settlement | undefined> => {
    const seen = await findReceipt(context, transfer)
    // A block that is undone takes its transactions with it, and not every node puts them back into its pool.
    if (mined && seen === undefined) await broadcast(context, transfer.transaction)
    mined = seen !== undefined
    return seen === undefined || seen.kind === 'unknown' ? failExpired(context, transfer) : seen
  }
  return (await poll(context, PACE, look)) ?? UNCONFIRMED
}

/** Failed once the time in which it could be mined is over for every node; undefined before. */
async function failExpired(
  { chain, now }: ChainContext,
  transfer: PayerTransfer,
): Promise<Settlement | undefined> {
  const end = transfer.validBefore + LAG_MS
  if (now() < end) return undefined
  const newest = await chain.block('latest')
  if (newest.kind !== 'result' || Number(newest.result.timestamp) * 1000 < end) return undefined
  // Asked after the time: a receipt that is missing now will be missing for ever.
  const seen = await chain.receipt(transfer.transaction.hash)
  if (seen.kind !== 'result') return undefined
  if (seen.result !== null) return readReceipt(transfer, seen.result)
  const { number: block, hash: blockHash } = newest.result
  return { ...SETTLEMENT_FAILED, ...blockOf({ block, blockHash }) }
}

/** How it ended, if it is in a block; unknown while that block does not count. */
export async function findReceipt(
  context: ChainContext,
  transfer: PayerTransfer,
): Promise<Settlement | undefined> {
  const seen = await context.chain.receipt(transfer.transaction.hash)
  if (seen.kind !== 'result' || seen.result === null) return undefined
  return (await isDeepEnough(context, seen.result, transfer.validBefore - MPP_LATE_SETTLEMENT_MS))
    ? readReceipt(transfer, seen.result)
    : UNCONFIRMED
}

function readReceipt(
  { network, expected }: PayerTransfer,
  { hash, succeeded, logs, ...seen }: TransactionReceipt,
): Settlement {
  if (!succeeded || !logs.some((log) => isTransfer(log, expected)))
    return { ...SETTLEMENT_FAILED, ...blockOf(seen) }
  const moved = { transaction: hash, network, payer: expected.from, amount: expected.amount.toString() }
  return { kind: 'settled', receipt: { ...moved, ...blockOf(seen) } }
}
