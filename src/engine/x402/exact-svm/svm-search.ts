import type { PaymentRecord } from '../../ledger/payment-record.ts'
import { readTransaction } from '../../chains/svm/transaction.ts'
import { SEARCHED_AT_ONCE, type FoundTransaction, type SvmChain } from '../../chains/svm/svm-chain.ts'
import { digestOf } from './svm-payload.ts'

/** What the chain shows of a payment whose transaction somebody else has signed for. */
export type SvmOutcome =
  | { readonly kind: 'succeeded' | 'failed'; readonly signature: string }
  /** None of the transactions that could be it. */
  | { readonly kind: 'none' }
  /** The node does not show enough to tell. */
  | { readonly kind: 'unclear' }

/** How much earlier than its record a payment may have been carried out. */
const LEAD_MS = 600_000
/** Pages of transactions that are looked through. */
const MOST_PAGES = 5

/** Whether a signature is that of a transaction with this signed message. */
export async function lookAt(
  chain: SvmChain,
  { signature, succeeded }: Pick<FoundTransaction, 'signature' | 'succeeded'>,
  digest: string,
): Promise<SvmOutcome> {
  const answer = await chain.transaction(signature)
  if (answer.kind !== 'result' || answer.result === null) return { kind: 'unclear' }
  const read = readTransaction(answer.result.bytes)
  if (read.kind !== 'transaction' || digestOf(read.transaction) !== digest) return { kind: 'none' }
  return { kind: succeeded ? 'succeeded' : 'failed', signature }
}

/** Looks for a payment among the newest transactions of the token account that it moves money from. */
export async function findTransaction(
  chain: SvmChain,
  source: string,
  digest: string,
  { createdAt }: Pick<PaymentRecord, 'createdAt'>,
): Promise<SvmOutcome> {
  const since = (createdAt - LEAD_MS) / 1_000
  let before: string | undefined
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const answer = await chain.transactionsOf(source, before)
    if (answer.kind !== 'result') return { kind: 'unclear' }
    for (const found of answer.result) {
      if (found.time !== undefined && found.time < since) return { kind: 'none' }
      const outcome = await lookAt(chain, found, digest)
      if (outcome.kind !== 'none') return outcome
    }
    if (answer.result.length < SEARCHED_AT_ONCE) return { kind: 'none' }
    before = answer.result.at(-1)?.signature
  }
  return { kind: 'unclear' }
}
