import { LostClaim, takeOver, type Claim } from '../ledger/claim.ts'
import type { Entry, Receipt, State } from '../ledger/entry.ts'
import { nextCheckAt } from '../ledger/lifecycle.ts'
import type { Refusal, Settlement } from '../protocols/protocol.ts'
import { noteFailure, timeToWork, tooLate } from './flow.ts'
import { fulfil, preflight, rollback, run } from './fulfillment.ts'
import type { LeasedPurchase, PurchaseDeps, PurchaseResult } from './request.ts'

/** States in which money may have moved: a fault then leaves the outcome unknown. */
const MOVING: ReadonlySet<State> = new Set<State>(['settling', 'settled', 'unknown'])

/** Works on a leased payment, and stops the renewal of the lease however that ends. */
export async function withLease(
  purchase: LeasedPurchase,
  work: (purchase: LeasedPurchase) => Promise<PurchaseResult>,
): Promise<PurchaseResult> {
  const { deps, request, lease } = purchase
  const { id } = lease.entry
  deps.buyers.connect(id, request.gone)
  const result = await guarded(deps, lease, () => work(purchase)).finally(() => request.payment.release())
  // An answer is watched on its way to the buyer, who counts as connected for as long.
  if (result.kind !== 'answered') deps.buyers.disconnect(id, request.gone)
  return result
}

async function guarded(
  { report }: PurchaseDeps,
  lease: Claim,
  work: () => Promise<PurchaseResult>,
): Promise<PurchaseResult> {
  try {
    return await work()
  } catch (fault) {
    // Another process has decided that we are dead and has taken the payment over: it will answer the next copy.
    if (fault instanceof LostClaim) return { kind: 'pending', id: lease.entry.id }
    const { entry } = lease
    if (!MOVING.has(entry.state) && entry.receipt === undefined) return { kind: 'failed', fault }
    report(fault)
    return { kind: 'pending', id: entry.id }
  } finally {
    lease.putDown()
  }
}

/**
 * A payment that has just been reserved: the chain is asked before anything is done for it. `unsold`: an answer to the
 * same request of the same buyer, which waits for a payment that can be settled.
 */
export async function start(purchase: LeasedPurchase, unsold: Entry | undefined): Promise<PurchaseResult> {
  const { deps, request, verified, lease } = purchase
  const { flow } = lease.entry
  const refusal = (await request.payment.simulate()) ?? tooLate(deps, flow, verified)
  if (refusal !== undefined) {
    await lease.drop()
    return { kind: 'refused', refusal }
  }
  if (flow === 'upfront') {
    const checked = await preflight(purchase)
    if (checked.kind === 'fault') {
      await lease.drop()
      return { kind: 'failed', fault: checked.fault }
    }
  } else if (unsold !== undefined) await adopt(deps, lease, unsold)
  return resume(purchase)
}

/** The work is not done twice: the new payment buys the answer of the earlier one, which is deleted. */
async function adopt(deps: PurchaseDeps, lease: Claim, unsold: Entry): Promise<void> {
  const earlier = await takeOver(deps, unsold)
  if (earlier === undefined) return
  const answer = await earlier.readAnswer()
  await earlier.drop()
  if (answer !== undefined) await lease.advance('fulfilled', { answer })
}

/** Goes on from wherever the payment stands, to its answer. */
export async function resume(purchase: LeasedPurchase): Promise<PurchaseResult> {
  const { deps, request, verified, lease } = purchase
  const { entry } = lease
  if (entry.receipt !== undefined) return fulfil(purchase, entry, entry.receipt)
  if (entry.state === 'settling' || entry.state === 'unknown') {
    const settlement = await request.payment.protocol.resolve(entry)
    // A transaction that was lost has moved nothing: below, it is made anew.
    if (settlement.kind !== 'failed') return conclude(purchase, settlement)
  }
  if (entry.flow === 'authorization' && (await lease.readAnswer()) === undefined) {
    if (hasLeft(purchase)) return abandon(purchase)
    const done = await run(purchase, timeToWork(deps, verified))
    if (done.kind === 'fault') {
      await lease.void()
      return { kind: 'failed', fault: done.fault }
    }
    await lease.advance('fulfilled', { answer: done.value })
  }
  return settle(purchase)
}

