import { LostClaim, takeOver, type Claim } from '../ledger/claim.ts'
import type { Entry, Flow, Receipt, State } from '../ledger/entry.ts'
import { nextCheckAt } from '../ledger/lifecycle.ts'
import type { Refusal, Settlement } from '../protocols/protocol.ts'
import { type Outcome, type Paywall, type Purchasing, type Verified } from './paywall.ts'
import { noteFailure } from './throttle.ts'
import { keep, undo, work } from './work.ts'

/** Left of a payment's validity when its settlement begins. */
const SETTLING_MS = 6_000
/** Less time than this is not worth beginning with. */
const SHORTEST_WORK_MS = 3_000

/** Whether the payment expires before it could be worked for and settled. */
export function tooLate({ now }: Paywall, flow: Flow, { validBefore }: Verified): Refusal | undefined {
  const work = flow === 'upfront' ? 0 : SHORTEST_WORK_MS
  if (validBefore - now() - SETTLING_MS >= work) return undefined
  return {
    code: 'deadline_too_short',
    detail: 'the payment expires before the work could be done and settled',
  }
}

/** States in which money may have moved: a fault then leaves the outcome unknown. */
const MOVING: ReadonlySet<State> = new Set<State>(['settling', 'settled', 'unknown'])

/** Works on a claimed payment and puts it down, whatever happens. */
export async function holding(
  paywall: Paywall,
  { gone, payment }: Pick<Purchasing, 'gone' | 'payment'>,
  claim: Claim,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  const { id } = claim.entry
  paywall.attendance.begin(id, gone)
  const outcome = await held(paywall, claim, work).finally(() => payment.release())
  // An answer is watched on its way: who does that says when it is over.
  if (outcome.kind !== 'delivered') paywall.attendance.end(id, gone)
  return outcome
}

async function held(paywall: Paywall, claim: Claim, work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await work()
  } catch (fault) {
    // Another process has decided that we are dead and has taken the payment over: it will answer the next copy.
    if (fault instanceof LostClaim) return { kind: 'pending', id: claim.entry.id }
    const { entry } = claim
    if (!MOVING.has(entry.state) && entry.receipt === undefined) return { kind: 'failed', fault }
    paywall.report(fault)
    return { kind: 'pending', id: entry.id }
  } finally {
    claim.putDown()
  }
}

/** A payment that has just been reserved: the chain is asked before anything is done for it. */
export async function serve(
  paywall: Paywall,
  buying: Purchasing,
  claim: Claim,
  verified: Verified,
  unsold: Entry | undefined,
): Promise<Outcome> {
  const refusal = (await buying.payment.simulate()) ?? tooLate(paywall, claim.entry.flow, verified)
  if (refusal !== undefined) {
    await claim.drop()
    return { kind: 'refused', refusal }
  }
  const doomed = await rehearse(paywall, buying, claim, verified)
  if (doomed === undefined) {
    if (unsold !== undefined && claim.entry.flow === 'authorization') await adopt(paywall, claim, unsold)
    return proceed(paywall, buying, claim, verified)
  }
  await claim.drop()
  return { kind: 'failed', fault: doomed.fault }
}

/** The same buyer’s answer to the same request waits for a payment that can be settled: the work is not done twice. */
async function adopt(paywall: Paywall, claim: Claim, unsold: Entry): Promise<void> {
  const standing = await takeOver(paywall, unsold)
  if (standing === undefined) return
  const answer = await standing.readAnswer()
  await standing.drop()
  if (answer !== undefined) await claim.advance('fulfilled', { answer })
}

/** What would make work fail that is paid for first, when it says so beforehand. */
async function rehearse(
  { now }: Paywall,
  { job }: Purchasing,
  claim: Claim,
  { validBefore }: Verified,
): Promise<{ readonly fault: unknown } | undefined> {
  if (claim.entry.flow !== 'upfront') return undefined
  try {
    await job.check?.(validBefore - now() - SETTLING_MS)
    return undefined
  } catch (fault) {
    return { fault }
  }
}

/** Goes on from wherever the payment stands, to its answer. */
export async function proceed(
  paywall: Paywall,
  buying: Purchasing,
  claim: Claim,
  verified: Verified,
): Promise<Outcome> {
  const { entry } = claim
  if (entry.receipt !== undefined) return fulfil(paywall, buying, claim, verified, entry, entry.receipt)
  if (entry.state === 'settling' || entry.state === 'unknown') {
    const settlement = await buying.payment.protocol.resolve(entry)
    // A transaction that was lost has moved nothing: below, it is made anew.
    if (settlement.kind !== 'failed') return conclude(paywall, buying, claim, verified, settlement)
  }
  if (entry.flow === 'authorization' && (await claim.readAnswer()) === undefined) {
    if (!paywall.attendance.has(entry.id)) return abandon(paywall, buying, claim)
    const patience = verified.validBefore - paywall.now() - SETTLING_MS
    const done = await work(paywall, buying, claim, verified, patience)
    if (done.kind === 'fault') {
      await claim.void()
      return { kind: 'failed', fault: done.fault }
    }
    await claim.advance('fulfilled', { answer: done.value })
  }
  return charge(paywall, buying, claim, verified)
}

