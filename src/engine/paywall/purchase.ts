import { isFree, reserve } from '../ledger/claim.ts'
import type { Flow, Purchase } from '../ledger/entry.ts'
import { buyerName, identifierName } from '../ledger/ledger.ts'
import type { Offer } from '../protocols/protocol.ts'
import { again } from './again.ts'
import { findLost, shareIdentifier } from './lost.ts'
import type { Outcome, Paywall, Purchasing, Verified } from './paywall.ts'
import { holding, serve, tooLate } from './sale.ts'
import { isThrottled } from './throttle.ts'

/** Takes the payment, does the work once, charges once, and answers everyone who holds the payment. */
export async function purchase(paywall: Paywall, buying: Purchasing): Promise<Outcome> {
  const { payment, offer } = buying
  const known = await paywall.ledger.get(payment.key)
  if (known !== undefined && !isFree(known, paywall.now())) {
    const verification = await payment.verify()
    if (verification.kind === 'verified') return again(paywall, buying, known, verification, buyLater)
    const { refusal } = verification
    // Who pays could not be asked: what became of the payment is not to be said either way.
    return refusal.code === 'chain_unavailable'
      ? { kind: 'pending', id: known.id }
      : { kind: 'refused', refusal }
  }
  const refusal = payment.check(offer, paywall.now())
  const verification = await payment.verify()
  if (verification.kind === 'refused')
    return refusal === undefined ? verification : { kind: 'refused', refusal }
  // What was offered lately is asked of other processes: for whoever has signed a payment, and for nobody else.
  if (refusal !== undefined && !(await fitsRecentOffer(paywall, buying))) return { kind: 'refused', refusal }
  return buyAnew(paywall, buying, verification)
}

/** Whether the payment was signed for an offer that was withdrawn a moment ago. */
async function fitsRecentOffer(paywall: Paywall, { payment, offer }: Purchasing): Promise<boolean> {
  const recent = await paywall.lately(offer.face.operation.id)
  return recent.some((terms) => {
    const withdrawn: Offer = { ...offer, ...terms }
    return payment.check(withdrawn, paywall.now()) === undefined
  })
}

/** A payment that has bought nothing yet. */
async function buyAnew(paywall: Paywall, buying: Purchasing, verified: Verified): Promise<Outcome> {
  const [earlier, purchased] = await Promise.all([
    findLost(paywall, buying, verified),
    describe(paywall, buying, verified),
  ])
  if (earlier.kind !== 'new') return earlier
  const refusal = tooLate(paywall, purchased.flow, verified)
  if (refusal !== undefined) return { kind: 'refused', refusal }
  const reservation = await reserve(paywall, purchased)
  if (reservation.kind === 'claimed') {
    const { claim } = reservation
    return holding(paywall, buying, claim, () => serve(paywall, buying, claim, verified, earlier.unsold))
  }
  const { entry } = reservation
  return entry.key === buying.payment.key
    ? again(paywall, buying, entry, verified, buyLater)
    : shareIdentifier(paywall, buying, entry, verified, buyLater)
}

/** While it waited for another purchase, its offer may have ended. */
async function buyLater(paywall: Paywall, buying: Purchasing, verified: Verified): Promise<Outcome> {
  const refusal = buying.payment.check(buying.offer, paywall.now())
  if (refusal !== undefined && !(await fitsRecentOffer(paywall, buying))) return { kind: 'refused', refusal }
  return buyAnew(paywall, buying, verified)
}

async function describe(
  paywall: Paywall,
  { payment, offer, revision, digest }: Purchasing,
  verified: Verified,
): Promise<Purchase> {
  const { identifier } = payment
  const { payer, validBefore } = verified
  return {
    key: payment.key,
    protocol: payment.protocol.name,
    network: payment.network,
    asset: payment.asset,
    payer,
    payee: payment.payee,
    seal: payment.seal,
    amount: payment.amount.toString(),
    validBefore,
    operation: offer.face.operation.id,
    digest,
    revision,
    token: payment.token,
    flow: await flowOf(paywall, { payment, offer }, payer),
    redeliver: paywall.redeliver,
    buyer: buyerName(payer, offer.face.operation.id, digest),
    identifier: identifier === undefined ? undefined : identifierName(payer, identifier),
  }
}

/** Before the work for what says so, for work that would outlive the payment, and for payers whose settlements fail. */
async function flowOf(
  { ledger, now }: Paywall,
  { payment, offer }: Pick<Purchasing, 'payment' | 'offer'>,
  payer: string,
): Promise<Flow> {
  const { operation } = offer.face
  if (operation.settle === 'upfront' || operation.timeout > payment.protocol.longestWork) return 'upfront'
  return (await isThrottled(ledger, payer, now())) ? 'upfront' : 'authorization'
}
