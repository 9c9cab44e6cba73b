import type { Address } from '../../address.ts'
import { isTransfer, type Transfer } from '../../chains/evm/logs.ts'
import {
  isHex,
  poll,
  word,
  isRevert,
  type Chain,
  type Clock,
  type TransactionReceipt,
} from '../../chains/evm/chain.ts'
import type { Refusal } from '../../errors.ts'
import type { PayerTransaction } from '../../ledger/payment-record.ts'
import { SETTLEMENT_FAILED, UNCONFIRMED, type Settlement } from '../protocol.ts'

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

/** What a buyer may have on its way to us at once, in one sequence of nonces. */
const MOST_AHEAD = 16n
/** The sequence without an order, for transactions that expire. */
const EXPIRING = 2n ** 256n - 1n
/** Tempo’s precompile for the sequences of an account, and its `getNonce(address,uint256)`. */
const NONCE_MANAGER = '0x4e4F4E4345000000000000000000000000000000'
const GET_NONCE = '0x89535803'

/**
 * A transaction waits for those before it in its sequence: one far ahead of its account would never be mined, after
 * the work was done. Nodes ignore the gap in simulations.
 */
export async function checkNonce(
  chain: Chain,
  { payer, nonce, nonceKey }: { readonly payer: Address; readonly nonce: bigint; readonly nonceKey: bigint },
): Promise<Refusal | undefined> {
  // Nothing can be missing before the first of a sequence.
  if (nonceKey === EXPIRING || nonce <= MOST_AHEAD) return undefined
  const call = `${GET_NONCE}${word(payer)}${word(nonceKey)}` as const
  const answer = await (nonceKey === 0n ? chain.nextNonce(payer) : chain.read(NONCE_MANAGER, call))
  if (answer.kind !== 'result' || answer.result === '0x') return UNAVAILABLE
  if (nonce <= BigInt(answer.result) + MOST_AHEAD) return undefined
  const detail = `the nonce of the transaction is more than ${MOST_AHEAD} ahead of its account`
  return { code: 'verification_failed', detail }
}

/**
 * Broadcasts and waits for the block. A refusal proves nothing: it may be the second answer to bytes that a proxy has sent
 * twice. The transaction’s validity ends soon, and blocks beyond it decide.
 */
export async function send(context: ChainContext, transfer: PayerTransfer): Promise<Settlement> {
  await broadcast(context, transfer)
  return wait(context, transfer)
}

/** Finds the outcome of a transaction that another attempt has sent, or was about to send. */
export async function resume(context: ChainContext, transfer: PayerTransfer): Promise<Settlement> {
  const seen = await findReceipt(context, transfer)
  if (seen !== undefined) return seen
  if (context.now() < transfer.validBefore) await broadcast(context, transfer)
  return wait(context, transfer)
}

async function broadcast({ chain }: ChainContext, { transaction: { raw } }: PayerTransfer): Promise<void> {
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
  return seen.result === null ? SETTLEMENT_FAILED : readReceipt(transfer, seen.result)
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
  { hash, succeeded, logs }: TransactionReceipt,
): Settlement {
  if (!succeeded || !logs.some((log) => isTransfer(log, expected))) return SETTLEMENT_FAILED
  const receipt = { transaction: hash, network, payer: expected.from, amount: expected.amount.toString() }
  return { kind: 'settled', receipt }
}
