import { isFree, takeOver } from '../ledger/claim.ts'
import type { Entry } from '../ledger/entry.ts'
import {
  deliverable,
  isRemembered,
  type Outcome,
  type Paywall,
  type Purchasing,
  type Verified,
} from './paywall.ts'
import { holding, proceed } from './sale.ts'
import { wait } from './wait.ts'

/** Buys with a payment that was looked at before, if it still fits an offer. */
export type BuyAnew = (paywall: Paywall, buying: Purchasing, verified: Verified) => Promise<Outcome>

/** The same payment once more: it waits for the first, goes on for a dead one, or gets what was stored. */
export async function again(
  paywall: Paywall,
  buying: Purchasing,
  known: Entry,
  verified: Verified,
  anew: BuyAnew,
): Promise<Outcome> {
  const { attendance, now } = paywall
  // Before its broadcast, nobody but the buyer can have seen the payment.
  const isBuyer = buying.payment.token !== undefined || known.dispatch === undefined
  attendance.begin(known.id, buying.gone)
  const outcome = await wait(paywall, buying, known, async (entry) => {
    if (entry === undefined || isFree(entry, paywall.now())) return anew(paywall, buying, verified)
    // Asked each time: while this copy waited, the payment may have bought something else, or its answer have arrived.
    if (isForOther(buying, entry) || !mayHaveAgain(paywall, buying, entry)) return reused(buying, entry)
    if (buying.payment.copies !== 'wait') return lookOnce(paywall, buying, entry, verified)
    // Whoever has seen it in the pool shows no token either: the buyer on the line goes first.
    if (!isBuyer && entry.leaseUntil > now()) return undefined
    return lookAgain(paywall, buying, entry, verified)
  }).finally(() => attendance.end(known.id, buying.gone))
  // Its way to this copy is watched too.
  if (outcome.kind === 'delivered') attendance.begin(outcome.entry.id, buying.gone)
  return outcome
}

/** Whoever holds the payment gets its answer. */
async function lookAgain(
  paywall: Paywall,
  buying: Purchasing,
  entry: Entry,
  verified: Verified,
): Promise<Outcome | undefined> {
  return (await deliverable(paywall, entry)) ?? takeTurn(paywall, buying, entry, verified)
}

/** A payment that is good for one answer: it is given again only when it is not known to have arrived. */
async function lookOnce(
  paywall: Paywall,
  buying: Purchasing,
  entry: Entry,
  verified: Verified,
): Promise<Outcome | undefined> {
  if (entry.state === 'sent') return reused(buying, entry)
  const atWork = entry.leaseUntil > paywall.now()
  // On its way to the buyer: whether it arrives is known in a moment.
  if (atWork && entry.receipt !== undefined && entry.answer !== undefined) return undefined
  return atWork ? reused(buying, entry) : takeTurn(paywall, buying, entry, verified)
}

/** Goes on where a dead process, or an unknown settlement, has left the payment; undefined while somebody is at it. */
async function takeTurn(
  paywall: Paywall,
  buying: Purchasing,
  entry: Entry,
  verified: Verified,
): Promise<Outcome | undefined> {
  const claim = await takeOver(paywall, entry)
  if (claim === undefined) return undefined
  return holding(paywall, buying, claim, () => proceed(paywall, buying, claim, verified))
}

/** Bought something else, or is another authorization that was signed under the same nonce. */
function isForOther({ payment, offer, digest }: Purchasing, entry: Entry): boolean {
  return entry.seal !== payment.seal || entry.operation !== offer.face.operation.id || entry.digest !== digest
}

function reused({ payment }: Purchasing, entry: Entry): Outcome {
  return payment.copies === 'wait'
    ? { kind: 'reused', entry, code: 'payment_reused' }
    : { kind: 'refused', refusal: payment.copies }
}

/**
 * The calldata of a payment is public from its broadcast on, so its signature proves nothing any more: copies need the
 * token of the challenge that the first one has shown. One that came without is answered while it is not known to have
 * been. After its settlement both hold for the time of redelivery.
 */
function mayHaveAgain({ now }: Paywall, { payment }: Purchasing, entry: Entry): boolean {
  if (entry.receipt !== undefined && !isRemembered(entry, now())) return false
  return entry.token === undefined ? entry.state !== 'sent' : entry.token === payment.token
}