/**
 * What was paid for already. The proof of it is in hand: a store that fails from here on costs a record, and never the
 * buyer on the line the answer.
 */
async function fulfil(
  paywall: Paywall,
  buying: Purchasing,
  claim: Claim,
  verified: Verified,
  entry: Entry,
  receipt: Receipt,
): Promise<Outcome> {
  let answer = await claim.readAnswer()
  if (answer === undefined) {
    const done = await work(paywall, buying, claim, verified, Infinity)
    if (done.kind === 'fault') {
      await claim.letGo().catch(paywall.report)
      return { kind: 'owed', entry, receipt, fault: done.fault }
    }
    answer = done.value
    await claim.advance('fulfilled', { answer }).catch(paywall.report)
  }
  await keep(paywall, buying.job.store, claim).catch(paywall.report)
  return {
    kind: 'delivered',
    entry: claim.entry.receipt === undefined ? entry : claim.entry,
    answer,
    receipt,
  }
}

/** The client left before anything was sent to move its money. */
class Abandoned extends Error {}

/** Moves the money. */
async function charge(
  paywall: Paywall,
  buying: Purchasing,
  claim: Claim,
  verified: Verified,
): Promise<Outcome> {
  const { payment } = buying
  const hasLeft = (): boolean => !paywall.attendance.has(claim.entry.id)
  let recording = false
  try {
    if (hasLeft()) throw new Abandoned()
    const settlement = await payment.settle({
      record: async (dispatch) => {
        // A signer may write a payment down anew: what stands there already goes on.
        if (!recording && hasLeft()) throw new Abandoned()
        recording = true
        await claim.advance('settling', { dispatch })
      },
    })
    return await conclude(paywall, buying, claim, verified, settlement)
  } catch (fault) {
    if (fault instanceof Abandoned) return await abandon(paywall, buying, claim)
    // The record may have been stored although the store said no: then recovery sends it, and the money moves.
    if (!recording || fault instanceof LostClaim) throw fault
    paywall.report(fault)
    return { kind: 'pending', id: claim.entry.id }
  }
}

/** Work for a buyer who is not there to pay for it counts like work that could not be charged, and nothing of it is kept. */
async function abandon(paywall: Paywall, { job }: Purchasing, claim: Claim): Promise<Outcome> {
  const { id, payer, answer } = claim.entry
  if (answer !== undefined) await noteFailure(paywall.ledger, payer, id, paywall.now()).catch(paywall.report)
  await undo(paywall, job.store, claim)
  // What could not be undone is left to recovery.
  if (claim.entry.prepared === undefined) await claim.drop()
  else await claim.void()
  return { kind: 'abandoned' }
}

/** Goes on from what became of the money. */
export async function conclude(
  paywall: Paywall,
  buying: Purchasing,
  claim: Claim,
  verified: Verified,
  settlement: Settlement,
): Promise<Outcome> {
  switch (settlement.kind) {
    case 'settled':
      return fulfil(
        paywall,
        buying,
        claim,
        verified,
        await recordReceipt(paywall, claim, settlement.receipt),
        settlement.receipt,
      )
    case 'failed':
      return giveUp(paywall, buying, claim, settlement.refusal)
    case 'unknown': {
      const { id } = await claim.advance('unknown')
      await claim.letGo()
      return { kind: 'pending', id }
    }
  }
}

/** A store that was rolled back or emptied takes the record as new. */
async function recordReceipt(
  { ledger, now, report }: Paywall,
  claim: Claim,
  receipt: Receipt,
): Promise<Entry> {
  try {
    return await claim.settle(receipt)
  } catch (fault) {
    report(fault)
    const { dispatch: _dispatch, ...entry } = claim.entry
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
async function giveUp(
  paywall: Paywall,
  { job }: Purchasing,
  claim: Claim,
  refusal: Refusal,
): Promise<Outcome> {
  const { id, payer, answer } = claim.entry
  if (refusal.code === 'chain_unavailable') {
    // Nothing is wrong with the payment: what was worked for it waits for the same one to come again.
    if (answer === undefined) await claim.drop()
    else await claim.shelve()
    return { kind: 'refused', refusal }
  }
  const entry = await claim.void()
  if (answer === undefined) return { kind: 'refused', refusal }
  await undo(paywall, job.store, claim)
  await noteFailure(paywall.ledger, payer, id, paywall.now()).catch(paywall.report)
  return { kind: 'unsettled', entry, refusal }
}
