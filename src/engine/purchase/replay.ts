import { isFree, takeOver } from '../ledger/claim.ts'
import type { Entry } from '../ledger/entry.ts'
import {
  answeredBy,
  isRedeliverable,
  type PurchaseRequest,
  type PurchaseResult,
  type VerifiedPurchase,
} from './request.ts'
import { resume, withLease } from './settle-flow.ts'

/** Buys with a payment that was looked at before, if it still fits an offer. */
export type BuyAnew = (purchase: VerifiedPurchase) => Promise<PurchaseResult>

/** The same payment once more: it waits for the first, goes on for a dead one, or gets what was stored. */
export async function replay(
  purchase: VerifiedPurchase,
  known: Entry,
  buyAnew: BuyAnew,
): Promise<PurchaseResult> {
  const { deps, request } = purchase
  const { payment, gone } = request
  // Before its broadcast, nobody but the buyer can have seen the payment.
  const isBuyer = payment.token !== undefined || known.dispatch === undefined
  deps.buyers.connect(known.id, gone)
  const result = await poll(purchase, known, async (entry) => {
    if (entry === undefined || isFree(entry, deps.now())) return buyAnew(purchase)
    // Asked each time: while this copy waited, the payment may have bought something else, or its answer have arrived.
    if (isForOther(request, entry) || !mayHaveAnswer(purchase, entry)) return reject(request, entry)
    if (payment.copies !== 'wait') return replaySingleUse(purchase, entry)
    // Who has seen it in the pool shows no token either: the connected buyer goes first.
    if (!isBuyer && entry.leaseUntil > deps.now()) return undefined
    return (await answeredBy(deps, entry)) ?? takeTurn(purchase, entry)
  }).finally(() => deps.buyers.disconnect(known.id, gone))
  // Its way to this copy is watched too.
  if (result.kind === 'answered') deps.buyers.connect(result.entry.id, gone)
  return result
}

/** A payment that is good for one answer: it is given again only when it is not known to have arrived. */
async function replaySingleUse(
  purchase: VerifiedPurchase,
  entry: Entry,
): Promise<PurchaseResult | undefined> {
  const { deps, request } = purchase
  if (entry.state === 'sent') return reject(request, entry)
  if (entry.leaseUntil <= deps.now()) return takeTurn(purchase, entry)
  // On its way to the buyer: whether it arrives is known in a moment.
  return entry.receipt !== undefined && entry.answer !== undefined ? undefined : reject(request, entry)
}

/** Goes on where a dead process, or an unknown settlement, has left the payment; undefined while somebody is at it. */
async function takeTurn(purchase: VerifiedPurchase, entry: Entry): Promise<PurchaseResult | undefined> {
  const lease = await takeOver(purchase.deps, entry)
  return lease === undefined ? undefined : withLease({ ...purchase, lease }, resume)
}

/** Bought something else, or is another authorization that was signed under the same nonce. */
function isForOther({ payment, offer, digest }: PurchaseRequest, entry: Entry): boolean {
  return entry.seal !== payment.seal || entry.operation !== offer.face.operation.id || entry.digest !== digest
}

function reject({ payment }: PurchaseRequest, entry: Entry): PurchaseResult {
  return payment.copies === 'wait'
    ? { kind: 'replayRejected', entry, code: 'payment_reused' }
    : { kind: 'refused', refusal: payment.copies }
}

/**
 * The calldata of a payment is public from its broadcast on, so its signature proves nothing any more: copies need the
 * token of the challenge that the first one has shown. One that came without is answered while it is not known to have
 * been. After its settlement both hold for the time of redelivery.
 */
function mayHaveAnswer({ deps, request }: VerifiedPurchase, entry: Entry): boolean {
  if (entry.receipt !== undefined && !isRedeliverable(entry, deps.now())) return false
  return entry.token === undefined ? entry.state !== 'sent' : entry.token === request.payment.token
}

/** How long a request waits for what another one is doing. */
const PATIENCE_MS = 45_000

/** Looks at a record again and again, until it can be said what becomes of the request. */
export async function poll<T>(
  { deps, request }: VerifiedPurchase,
  known: Entry,
  look: (entry: Entry | undefined) => Promise<T | undefined>,
): Promise<T | PurchaseResult> {
  const deadline = deps.now() + PATIENCE_MS
  let entry: Entry | undefined = known
  for (let pause = 10; ; pause = Math.min(pause * 1.5, 200)) {
    const seen = await look(entry)
    if (seen !== undefined) return seen
    if (deps.now() > deadline || request.gone.aborted) return { kind: 'pending', id: known.id }
    await deps.sleep(pause)
    entry = await deps.ledger.get(known.key)
  }
}
