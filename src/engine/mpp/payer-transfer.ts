import type { Address } from '../base/address.ts'
import { blockOf } from '../chains/evm/finality.ts'
import { isTransfer, type Transfer } from '../chains/evm/transfer-log.ts'
import { isHex, type Chain, type TransactionReceipt } from '../chains/evm/chain.ts'
import { isRevert } from '../chains/evm/json-rpc.ts'
import { poll, type Clock } from '../base/poll.ts'
import type { Refusal } from '../base/errors.ts'
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

/**
 * Simulates the transfer alone. mppx lets the node simulate the whole transaction, including fee and validity, but
 * not every node runs the inner calls in a simulation: anvil does not.
 */
export async function simulateTransfer(
  chain: Chain,
  { from, to, data }: { readonly from: Address; readonly to: Address; readonly data: `0x${string}` },
): Promise<Refusal | undefined> {
  const answer = await chain.call(to, data, { from })
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
  if (seen !== undefined) return seen
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
  const look = async (): Promise<Settlement | undefined> =>
    (await findReceipt(context, transfer)) ?? (await failExpired(context, transfer))
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

/** How it ended, if it is in a block. */
export async function findReceipt(
  { chain }: ChainContext,
  transfer: PayerTransfer,
): Promise<Settlement | undefined> {
  const seen = await chain.receipt(transfer.transaction.hash)
  return seen.kind === 'result' && seen.result !== null ? readReceipt(transfer, seen.result) : undefined
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
