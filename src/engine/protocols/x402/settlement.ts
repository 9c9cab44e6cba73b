import { isAddress } from '../../address.ts'
import type { OwnTransaction } from '../../ledger/entry.ts'
import type { Journal, Settlement } from '../protocol.ts'
import type { TransactionReceipt } from '../evm/chain.ts'
import type { Bench } from './bench.ts'
import type { Authorization } from './payload.ts'
import { isKnown } from './signer.ts'
import { isUsed, simulate } from './simulation.ts'
import {
  AUTHORIZATION_CANCELED,
  AUTHORIZATION_USED,
  showsMovement,
  topic,
  transferCall,
  type Movement,
} from './token.ts'

/** Enough for a token transfer by signature on every network of the table; contract wallets verify in code of theirs. */
const GAS = 200_000n
const GAS_CONTRACT_WALLET = 600_000n

/** How long a broadcast transaction is waited for before the buyer is told to ask again. */
const PATIENCE_MS = 30_000
const FIRST_POLL_MS = 10
const LONGEST_POLL_MS = 1_000

/** How far back a transfer submitted by somebody else can lie: authorizations live for an hour at the most. */
const LOG_BLOCKS = 5_000n

/** Simulates once more, for the buyer’s funds may have moved while the handler ran; then sends and waits for the block. */
export async function settle(
  bench: Bench,
  movement: Movement,
  authorization: Authorization,
  signature: `0x${string}`,
  journal: Journal,
): Promise<Settlement> {
  const refusal = await simulate(bench, authorization, signature)
  if (refusal?.code === 'invalid_exact_evm_nonce_already_used') return findMovement(bench, movement)
  if (refusal !== undefined) return { kind: 'failed', refusal }
  const gas = signature.length === 132 ? GAS : GAS_CONTRACT_WALLET
  const sent = await bench.signer.send(movement.token, transferCall(authorization, signature), gas, journal)
  switch (sent.kind) {
    case 'unsent':
      return {
        kind: 'failed',
        refusal: { code: 'chain_unavailable', detail: `${sent.detail}; nothing was charged` },
      }
    case 'unknown':
      return { kind: 'unknown', detail: 'the network gave no answer after the payment was sent to it' }
    case 'sent':
      return conclude(bench, movement, sent.transaction)
  }
}

/** Finds out what became of a transaction that another attempt has sent, or was about to send. */
export async function resume(
  bench: Bench,
  movement: Movement,
  transaction: OwnTransaction,
  validBefore: number,
): Promise<Settlement> {
  const seen = await bench.chain.receipt(transaction.hash)
  if (seen.kind !== 'result') return UNCONFIRMED
  if (seen.result !== null) return judge(bench, movement, seen.result)
  const raw = transaction.raw
  if (raw !== undefined && isHexText(raw)) {
    const answer = await bench.chain.broadcast(raw)
    if (answer.kind === 'refused' && !isKnown(answer.message))
      return afterRefusal(bench, movement, transaction, validBefore)
  }
  return conclude(bench, movement, transaction)
}

/**
 * The node will not take the bytes again: they are mined already, their nonce was used for something else, or it has a
 * reason that passes. Only what can never happen any more is a failure.
 */
async function afterRefusal(
  bench: Bench,
  movement: Movement,
  transaction: OwnTransaction,
  validBefore: number,
): Promise<Settlement> {
  // Asked first: what is true of this block stays true, and a transfer mined later than it is found below.
  const hopeless = await isHopeless(bench, transaction, validBefore)
  const seen = await bench.chain.receipt(transaction.hash)
  if (seen.kind === 'result' && seen.result !== null) return judge(bench, movement, seen.result)
  const used = await findMovement(bench, movement)
  if (used.kind !== 'failed' || (hopeless && seen.kind === 'result')) return used
  return { kind: 'unknown', detail: 'the network knows neither the payment nor its failure yet' }
}

/** Whether the transaction can never carry the authorization out: its account nonce is spent, or the time is over. */
async function isHopeless(
  { chain }: Bench,
  { signer, nonce }: OwnTransaction,
  validBefore: number,
): Promise<boolean> {
  const [time, mined] = await Promise.all([
    chain.time(),
    isAddress(signer) ? chain.minedNonce(signer) : undefined,
  ])
  if (time.kind === 'result' && Number(time.result) * 1000 > validBefore) return true
  return mined?.kind === 'result' && mined.result > BigInt(nonce)
}

async function conclude(bench: Bench, movement: Movement, { hash }: OwnTransaction): Promise<Settlement> {
  const patience = bench.now() + PATIENCE_MS
  for (let wait = FIRST_POLL_MS; bench.now() < patience; wait = Math.min(wait * 1.5, LONGEST_POLL_MS)) {
    const seen = await bench.chain.receipt(hash)
    if (seen.kind === 'result' && seen.result !== null) return judge(bench, movement, seen.result)
    await bench.sleep(wait)
  }
  return { kind: 'unknown', detail: 'the network has not confirmed the payment yet' }
}

/**
 * The truth is the log of the authorization with its transfer, in any transaction, whoever has sent it: our own revert
 * may mean that somebody else was faster.
 */
async function judge(bench: Bench, movement: Movement, receipt: TransactionReceipt): Promise<Settlement> {
  if (receipt.succeeded && showsMovement(receipt.logs, movement))
    return settled(bench, movement, receipt.hash)
  return findMovement(bench, movement)
}

/** Whose transaction carried the authorization out; failed when none has, by what the chain shows now. */
export async function findMovement(bench: Bench, movement: Movement): Promise<Settlement> {
  const { chain } = bench
  const { token, from, nonce } = movement
  const head = await chain.blockNumber()
  if (head.kind !== 'result') return UNCONFIRMED
  const oldest = head.result > LOG_BLOCKS ? head.result - LOG_BLOCKS : 0n
  const found = await chain.logs(token, [AUTHORIZATION_USED, topic(from), nonce], oldest)
  if (found.kind !== 'result') return UNCONFIRMED
  const [log] = found.result
  if (log === undefined) return notCarriedOut(bench, movement, oldest)
  const receipt = await chain.receipt(log.transactionHash)
  if (receipt.kind !== 'result' || receipt.result === null) return UNCONFIRMED
  return showsMovement(receipt.result.logs, movement)
    ? settled(bench, movement, log.transactionHash)
    : failed()
}

/** No log shows its use: canceled, or never used, unless it was used longer ago than the logs were asked for. */
async function notCarriedOut(bench: Bench, movement: Movement, oldest: bigint): Promise<Settlement> {
  const used = await isUsed(bench.chain, movement)
  if (used === undefined) return UNCONFIRMED
  if (!used) return failed()
  const { token, from, nonce } = movement
  const canceled = await bench.chain.logs(token, [AUTHORIZATION_CANCELED, topic(from), nonce], oldest)
  return canceled.kind === 'result' && canceled.result.length > 0 ? failed() : UNCONFIRMED
}

const UNCONFIRMED: Settlement = { kind: 'unknown', detail: 'the network cannot confirm the payment now' }

function settled(bench: Bench, movement: Movement, transaction: string): Settlement {
  const receipt = {
    transaction,
    network: bench.networkId,
    payer: movement.from,
    amount: movement.value.toString(),
  }
  return { kind: 'settled', receipt }
}

function failed(): Settlement {
  return {
    kind: 'failed',
    refusal: { code: 'settlement_failed', detail: 'the transfer was not carried out; nothing was charged' },
  }
}

function isHexText(text: string): text is `0x${string}` {
  return /^0x[0-9a-fA-F]+$/.test(text)
}
