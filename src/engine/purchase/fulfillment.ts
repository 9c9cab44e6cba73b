import type { Claim } from '../ledger/claim.ts'
import type { Entry, Receipt, StoredAnswer } from '../ledger/entry.ts'
import { timeToWork } from './flow.ts'
import type { LeasedPurchase, PurchaseDeps, PurchaseResult, Store } from './request.ts'

type Attempted<T> =
  { readonly kind: 'value'; readonly value: T } | { readonly kind: 'fault'; readonly fault: unknown }

/** Runs the handler; what it has stored is rolled back when it fails. `timeLeft`: milliseconds it may take. */
export async function run(
  { deps, request, verified: { payer, account }, lease }: LeasedPurchase,
  timeLeft: number,
): Promise<Attempted<StoredAnswer>> {
  const { fulfillment, offer } = request
  const most = Math.min(offer.face.operation.timeout, timeLeft)
  if (fulfillment.store !== undefined) await lease.note({ prepared: true })
  const done = await attempt(() =>
    fulfillment.run({ payment: lease.entry.id, payer, account, timeLeft: most }),
  )
  if (done.kind === 'fault') await rollback(deps, fulfillment.store, lease)
  return done
}

/** What would make work fail that is paid for first, when it says so beforehand. */
export async function preflight({ deps, request, verified }: LeasedPurchase): Promise<Attempted<void>> {
  return attempt(async () => request.fulfillment.preflight?.(timeToWork(deps, verified)))
}

/**
 * Answers a payment that has settled. The proof of it is in hand: a store that fails from here on costs a record, and
 * never the connected buyer the answer.
 */
export async function fulfil(
  purchase: LeasedPurchase,
  entry: Entry,
  receipt: Receipt,
): Promise<PurchaseResult> {
  const { deps, request, lease } = purchase
  let answer = await lease.readAnswer()
  if (answer === undefined) {
    const done = await run(purchase, Infinity)
    if (done.kind === 'fault') {
      await lease.letGo().catch(deps.report)
      return { kind: 'paidUnfulfilled', entry, receipt, fault: done.fault }
    }
    answer = done.value
    await lease.advance('fulfilled', { answer }).catch(deps.report)
  }
  await commit(deps, request.fulfillment.store, lease).catch(deps.report)
  return { kind: 'answered', entry: lease.entry.receipt === undefined ? entry : lease.entry, answer, receipt }
}

/** What the handler has stored stays. What fails here is done again by recovery. */
function commit(deps: PurchaseDeps, store: Store | undefined, lease: Claim): Promise<void> {
  return decide(deps, lease, store?.commit.bind(store))
}

/** What the handler has stored goes. What fails here is done again by recovery. */
export function rollback(deps: PurchaseDeps, store: Store | undefined, lease: Claim): Promise<void> {
  return decide(deps, lease, store?.abort.bind(store))
}

/** Ends what the handler has prepared; a handler that fails to is asked again by recovery. */
export async function decide(
  { report }: Pick<PurchaseDeps, 'report'>,
  lease: Claim,
  decision: ((payment: string) => Promise<void>) | undefined,
): Promise<void> {
  if (lease.entry.prepared === undefined || decision === undefined) return
  const done = await attempt(() => decision(lease.entry.id))
  if (done.kind === 'fault') report(done.fault)
  else await lease.unprepare()
}

async function attempt<T>(work: () => Promise<T>): Promise<Attempted<T>> {
  try {
    return { kind: 'value', value: await work() }
  } catch (fault) {
    return { kind: 'fault', fault }
  }
}
