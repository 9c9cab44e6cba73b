import type { Charge } from './payment-method.ts'
import type { Answer, Kill, Purchase, PurchaseLog } from './purchase-log.ts'

/** The outcome of one purchase, by the chain and by the receipt that its buyer received. */
export interface PurchaseOutcome {
  readonly purchase: Purchase
  /** Charges for the payments signed for it. */
  readonly charges: readonly Charge[]
  /** What its receipt proves; undefined for a purchase without an answer. */
  readonly receipt: ReceiptMatch | undefined
}

export type ReceiptMatch =
  /** It names a charge for a payment of this purchase. */
  | { readonly kind: 'own' }
  /**
   * It names the charge of an earlier, equal purchase of the same buyer, and the answer comes from the same run: a kill
   * struck that answer before the server could know that it had arrived, so the server redelivered it and left the new
   * payment unused.
   */
  | { readonly kind: 'redelivered'; readonly first: Purchase; readonly kill: Kill }
  /** It was true when it was given: a reorganization has undone the block of the transaction that it names. */
  | { readonly kind: 'undone' }
  | { readonly kind: 'mismatch'; readonly why: string }

/** The server counts an answer as delivered two seconds after its last byte; on a busy machine that is late. */
const UNCONFIRMED_MS = 4_000

/** One outcome for each purchase, in the order of the log. */
export function matchCharges(
  { purchases, kills, reorganizations }: PurchaseLog,
  charges: readonly Charge[],
): PurchaseOutcome[] {
  // A voucher that was not charged pays for the next call of its channel: it belongs to the last one that has sent it.
  const byReference = new Map(
    purchases.flatMap((purchase) => [...purchase.payments.keys()].map((reference) => [reference, purchase])),
  )
  const killDuring = (answer: Answer): Kill | undefined =>
    kills.find(
      ({ target, from, until }) =>
        (target === answer.from || target === 'store') &&
        until >= answer.requestedAt &&
        from <= answer.receivedAt + UNCONFIRMED_MS,
    )
  const isUndone = (transaction: string): boolean =>
    reorganizations.some(({ dropped }) => dropped.includes(transaction))
  const isEqual = (one: Purchase, other: Purchase): boolean =>
    one.buyer === other.buyer && one.route === other.route && one.n === other.n
  const matchReceipt = (purchase: Purchase, answer: Answer): ReceiptMatch => {
    // One transaction may settle the payments of several buyers.
    const named = charges.filter(({ transaction }) => transaction === answer.transaction)
    if (named.length === 0) {
      const { transaction } = answer
      return transaction !== undefined && isUndone(transaction)
        ? { kind: 'undone' }
        : mismatch('its receipt names no charge')
    }
    const charged = named.flatMap(({ reference }) => byReference.get(reference) ?? [])
    if (charged.includes(purchase)) return { kind: 'own' }
    const references = named.map(({ reference }) => reference).join(', ')
    const first = charged.find((other) => isEqual(other, purchase))
    if (first === undefined) return mismatch(`${references} was charged for another purchase`)
    if (first.answer === undefined) return mismatch(`${references} was charged for an unanswered purchase`)
    if (first.answer.run !== answer.run) return mismatch('the handler ran again for it')
    const kill = killDuring(first.answer)
    const earlier = purchases
      .filter((other) => isEqual(other, purchase))
      .flatMap(({ answer: other }) => (other === undefined ? [] : [other]))
      .filter(
        ({ transaction, receivedAt }) =>
          transaction === answer.transaction && receivedAt < answer.requestedAt,
      )
    const isUnconfirmed =
      earlier.includes(first.answer) && earlier.every((other) => killDuring(other) !== undefined)
    if (kill === undefined || !isUnconfirmed)
      return mismatch(`the answer for ${references} had arrived, and no kill struck near that time`)
    return { kind: 'redelivered', first, kill }
  }
  return purchases.map((purchase) => ({
    purchase,
    charges: charges.filter(({ reference }) => byReference.get(reference) === purchase),
    receipt: purchase.answer === undefined ? undefined : matchReceipt(purchase, purchase.answer),
  }))
}

function mismatch(why: string): ReceiptMatch {
  return { kind: 'mismatch', why }
}
