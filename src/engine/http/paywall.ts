import type { Route } from '../catalog/catalog.ts'
import { isFree, LostClaim, reserve, takeOver, type Claim, type Desk } from '../ledger/claim.ts'
import type { Entry, Purchase, Receipt, State, StoredAnswer } from '../ledger/entry.ts'
import { buyerName, identifierName } from '../ledger/ledger.ts'
import type { Offer, Payment, Refusal, Settlement, Verification } from '../protocols/protocol.ts'

/** How a payment ended for the one who sent it; what was charged follows from the kind. */
export type Outcome =
  /** Charged once, whoever asks again. */
  | {
      readonly kind: 'delivered'
      readonly entry: Entry
      readonly answer: StoredAnswer
      readonly receipt: Receipt
    }
  /** Not charged: the payment cannot be taken. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Not charged: the work was done and the settlement has definitely failed. */
  | { readonly kind: 'unsettled'; readonly entry: Entry; readonly refusal: Refusal }
  /** Not charged: the work failed. */
  | { readonly kind: 'failed'; readonly fault: unknown }
  /** Charged for something else. */
  | { readonly kind: 'reused'; readonly entry: Entry }
  /** Not known yet: the same payment will tell. */
  | { readonly kind: 'pending'; readonly id: string }
  /** Nobody is there to answer. */
  | { readonly kind: 'abandoned' }

export interface Paywall extends Desk {
  readonly sleep: (ms: number) => Promise<void>
  /** Milliseconds a settled payment is answered again. */
  readonly redeliver: number
  /** Told of faults whose request is answered all the same. */
  readonly report: (fault: unknown) => void
}

/** One request with a payment. */
export interface Purchasing {
  readonly payment: Payment
  readonly route: Route
  readonly offer: Offer
  readonly revision: string
  readonly digest: string
  /** Does the work; `patience` is how many milliseconds it may take. */
  readonly work: (patience: number, payer: string) => Promise<StoredAnswer>
  /** Whether the client has gone away. */
  readonly gone: () => boolean
}

/** Left of a payment's validity when its settlement begins. */
const SETTLING_MS = 6_000
/** Less time than this is not worth beginning with. */
const SHORTEST_WORK_MS = 3_000
/** How long a copy waits for the request that came first. */
const COPY_PATIENCE_MS = 45_000

/** Takes the payment, does the work once, charges once, and answers everyone who holds the payment. */
export async function purchase(paywall: Paywall, buying: Purchasing): Promise<Outcome> {
  const { payment, offer } = buying
  const known = await paywall.ledger.get(payment.key)
  if (known !== undefined && !isFree(known, paywall.now())) {
    const verification = await payment.verify()
    if (verification.kind === 'verified') return again(paywall, buying, known, verification)
    const { refusal } = verification
    // Who pays could not be asked: what became of the payment is not to be said either way.
    return refusal.code === 'chain_unavailable'
      ? { kind: 'pending', id: known.id }
      : { kind: 'refused', refusal }
  }
  const unfit = payment.check(offer, paywall.now())
  if (unfit !== undefined) return { kind: 'refused', refusal: unfit }
  const verification = await payment.verify()
  if (verification.kind === 'refused') return verification
  const refusal = tooLate(paywall, verification)
  return refusal === undefined ? first(paywall, buying, verification) : { kind: 'refused', refusal }
}

type Verified = Extract<Verification, { readonly kind: 'verified' }>

function tooLate({ now }: Paywall, { validBefore }: Verified): Refusal | undefined {
  if (validBefore - now() - SETTLING_MS >= SHORTEST_WORK_MS) return undefined
  return {
    code: 'deadline_too_short',
    detail: 'the payment expires before the work could be done and settled',
  }
}

async function first(paywall: Paywall, buying: Purchasing, verified: Verified): Promise<Outcome> {
  const reservation = await reserve(paywall, purchaseOf(paywall, buying, verified))
  if (reservation.kind === 'taken') return again(paywall, buying, reservation.entry, verified)
  return holding(paywall, reservation.claim, () => serve(paywall, buying, reservation.claim, verified))
}

function purchaseOf(
  { redeliver }: Paywall,
  { payment, route, revision, digest }: Purchasing,
  { payer, validBefore }: Verified,
): Purchase {
  const { identifier } = payment
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
    operation: route.operation.id,
    digest,
    revision,
    token: payment.token,
    flow: 'authorization',
    redeliver,
    buyer: buyerName(payer, route.operation.id, digest),
    identifier: identifier === undefined ? undefined : identifierName(payer, identifier),
  }
}

/** States in which money may have moved: a fault then leaves the outcome unknown. */
const MOVING: ReadonlySet<State> = new Set<State>(['settling', 'settled', 'unknown'])

async function holding(paywall: Paywall, claim: Claim, work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await work()
  } catch (fault) {
    // Another process has decided that we are dead and has taken the payment over: it will answer the next copy.
    if (fault instanceof LostClaim) return { kind: 'pending', id: claim.entry.id }
    if (!MOVING.has(claim.entry.state)) return { kind: 'failed', fault }
    paywall.report(fault)
    return { kind: 'pending', id: claim.entry.id }
  } finally {
    claim.putDown()
  }
}

async function serve(
  paywall: Paywall,
  buying: Purchasing,
  claim: Claim,
  verified: Verified,
): Promise<Outcome> {
  const refusal = (await buying.payment.simulate()) ?? tooLate(paywall, verified)
  if (refusal !== undefined) {
    await claim.drop()
    return { kind: 'refused', refusal }
  }
  const answer = await attempt(() => buying.work(patienceOf(paywall, buying, verified), verified.payer))
  if (answer.kind === 'fault') {
    await claim.void()
    return { kind: 'failed', fault: answer.fault }
  }
  await claim.advance('fulfilled', { answer: answer.value })
  return charge(buying, claim)
}

