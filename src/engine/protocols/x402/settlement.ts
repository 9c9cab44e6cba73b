import type { Address } from '../../address.ts'
import type { ErrorCode } from '../../errors.ts'
import type { StoredTransaction } from '../../ledger/entry.ts'
import type { Journal, Refusal, Settlement } from '../protocol.ts'
import type { Chain, TransactionReceipt } from './chain.ts'
import type { Authorization } from './payload.ts'
import type { RpcAnswer } from './rpc.ts'
import { isKnown, type Signer } from './signer.ts'
import {
  AUTHORIZATION_USED,
  balanceCall,
  revertReason,
  showsMovement,
  stateCall,
  topic,
  transferCall,
} from './token.ts'
import type { Movement } from './token.ts'

/** What a settlement needs to reach the chain. */
export interface Settler {
  readonly chain: Chain
  readonly signer: Signer
  readonly networkId: string
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** Enough for a token transfer by signature on every network of the table; contract wallets verify in code of theirs. */
const GAS = 200_000n
const GAS_CONTRACT_WALLET = 600_000n

/** How long a broadcast transaction is waited for before the buyer is told to ask again. */
const PATIENCE_MS = 30_000
const FIRST_POLL_MS = 10
const LONGEST_POLL_MS = 1_000

/** How far back a transfer submitted by somebody else can lie: authorizations live for an hour at the most. */
const LOG_BLOCKS = 5_000n

const UNREACHABLE: Refusal = {
  code: 'chain_unavailable',
  detail: 'the payment network cannot be reached now; nothing was charged',
}

/** Whether the token would carry the authorization out now: one call, and two more to explain a refusal. */
export async function simulate(
  settler: Settler,
  movement: Movement,
  authorization: Authorization,
  signature: `0x${string}`,
): Promise<Refusal | undefined> {
  const data = transferCall(authorization, signature)
  const answer = await settler.chain.call(movement.token, data, settler.signer.address)
  if (answer.kind === 'result') return undefined
  if (answer.kind === 'unreachable') return UNREACHABLE
  const code = reasonCode(`${revertReason(answer.data) ?? ''} ${answer.message}`)
  return {
    code: code ?? (await diagnose(settler.chain, movement)),
    detail: 'the token would not carry out this transfer',
  }
}

/** The token’s own words (FiatTokenV2_2), as codes. */
const REASONS: readonly [RegExp, ErrorCode][] = [
  [/authorization is used or canceled/i, 'invalid_exact_evm_nonce_already_used'],
  [/exceeds balance/i, 'invalid_exact_evm_insufficient_balance'],
  [/invalid signature/i, 'invalid_exact_evm_signature'],
  [/authorization is expired/i, 'invalid_exact_evm_payload_authorization_valid_before'],
  [/authorization is not yet valid/i, 'invalid_exact_evm_payload_authorization_valid_after'],
]

function reasonCode(text: string): ErrorCode | undefined {
  return REASONS.find(([pattern]) => pattern.test(text))?.[1]
}

async function diagnose(chain: Chain, { token, from, value, nonce }: Movement): Promise<ErrorCode> {
  const [balance, used] = await Promise.all([
    chain.call(token, balanceCall(from)),
    chain.call(token, stateCall(from, nonce)),
  ])
  if (isWord(used) && BigInt(used.result) === 1n) return 'invalid_exact_evm_nonce_already_used'
  if (isWord(balance) && BigInt(balance.result) < value) return 'invalid_exact_evm_insufficient_balance'
  return 'invalid_exact_evm_transaction_simulation_failed'
}

function isWord(answer: RpcAnswer<`0x${string}`>): answer is { kind: 'result'; result: `0x${string}` } {
  return answer.kind === 'result' && answer.result.length === 66
}

/** Simulates once more, for the buyer’s funds may have moved while the handler ran; then sends and waits for the block. */
export async function settle(
  settler: Settler,
  movement: Movement,
  authorization: Authorization,
  signature: `0x${string}`,
  journal: Journal,
): Promise<Settlement> {
  const refusal = await simulate(settler, movement, authorization, signature)
  if (refusal !== undefined) return { kind: 'failed', refusal }
  const gas = signature.length === 132 ? GAS : GAS_CONTRACT_WALLET
  const sent = await settler.signer.send(movement.token, transferCall(authorization, signature), gas, journal)
  switch (sent.kind) {
    case 'unsent':
      return {
        kind: 'failed',
        refusal: { code: 'chain_unavailable', detail: `${sent.detail}; nothing was charged` },
      }
    case 'unknown':
      return { kind: 'unknown', detail: 'the network gave no answer after the payment was sent to it' }
    case 'sent':
      return conclude(settler, movement, sent.transaction)
  }
}

/** Finds out what became of a transaction that another attempt has sent, or was about to send. */
export async function resume(
  settler: Settler,
  movement: Movement,
  transaction: StoredTransaction,
): Promise<Settlement> {
  const seen = await settler.chain.receipt(transaction.hash)
  if (seen.kind === 'result' && seen.result !== null) return judge(settler, movement, seen.result)
  const raw = transaction.raw
  if (raw !== undefined && isHexText(raw)) {
    const answer = await settler.chain.broadcast(raw)
    if (answer.kind === 'refused' && !isKnown(answer.message))
      return afterRefusal(settler, movement, transaction)
  }
  return conclude(settler, movement, transaction)
}

/** The node will not take the bytes again: they are mined already, or their nonce was used for something else. */
async function afterRefusal(
  settler: Settler,
  movement: Movement,
  transaction: StoredTransaction,
): Promise<Settlement> {
  const seen = await settler.chain.receipt(transaction.hash)
  if (seen.kind === 'result' && seen.result !== null) return judge(settler, movement, seen.result)
  const used = await findMovement(settler, movement)
  if (used.kind !== 'unknown') return used
  return { kind: 'unknown', detail: 'the network knows neither the payment nor its failure yet' }
}

async function conclude(
  settler: Settler,
  movement: Movement,
  { hash }: StoredTransaction,
): Promise<Settlement> {
  const patience = settler.now() + PATIENCE_MS
  for (let wait = FIRST_POLL_MS; settler.now() < patience; wait = Math.min(wait * 1.5, LONGEST_POLL_MS)) {
    const seen = await settler.chain.receipt(hash)
    if (seen.kind === 'result' && seen.result !== null) return judge(settler, movement, seen.result)
    await settler.sleep(wait)
  }
  return { kind: 'unknown', detail: 'the network has not confirmed the payment yet' }
}

/**
 * The truth is the log of the authorization with its transfer, in any transaction, whoever has sent it: our own revert
 * may mean that somebody else was faster.
 */
async function judge(settler: Settler, movement: Movement, receipt: TransactionReceipt): Promise<Settlement> {
  if (receipt.succeeded && showsMovement(receipt.logs, movement))
    return settled(settler, movement, receipt.hash)
  return findMovement(settler, movement)
}

async function findMovement(settler: Settler, movement: Movement): Promise<Settlement> {
  const { chain } = settler
  const head = await chain.blockNumber()
  if (head.kind !== 'result')
    return { kind: 'unknown', detail: 'the network cannot be reached to confirm the payment' }
  const from = head.result > LOG_BLOCKS ? head.result - LOG_BLOCKS : 0n
  const found = await chain.logs(
    movement.token,
    [AUTHORIZATION_USED, topic(movement.from), movement.nonce],
    from,
  )
  if (found.kind !== 'result')
    return { kind: 'unknown', detail: 'the network cannot be reached to confirm the payment' }
  const [log] = found.result
  if (log === undefined) return failed()
  const receipt = await chain.receipt(log.transactionHash)
  if (receipt.kind !== 'result' || receipt.result === null)
    return { kind: 'unknown', detail: 'the payment is being confirmed' }
  return showsMovement(receipt.result.logs, movement)
    ? settled(settler, movement, log.transactionHash)
    : failed()
}

function settled(settler: Settler, movement: Movement, transaction: string): Settlement {
  const receipt = {
    transaction,
    network: settler.networkId,
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

function isHexText(text: string): text is Address {
  return /^0x[0-9a-fA-F]+$/.test(text)
}
