import type { Claim } from '../ledger/claim.ts'
import type { StoredAnswer } from '../ledger/entry.ts'
import type { Paywall, Purchasing, Store, Verified } from './paywall.ts'

type Attempted<T> =
  { readonly kind: 'value'; readonly value: T } | { readonly kind: 'fault'; readonly fault: unknown }

/** Runs the handler for a payment; what it has stored goes again when it fails. */
export async function work(
  paywall: Paywall,
  { job, offer }: Purchasing,
  claim: Claim,
  { payer, account }: Verified,
  patience: number,
): Promise<Attempted<StoredAnswer>> {
  const order = {
    payment: claim.entry.id,
    payer,
    account,
    patience: Math.min(offer.face.operation.timeout, patience),
  }
  if (job.store !== undefined) await claim.note({ prepared: true })
  try {
    return { kind: 'value', value: await job.run(order) }
  } catch (fault) {
    await undo(paywall, job.store, claim)
    return { kind: 'fault', fault }
  }
}

/** What the handler has stored stays. What fails here is done again by recovery. */
export async function keep(paywall: Paywall, store: Store | undefined, claim: Claim): Promise<void> {
  if (claim.entry.prepared === undefined || store === undefined) return
  try {
    await store.commit(claim.entry.id)
  } catch (fault) {
    paywall.report(fault)
    return
  }
  await claim.unprepare()
}

/** What the handler has stored goes. What fails here is done again by recovery. */
export async function undo(paywall: Paywall, store: Store | undefined, claim: Claim): Promise<void> {
  if (claim.entry.prepared === undefined || store === undefined) return
  try {
    await store.abort(claim.entry.id)
  } catch (fault) {
    paywall.report(fault)
    return
  }
  await claim.unprepare()
}
