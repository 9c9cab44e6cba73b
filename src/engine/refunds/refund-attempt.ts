import { isAddress, sameAddress, type Address } from '../base/address.ts'
import type { Chain } from '../chains/evm/chain.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { refunderIn, type RefundTerms } from './refund-proof.ts'
import type { SentRefund } from './refund-result.ts'
import { authorizationOutcome } from '../chains/evm/eip3009/authorization-outcome.ts'
import type { TransferOutcome } from '../chains/evm/transfer-outcome.ts'
import { FINAL_BLOCKS, isOver } from '../chains/evm/finality.ts'

/** What becomes of a recorded refund, as far as the chain shows. */
export type RefundFate =
  | { readonly kind: 'refunded'; readonly hash: string; readonly sender: Address }
  /** Its transaction can still be mined: the same bytes may be sent again. */
  | { readonly kind: 'open' }
  /** It cannot be mined, and yet the money may still move by what it contains, or in another order of blocks. */
  | { readonly kind: 'blocked'; readonly reason: string }
  /** No block, now or later, can carry it out: another one may be signed. */
  | { readonly kind: 'impossible' }
  /** The node does not say. */
  | { readonly kind: 'unclear' }

interface AttemptContext {
  readonly chain: Chain
  /** The account that would send another one. */
  readonly from: Address
}

/** Finds out what has become of a refund that an earlier run has recorded, with this key or another one. */
export async function fateOf(
  context: AttemptContext,
  terms: RefundTerms,
  record: PaymentRecord,
  attempt: SentRefund,
): Promise<RefundFate> {
  const { hash, nonce, sender, validBefore } = attempt
  const seen = await shownIn(context.chain, terms, hash)
  if (seen.kind === 'refunded' || seen.kind === 'unclear') return seen
  if (sender === undefined || !isAddress(sender) || nonce === undefined || validBefore === undefined)
    return {
      kind: 'blocked',
      reason: `the record does not say which account has signed ${hash}, and the chain does not show it: it may still be carried out`,
    }
  const known = { ...attempt, sender, nonce, validBefore }
  return terms.by.kind === 'memo'
    ? fateOfTransfer(context, terms, known)
    : fateOfAuthorization(context, terms, record, known)
}

interface KnownAttempt {
  readonly hash: string
  readonly sender: Address
  readonly nonce: number
  readonly validBefore: number
}

type Shown = Extract<RefundFate, { readonly kind: 'refunded' | 'unclear' }> | Unseen
/** `block`: where its transaction has failed. */
type Unseen = { readonly kind: 'unseen'; readonly block: bigint | undefined }

async function shownIn(chain: Chain, terms: RefundTerms, hash: string): Promise<Shown> {
  const receipt = await chain.receipt(hash)
  if (receipt.kind !== 'result') return { kind: 'unclear' }
  const sender = refunderIn(terms, receipt.result?.logs ?? [])
  return sender === undefined
    ? { kind: 'unseen', block: receipt.result?.block }
    : { kind: 'refunded', hash, sender }
}

/**
 * Anybody can submit an authorization that was broadcast, also after its own transaction has failed: it is impossible once
 * the token has it as canceled, or as unused after its end. Its sender may sign it anew at any time, since the token
 * takes one of the two.
 */
async function fateOfAuthorization(
  { chain, from }: AttemptContext,
  { token, payer, amount: value, mark }: RefundTerms,
  { settledAt, createdAt }: PaymentRecord,
  { sender, nonce, validBefore }: KnownAttempt,
): Promise<RefundFate> {
  const expected = { token, from: sender, to: payer, value, nonce: mark }
  const since = settledAt ?? createdAt
  const outcome = (confirmations: number, end: number): Promise<TransferOutcome | undefined> =>
    authorizationOutcome({ chain, confirmations }, expected, since, (block) => isOver(block, end))
  const seen = await outcome(1, Infinity)
  if (seen?.kind === 'moved') return { kind: 'refunded', hash: seen.transaction, sender }
  const final = await outcome(FINAL_BLOCKS, validBefore)
  if (final?.kind === 'void') return { kind: 'impossible' }
  const spent = await isSpent(chain, sender, nonce)
  if (spent === undefined) return { kind: 'unclear' }
  if (!spent) return { kind: 'open' }
  if (sameAddress(sender, from)) return { kind: 'impossible' }
  const end = new Date(validBefore).toISOString()
  return {
    kind: 'blocked',
    reason: `what ${sender} has signed can still be carried out until ${end}: run it again some minutes after that, or now with the key of that account`,
  }
}

/** A transfer is impossible once its account nonce is spent by another transaction, it has failed, or its time is over. */
async function fateOfTransfer(
  { chain }: AttemptContext,
  terms: RefundTerms,
  { hash, sender, nonce, validBefore }: KnownAttempt,
): Promise<RefundFate> {
  const head = await chain.blockNumber()
  if (head.kind !== 'result') return { kind: 'unclear' }
  const spent = await isSpent(chain, sender, nonce, head.result)
  const number = head.result - BigInt(FINAL_BLOCKS) + 1n
  const [block, spentFinally] =
    number < 0n ? [] : await Promise.all([chain.block(number), isSpent(chain, sender, nonce, number)])
  // Asked last, so that it is at least as new as what the nonce says.
  const seen = await shownIn(chain, terms, hash)
  if (seen.kind !== 'unseen') return seen
  if (spent === undefined) return { kind: 'unclear' }
  const isExpired = block?.kind === 'result' && isOver(block.result, validBefore)
  const isFinal = seen.block === undefined || seen.block <= number
  if (isFinal && (spentFinally === true || isExpired)) return { kind: 'impossible' }
  if (!spent) return { kind: 'open' }
  return {
    kind: 'blocked',
    reason: `${hash} was not carried out, and its block may still be undone: run it again after ${FINAL_BLOCKS} blocks`,
  }
}

/** Whether an account nonce is used in blocks up to this one, by whichever transaction; undefined when the node does not say. */
async function isSpent(
  chain: Chain,
  account: Address,
  nonce: number,
  block?: bigint,
): Promise<boolean | undefined> {
  const head = block === undefined ? await chain.blockNumber() : { kind: 'result' as const, result: block }
  const mined = head.kind === 'result' ? await chain.minedNonce(account, head.result) : head
  return mined.kind === 'result' ? mined.result > BigInt(nonce) : undefined
}