/** The client left before anything was sent to move its money. */
class Disconnected extends Error {}

function hasLeft({ deps, lease }: LeasedPurchase): boolean {
  return !deps.buyers.has(lease.entry.id)
}

/** Moves the money. */
async function settle(purchase: LeasedPurchase): Promise<PurchaseResult> {
  const { deps, request, lease } = purchase
  let recording = false
  try {
    if (hasLeft(purchase)) throw new Disconnected()
    const settlement = await request.payment.settle({
      record: async (dispatch) => {
        // A signer may write a payment down anew: what was recorded already goes on.
        if (!recording && hasLeft(purchase)) throw new Disconnected()
        recording = true
        await lease.advance('settling', { dispatch })
      },
    })
    return await conclude(purchase, settlement)
  } catch (fault) {
    if (fault instanceof Disconnected) return await abandon(purchase)
    // The record may have been stored although the store said no: then recovery sends it, and the money moves.
    if (!recording || fault instanceof LostClaim) throw fault
    deps.report(fault)
    return { kind: 'pending', id: lease.entry.id }
  }
}

/** Work for a buyer who is not there to pay for it counts like work that could not be charged, and nothing of it is kept. */
async function abandon(purchase: LeasedPurchase): Promise<PurchaseResult> {
  const { deps, request, lease } = purchase
  if (lease.entry.answer !== undefined) await countFailure(deps, lease.entry)
  await rollback(deps, request.fulfillment.store, lease)
  // What could not be rolled back is left to recovery.
  if (lease.entry.prepared === undefined) await lease.drop()
  else await lease.void()
  return { kind: 'disconnected' }
}

/** Goes on from what became of the money. */
export async function conclude(purchase: LeasedPurchase, settlement: Settlement): Promise<PurchaseResult> {
  const { deps, lease } = purchase
  switch (settlement.kind) {
    case 'settled':
      return fulfil(purchase, await recordReceipt(deps, lease, settlement.receipt), settlement.receipt)
    case 'failed':
      return fail(purchase, settlement.refusal)
    case 'unknown': {
      const { id } = await lease.advance('unknown')
      await lease.letGo()
      return { kind: 'pending', id }
    }
  }
}

/** A store that was rolled back or emptied takes the record as new. */
async function recordReceipt(
  { ledger, now, report }: PurchaseDeps,
  lease: Claim,
  receipt: Receipt,
): Promise<Entry> {
  try {
    return await lease.settle(receipt)
  } catch (fault) {
    report(fault)
    const { dispatch: _dispatch, ...entry } = lease.entry
    const settled = {
      ...entry,
      state: 'settled',
      receipt,
      settledAt: now(),
      version: entry.version + 1,
    } as const
    const record: Entry = { ...settled, due: nextCheckAt(settled) }
    await ledger.insert(record).catch(report)
    return record
  }
}

/** The money of this payment has definitely not moved. */
async function fail({ deps, request, lease }: LeasedPurchase, refusal: Refusal): Promise<PurchaseResult> {
  const { answer } = lease.entry
  if (refusal.code === 'chain_unavailable') {
    // Nothing is wrong with the payment: what was worked for it waits for the same buyer to come again.
    if (answer === undefined) await lease.drop()
    else await lease.shelve()
    return { kind: 'refused', refusal }
  }
  const entry = await lease.void()
  if (answer === undefined) return { kind: 'refused', refusal }
  await rollback(deps, request.fulfillment.store, lease)
  await countFailure(deps, entry)
  return { kind: 'settlementFailed', entry, refusal }
}

function countFailure({ ledger, now, report }: PurchaseDeps, { payer, id }: Entry): Promise<void> {
  return noteFailure(ledger, payer, id, now()).catch(report)
}