/** A payment may be valid for years, which no timer can count. */
function patienceOf({ now }: Paywall, { route }: Purchasing, { validBefore }: Verified): number {
  return Math.min(route.operation.timeout, validBefore - now() - SETTLING_MS)
}

/** Moves the money for an answer that is stored. */
async function charge(buying: Purchasing, claim: Claim): Promise<Outcome> {
  if (buying.gone()) {
    await claim.letGo()
    return { kind: 'abandoned' }
  }
  const settlement = await buying.payment.settle({
    record: async (dispatch) => {
      await claim.advance('settling', { dispatch })
    },
  })
  return conclude(claim, settlement)
}

async function conclude(claim: Claim, settlement: Settlement): Promise<Outcome> {
  switch (settlement.kind) {
    case 'settled': {
      const entry = await claim.settle(settlement.receipt)
      return delivered(entry)
    }
    case 'failed': {
      if (settlement.refusal.code === 'chain_unavailable') {
        // Nothing is wrong with the payment: the stored answer waits for the same one to come again.
        await claim.advance('fulfilled')
        await claim.letGo()
        return { kind: 'refused', refusal: settlement.refusal }
      }
      const entry = await claim.void()
      return { kind: 'unsettled', entry, refusal: settlement.refusal }
    }
    case 'unknown': {
      const { id } = await claim.advance('unknown')
      await claim.letGo()
      return { kind: 'pending', id }
    }
  }
}

function delivered(entry: Entry): Outcome {
  const { answer, receipt } = entry
  if (answer === undefined || receipt === undefined) return { kind: 'pending', id: entry.id }
  return { kind: 'delivered', entry, answer, receipt }
}

/** The same payment once more: it waits for the first, takes over from a dead one, or gets what was stored. */
async function again(
  paywall: Paywall,
  buying: Purchasing,
  known: Entry,
  verified: Verified,
): Promise<Outcome> {
  if (known.receipt !== undefined && !mayHaveAgain(paywall, buying.payment, known))
    return { kind: 'reused', entry: known }
  const patience = paywall.now() + COPY_PATIENCE_MS
  let entry: Entry | undefined = known
  for (let wait = 10; entry !== undefined; wait = Math.min(wait * 1.5, 200)) {
    // Asked each time: when the first has failed, the payment may have bought something else while this copy waited.
    if (isForOther(buying, entry) && !isFree(entry, paywall.now())) return { kind: 'reused', entry }
    if (entry.state === 'settled' || entry.state === 'sent') return delivered(entry)
    const turn = await takeTurn(paywall, buying, entry, verified)
    if (turn !== undefined) return turn
    if (paywall.now() > patience || buying.gone()) return { kind: 'pending', id: entry.id }
    await paywall.sleep(wait)
    entry = await paywall.ledger.get(entry.key)
  }
  return first(paywall, buying, verified)
}

/** Bought something else, or is another authorization that was signed under the same nonce. */
function isForOther({ payment, route, digest }: Purchasing, entry: Entry): boolean {
  return entry.seal !== payment.seal || entry.operation !== route.operation.id || entry.digest !== digest
}

/** Goes on where a dead process, or an unknown settlement, has left the payment; undefined while somebody else is at it. */
async function takeTurn(
  paywall: Paywall,
  buying: Purchasing,
  entry: Entry,
  verified: Verified,
): Promise<Outcome | undefined> {
  if (isFree(entry, paywall.now())) {
    const refusal = buying.payment.check(buying.offer, paywall.now()) ?? tooLate(paywall, verified)
    return refusal === undefined ? first(paywall, buying, verified) : { kind: 'refused', refusal }
  }
  if (entry.leaseUntil > paywall.now()) return undefined
  const claim = await takeOver(paywall, entry)
  if (claim === undefined) return undefined
  return holding(paywall, claim, async () => {
    if (entry.state === 'fulfilled') return charge(buying, claim)
    const settlement = await buying.payment.protocol.resolve(entry)
    // The work is done and the money has not moved: a transaction that was lost is made anew.
    return settlement.kind === 'failed' ? charge(buying, claim) : conclude(claim, settlement)
  })
}

/**
 * Within the time of redelivery. A settled payment's calldata is public, so its signature proves nothing any more: once
 * the answer is known to have arrived, it is given again only to who shows the token of the challenge.
 */
function mayHaveAgain({ now, redeliver }: Paywall, { token }: Payment, entry: Entry): boolean {
  if (now() - (entry.settledAt ?? entry.createdAt) >= redeliver) return false
  return entry.state === 'settled' || (entry.token !== undefined && entry.token === token)
}

type Attempted<T> =
  { readonly kind: 'value'; readonly value: T } | { readonly kind: 'fault'; readonly fault: unknown }

async function attempt<T>(work: () => Promise<T>): Promise<Attempted<T>> {
  try {
    return { kind: 'value', value: await work() }
  } catch (fault) {
    return { kind: 'fault', fault }
  }
}

/** The answer has left completely: from now on the token is asked for. */
export async function markSent({ ledger, now }: Desk, entry: Entry): Promise<void> {
  if (entry.state !== 'settled') return
  await ledger.replace(entry, { ...entry, state: 'sent', updatedAt: now(), version: entry.version + 1 })
}
