import { clearImmediate, setImmediate } from 'node:timers'
import type { Operation } from '../catalog/catalog.ts'
import type { Metered } from '../catalog/price/meter.ts'
import { inSpan } from '../base/tracing.ts'
import { ERRORS, Failure, InvalidParameter, type ErrorCode } from '../base/errors.ts'
import {
  LeaseLostError,
  StateChangedError,
  acquireExpired,
  type Changes,
  type PaymentLease,
} from '../ledger/lease.ts'
import type { PaymentRecord, Receipt, State, StoredAnswer } from '../ledger/payment-record.ts'
import { chargeStatus, firstLook, nextCheckAt } from '../ledger/payment-lifecycle.ts'
import type { Refusal } from '../base/errors.ts'
import type { CommittedPayment, Payment, SettledPayment } from '../payment/payment.ts'
import { SETTLEMENT_FAILED, type Journal, type Settlement } from '../payment/settlement.ts'
import { isStreaming } from './execution.ts'
import { settlementOfFreeWork } from './free-work.ts'
import type { Delivery, LeasedPurchase, MeteredStream, OpenStream, PurchaseDeps, Store } from './request.ts'
import { sendOnCredit } from './stream-on-credit.ts'
import { takeCredit, type Credit } from './payer-credit.ts'
import type { PurchaseResult, Paid } from './result.ts'
import { lateReceipt, storeLate } from './late-receipt.ts'
import { recordStream } from './stream.ts'
import { isPayersFailure, isThrottled, noteFailure } from './payer-throttle.ts'
import { tooLate, timeToWork } from './settle-order.ts'

/** States in which money may have moved: a fault then leaves the outcome unknown. */
const MOVING: ReadonlySet<State> = new Set<State>(['settling', 'settled', 'unknown'])

/** Works on a leased payment, and stops the renewal of the lease however that ends. */
export async function withLease(
  purchase: LeasedPurchase,
  work: (purchase: LeasedPurchase) => Promise<PurchaseResult>,
): Promise<PurchaseResult> {
  const { deps, request, lease } = purchase
  const { id } = lease.record
  deps.buyers.connect(id, request.gone, 'served')
  const result = await guarded(deps, lease, () => locked(purchase, work)).catch((fault: unknown) => {
    request.payment.release()
    throw fault
  })
  // What a stream on credit may cost stays reserved to its end.
  void untilCharged(result).then(() => request.payment.release())
  // The delivery of an answer is tracked, and its buyer counts as connected until it ends.
  if (result.kind !== 'answered' && result.kind !== 'streaming') deps.buyers.disconnect(id, request.gone)
  return result
}

async function untilCharged(result: PurchaseResult): Promise<void> {
  if (result.kind === 'streaming') await result.answer.recorded
}

/** Payments of one channel wait for each other here. */
async function locked(
  purchase: LeasedPurchase,
  work: (purchase: LeasedPurchase) => Promise<PurchaseResult>,
): Promise<PurchaseResult> {
  const { deps, request, lease } = purchase
  const { lockKey } = request.payment
  if (lockKey === undefined) return work(purchase)
  const done = await new Promise<PurchaseResult | undefined>((resolve, reject) => {
    const holding = deps.locks.run(lockKey, async () => {
      const result = await work(purchase)
      resolve(result)
      await untilCharged(result)
      return result
    })
    holding.then(resolve, reject)
  })
  if (done !== undefined) return done
  if (lease.record.state === 'reserved') await lease.delete()
  else await lease.release()
  return { kind: 'refused', refusal: (await request.payment.busy?.()) ?? BUSY }
}

const BUSY: Refusal = {
  code: 'payment_pending',
  detail: 'another call on this channel is being worked on; nothing was charged for this one',
}

async function guarded(
  { report }: PurchaseDeps,
  lease: PaymentLease,
  work: () => Promise<PurchaseResult>,
): Promise<PurchaseResult> {
  let result: PurchaseResult | undefined
  try {
    return (result = await work())
  } catch (fault) {
    // Another process has taken over the payment: it answers the next copy.
    if (fault instanceof LeaseLostError) return { kind: 'pending', id: lease.record.id }
    const { record } = lease
    if (!MOVING.has(record.state) && record.receipt === undefined) return { kind: 'failed', fault }
    report(fault)
    return { kind: 'pending', id: record.id }
  } finally {
    // A stream that is under way needs its lease to the end.
    if (!isStreamed(result)) lease.stopRenewal()
  }
}

function isStreamed(result: PurchaseResult | undefined): boolean {
  return result?.kind === 'streaming' || (result?.kind === 'answered' && result.answer.kind === 'stream')
}

/**
 * A payment that has just been reserved: the chain is asked before anything is done for it. `unsold`: an answer to the
 * same request of the same buyer, which waits for a payment that can be settled.
 */
export async function start(
  purchase: LeasedPurchase,
  unsold: PaymentRecord | undefined,
): Promise<PurchaseResult> {
  const { deps, request, verified, lease } = purchase
  const { settle: order } = lease.record
  const refusal = (await request.payment.simulate()) ?? tooLate(deps, order, verified)
  if (refusal !== undefined) {
    await lease.delete()
    return { kind: 'refused', refusal }
  }
  if (order === 'after') {
    const { operation } = request.offer.endpoint
    if (unsold !== undefined && isAdoptable(operation, lease.record, unsold)) await adopt(deps, lease, unsold)
    return resume(purchase)
  }
  try {
    await request.fulfillment.preflight?.(timeToWork(deps, verified))
  } catch (fault) {
    await lease.delete()
    return { kind: 'failed', fault }
  }
  return (await opensFirst(purchase)) ? openFirst(purchase) : resume(purchase)
}

/** Whether to settle first: work that may stay unpaid is not started for payers with failed settlements. */
async function opensFirst({ deps, request: { offer }, verified }: LeasedPurchase): Promise<boolean> {
  const { endpoint } = offer
  if (!isStreaming(endpoint) || endpoint.operation.settle === 'upfront') return false
  return !(await isThrottled(deps.ledger, verified.payer, deps.now()))
}

/** The money moves once the stream has begun well, and before any of it is read. */
async function openFirst(purchase: LeasedPurchase): Promise<PurchaseResult> {
  const { deps, verified, lease } = purchase
  const done = await run(purchase, timeToWork(deps, verified))
  if (done.kind !== 'answer' || done.answer.kind !== 'stream') {
    await lease.delete()
    return {
      kind: 'failed',
      fault: done.kind === 'answer' ? new TypeError('this is no stream') : faultOf(done),
    }
  }
  let result: PurchaseResult | undefined
  try {
    return (result = await resume({ ...purchase, opened: done.answer }))
  } finally {
    if (!isStreamed(result)) done.answer.close()
  }
}

/** A metered answer costs what its work has used, in units of its asset: of an answer without it nothing is known. */
function isAdoptable(
  { meter }: Operation,
  record: PaymentRecord,
  { usage, network, asset, amount }: PaymentRecord,
): boolean {
  if (usage === undefined || meter === undefined) return usage === meter
  const isSameAsset = record.network === network && record.asset === asset
  return isSameAsset && BigInt(amount) <= BigInt(record.authorizedAmount)
}

/** The work is not done twice: the new payment buys the answer of the earlier one, which is deleted. */
async function adopt(deps: PurchaseDeps, lease: PaymentLease, unsold: PaymentRecord): Promise<void> {
  const earlier = await acquireExpired(deps, unsold)
  if (earlier === undefined) return
  const answer = await earlier.readAnswer()
  const { amount, usage } = earlier.record
  await earlier.delete()
  if (answer !== undefined) await lease.advance('fulfilled', { answer, ...(usage && { amount, usage }) })
}

/** Continues a payment from its state to its answer. */
export async function resume(purchase: LeasedPurchase): Promise<PurchaseResult> {
  const { deps, request, verified, lease } = purchase
  const { record } = lease
  if (record.receipt !== undefined) return fulfil(purchase, record, record.receipt)
  if (record.state === 'settling' || record.state === 'unknown') {
    const settlement = await request.payment.protocol.resolve(record)
    // A lost transaction has moved nothing: below, it is created again.
    if (settlement.kind !== 'failed') return conclude(purchase, settlement)
    if (settlement.block !== undefined) await lease.failedIn(settlement.block)
  }
  const { payment } = request
  let work: DoneWork | undefined
  if (record.settle === 'after' && (await lease.readAnswer()) === undefined) {
    if (hasLeft(purchase)) return abandon(purchase)
    const credit = await takeCredit(purchase)
    const timeLeft = timeToWork(deps, verified)
    const done = await run(purchase, timeLeft, credit && { until: deps.now() + timeLeft })
    if (done.kind === 'metered stream' && credit !== undefined)
      return owe(purchase, payment, done.stream, credit)
    await credit?.end()
    if (done.kind !== 'answer') {
      await lease.void()
      return { kind: 'failed', fault: faultOf(done) }
    }
    if (done.answer.kind === 'stream') throw new TypeError('streams are paid for first')
    const { answer, metered } = done
    work = { answer, ...(metered && meteredCharge(payment, metered)) }
  }
  return payment.commit === undefined
    ? settle(purchase, payment, work)
    : // Until it is charged in the ledger, nothing is stored: a buyer who sends the payment again has the work done again.
      chargeInLedger(purchase, payment, work)
}

const NO_CREDIT = 'a stream without credit is sent whole'

function faultOf(done: Exclude<Run, { readonly kind: 'answer' }>): unknown {
  return done.kind === 'fault' ? done.fault : new TypeError(NO_CREDIT)
}

/** Sends a stream on credit. */
function owe(
  purchase: LeasedPurchase,
  payment: Payment,
  stream: MeteredStream,
  credit: Credit,
): PurchaseResult {
  if (payment.commit !== undefined) throw new TypeError(NO_CREDIT)
  const sent: LeasedPurchase = { ...purchase, sent: 'on credit' }
  const answer = sendOnCredit(sent, stream, {
    credit,
    changes: (metered) => ({ ...meteredCharge(payment, metered), runs: 1 }),
    settle: () => settle(sent, payment, undefined),
  })
  return { kind: 'streaming', record: purchase.lease.record, answer }
}

/** An answer, and what it costs if that was not known before. */
type DoneWork = Pick<Changes, 'amount' | 'usage'> & { readonly answer: StoredAnswer }

/** What is charged for metered work: at most what the payer has signed. */
function meteredCharge(payment: Payment, { amount, parts }: Metered): Pick<Changes, 'amount' | 'usage'> {
  const [due, most] = [payment.amountFor(amount), payment.authorizedAmount]
  return { amount: (due < most ? due : most).toString(), usage: parts }
}

/** Stores answer, receipt and the state of the channel together: charged and answered, or neither. */
async function chargeInLedger(
  purchase: LeasedPurchase,
  payment: CommittedPayment,
  work: DoneWork | undefined,
): Promise<PurchaseResult> {
  const { deps, lease, opened } = purchase
  if (hasLeft(purchase)) return abandon(purchase)
  const charge = await payment.commit(BigInt(work?.amount ?? lease.record.amount))
  if (charge.kind === 'failed') return refuseCharge(purchase, charge.refusal)
  const { receipt, state } = charge
  try {
    const changes = { receipt, ...work, ...(opened && { runs: 1 }) }
    return await fulfil(purchase, await lease.charge(changes, state), receipt)
  } catch (fault) {
    if (fault instanceof StateChangedError) return refuseCharge(purchase, BUSY)
    if (fault instanceof LeaseLostError || lease.record.receipt !== undefined) throw fault
    // The charge may have been stored despite the error.
    deps.report(fault)
    return { kind: 'pending', id: lease.record.id }
  }
}

/** The client left before anything was sent to move its money. */
class Disconnected extends Error {}

function hasLeft({ deps, lease, sent }: LeasedPurchase): boolean {
  return sent === undefined && !deps.buyers.has(lease.record.id)
}

/** Nothing was charged in the ledger: the work was done for nothing, and what it has prepared is rolled back. */
async function refuseCharge(purchase: LeasedPurchase, refusal: Refusal): Promise<PurchaseResult> {
  const { deps, request, lease } = purchase
  await finishWrite(deps, lease, request.fulfillment.store, 'abort')
  if (refusal !== BUSY && lease.record.settle === 'after') await countFailure(deps, lease.record)
  // What could not be rolled back is left to recovery.
  if (lease.record.pendingWrite === undefined) await lease.delete()
  else await lease.void()
  return { kind: 'refused', refusal }
}

/**
 * Moves the money. The answer is stored before anything is sent: in one commit with what is sent if that is known at once,
 * otherwise while it is prepared.
 */
async function settle(
  purchase: LeasedPurchase,
  payment: SettledPayment,
  work: DoneWork | undefined,
): Promise<PurchaseResult> {
  const { deps, lease } = purchase
  const unstored = (): DoneWork | undefined => (lease.record.answer === undefined ? work : undefined)
  let storing: Promise<unknown> | undefined
  const storeWork = (): Promise<unknown> => {
    const left = unstored()
    return (storing ??= left === undefined ? Promise.resolve() : lease.advance('fulfilled', left))
  }
  let recording = false
  // A fault of it shows below, where it is awaited.
  const preparing = setImmediate(() => void storeWork().catch(() => undefined))
  try {
    // Who has lost the connection may be back before the answer is stored.
    if (hasLeft(purchase)) await storeWork()
    if (hasLeft(purchase)) throw new Disconnected()
    if (work?.amount === '0') await storeWork()
    const free = settlementOfFreeWork(lease.record)
    if (free !== undefined) return await conclude(purchase, free)
    const amount = BigInt(work?.amount ?? lease.record.amount)
    const settlement = await settlePatiently(purchase, payment, amount, {
      record: async (dispatch, joint) => {
        clearImmediate(preparing)
        await storing
        // A signer may record a payment again: the existing record continues.
        if (!recording && hasLeft(purchase)) throw new Disconnected()
        recording = true
        await lease.dispatch({ dispatch, ...unstored(), ...(purchase.opened && { runs: 1 }) }, joint)
      },
    })
    await storeWork()
    return await conclude(purchase, settlement)
  } catch (fault) {
    if (fault instanceof Disconnected) {
      await storeWork()
      return await abandon(purchase)
    }
    if (fault instanceof LeaseLostError) throw fault
    if (!recording) {
      await storeWork()
      throw fault
    }
    // The record may have been stored despite the error: then recovery sends it, and the money moves.
    deps.report(fault)
    return { kind: 'pending', id: lease.record.id }
  } finally {
    clearImmediate(preparing)
  }
}

/** What a stream on credit costs is owed: while its payment is valid, a network that is away is asked again. */
async function settlePatiently(
  { deps, lease, sent, verified }: LeasedPurchase,
  payment: SettledPayment,
  amount: bigint,
  journal: Journal,
): Promise<Settlement> {
  const { id, network, scheme } = lease.record
  const about = { 'ratecard.payment': id, 'ratecard.network': network, 'ratecard.scheme': scheme }
  for (;;) {
    const settlement = await inSpan(deps.tracing, 'settle', about, () => payment.settle(amount, journal))
    if (sent === undefined || settlement.kind !== 'failed') return settlement
    if (settlement.refusal.code !== 'chain_unavailable' || timeToWork(deps, verified) <= 0) return settlement
    await deps.sleep(AGAIN_MS)
  }
}

const AGAIN_MS = 1_000

/** Work for a buyer who has disconnected counts as a failed settlement, and its answer is not kept. */
async function abandon(purchase: LeasedPurchase): Promise<PurchaseResult> {
  const { deps, request, lease, opened } = purchase
  if (lease.record.answer !== undefined || opened !== undefined) await countFailure(deps, lease.record)
  await finishWrite(deps, lease, request.fulfillment.store, 'abort')
  // What could not be rolled back is left to recovery.
  if (lease.record.pendingWrite === undefined) await lease.delete()
  else await lease.void()
  return { kind: 'disconnected' }
}

/** Continues after the outcome of a settlement. */
export async function conclude(purchase: LeasedPurchase, settlement: Settlement): Promise<PurchaseResult> {
  const { deps, lease } = purchase
  switch (settlement.kind) {
    case 'settled': {
      const { receipt } = settlement
      const result = await fulfil(purchase, await recordReceipt(deps, lease, receipt), receipt)
      if (lease.record.receipt === undefined) void storeLate(deps, lateReceipt(lease.record, receipt, result))
      return result
    }
    case 'failed':
      if (settlement.block !== undefined) await lease.failedIn(settlement.block)
      return fail(purchase, settlement.refusal)
    case 'unknown': {
      const { id, dispatch, answer } = lease.record
      if (dispatch?.kind === 'handed over') return handOver(purchase)
      // Its payer has used it up during the work: whether for us is known later, when others have been worked for.
      if (dispatch === undefined && answer !== undefined) await countFailure(deps, lease.record)
      await lease.advance('unknown')
      await lease.release()
      return { kind: 'pending', id }
    }
  }
}

/** Leaves a payment to the process that settles it, and goes on with what became of it. */
async function handOver(purchase: LeasedPurchase): Promise<PurchaseResult> {
  const { deps, lease } = purchase
  const { id, key } = lease.record
  await lease.release()
  const deadline = deps.now() + HAND_OVER_MS
  for (;;) {
    await deps.sleep(LOOK_MS)
    const record = await deps.ledger.get(key)
    if (record === undefined || deps.now() > deadline) return { kind: 'pending', id }
    const isOver = record.receipt !== undefined || chargeStatus(record) === 'no'
    const taken = isOver ? await acquireExpired(deps, record) : undefined
    if (taken === undefined) continue
    const { receipt } = taken.record
    return guarded(deps, taken, () =>
      receipt === undefined
        ? fail({ ...purchase, lease: taken }, SETTLEMENT_FAILED.refusal)
        : fulfil({ ...purchase, lease: taken }, taken.record, receipt),
    )
  }
}

/** How long a buyer waits for the process that settles its payment, and how often its record is read. */
const HAND_OVER_MS = 45_000
const LOOK_MS = 100

/** A store that was rolled back or emptied takes the record as new. */
async function recordReceipt(
  { ledger, now, report }: PurchaseDeps,
  lease: PaymentLease,
  receipt: Receipt,
): Promise<PaymentRecord> {
  try {
    return await lease.settle(receipt)
  } catch (fault) {
    report(fault)
    const { record } = lease
    const settledAt = now()
    const settled = {
      ...record,
      state: 'settled',
      receipt,
      settledAt,
      ...firstLook(record, receipt.block, settledAt),
      version: record.version + 1,
    } as const
    const stored: PaymentRecord = { ...settled, due: nextCheckAt(settled) }
    const standing = await ledger.insert(stored).catch((unavailable: unknown) => {
      report(unavailable)
      return record
    })
    return standing === undefined ? stored : { ...stored, owner: NOBODY }
  }
}

/**
 * Nothing that is stored has this owner. A later change of this payment, such as the end of its write, may have the version
 * of the receipt that the store has missed: compared with that, a mark would replace it.
 */
const NOBODY = ''

/** The money of this payment has definitely not moved. */
async function fail(
  { deps, request, lease, opened }: LeasedPurchase,
  refusal: Refusal,
): Promise<PurchaseResult> {
  const { answer } = lease.record
  if (refusal.code === 'chain_unavailable') {
    // The payment is valid: its answer waits for the same buyer.
    if (answer === undefined) await lease.delete()
    else await lease.keepForRetry()
    return { kind: 'refused', refusal }
  }
  const record = await lease.void()
  if (answer === undefined && opened === undefined) return { kind: 'refused', refusal }
  await finishWrite(deps, lease, request.fulfillment.store, 'abort')
  if (isPayersFailure(record, refusal, deps.now())) await countFailure(deps, record)
  return { kind: 'settlementFailed', record, refusal }
}

function countFailure({ ledger, now, report }: PurchaseDeps, { payer, id }: PaymentRecord): Promise<void> {
  return noteFailure(ledger, payer, id, now()).catch(report)
}

type Run =
  | { readonly kind: 'answer'; readonly answer: StoredAnswer | OpenStream; readonly metered?: Metered }
  | { readonly kind: 'metered stream'; readonly stream: MeteredStream }
  | { readonly kind: 'fault'; readonly fault: unknown }

/** Runs the handler; rolls back its pending write when it fails. `timeLeft`: its limit in milliseconds. */
async function run(
  { deps, request, verified: { payer, account }, lease }: LeasedPurchase,
  timeLeft: number,
  delivery: Delivery = 'whole',
): Promise<Run> {
  const { fulfillment, offer } = request
  const most = Math.min(offer.endpoint.operation.timeout, timeLeft)
  if (fulfillment.store !== undefined) await lease.update({ pendingWrite: true })
  try {
    const call = { payment: lease.record.id, payer, account, timeLeft: most, delivery }
    const done = await fulfillment.run(call)
    if (done.kind === 'metered stream') return { kind: 'metered stream', stream: done }
    return done.kind === 'metered'
      ? { kind: 'answer', answer: done.answer, metered: done }
      : { kind: 'answer', answer: done }
  } catch (fault) {
    await finishWrite(deps, lease, fulfillment.store, 'abort')
    return { kind: 'fault', fault }
  }
}

/**
 * Answers a payment that has settled. The receipt is known: a store that fails from here on loses a record, but a
 * connected buyer still gets the answer.
 */
async function fulfil(
  purchase: LeasedPurchase,
  record: PaymentRecord,
  receipt: Receipt,
): Promise<PurchaseResult> {
  const { deps, request, lease, opened } = purchase
  const paid = (): Paid => ({ record: lease.record.receipt === undefined ? record : lease.record, receipt })
  let answer = await lease.readAnswer()
  if (answer === undefined) {
    const done: Run = opened ? { kind: 'answer', answer: opened } : await run(purchase, Infinity)
    if (done.kind !== 'answer') {
      const fault = faultOf(done)
      await leaveOwed(purchase, fault)
      return { kind: 'paidUnfulfilled', ...paid(), fault }
    }
    if (done.answer.kind === 'stream') {
      const { runs = 0 } = lease.record
      // Counted before its first byte: a process that dies while it streams has run it anyway.
      if (opened === undefined) await lease.update({ runs: runs + 1 }).catch(deps.report)
      const streamed = recordStream(purchase, done.answer, (fault) => leaveOwed(purchase, fault))
      return { kind: 'answered', ...paid(), answer: streamed }
    }
    answer = done.answer
    await store(purchase, answer, receipt).catch(deps.report)
  }
  await finishWrite(deps, lease, request.fulfillment.store, 'commit').catch(deps.report)
  return { kind: 'answered', ...paid(), answer }
}

/** A stream that has broken off so often breaks off again. */
const MOST_RUNS = 3

/** Charged, and the work has failed: the same payment has it run again, or its money goes back. */
async function leaveOwed({ deps, lease }: LeasedPurchase, fault: unknown): Promise<void> {
  const isOver = (lease.record.runs ?? 0) >= MOST_RUNS && !deps.stopping.aborted
  const code = fault instanceof Failure ? fault.code : 'internal'
  const reason = lastingFault(fault) ?? (isOver ? code : undefined)
  if (reason !== undefined) await lease.refund({ kind: 'due', reason }).catch(deps.report)
  await lease.release().catch(deps.report)
}

/** Why the same work would fail again; undefined when it may succeed the next time. */
function lastingFault(fault: unknown): ErrorCode | undefined {
  if (fault instanceof InvalidParameter) return 'parameters_invalid'
  if (!(fault instanceof Failure) || fault.code === 'not_configured') return undefined
  return ERRORS[fault.code].retryable ? undefined : fault.code
}

/** Stores the answer, and before it the receipt if the store was unavailable when the money moved. */
async function store({ lease }: LeasedPurchase, answer: StoredAnswer, receipt: Receipt): Promise<void> {
  if (lease.record.receipt === undefined) await lease.settle(receipt)
  await lease.advance('fulfilled', { answer })
}

/** Ends the handler's pending write for this payment. Recovery repeats it after a failure. */
export async function finishWrite(
  { report }: Pick<PurchaseDeps, 'report'>,
  lease: PaymentLease,
  store: Store | undefined,
  decision: 'commit' | 'abort',
): Promise<void> {
  if (lease.record.pendingWrite === undefined || store === undefined) return
  try {
    await store[decision](lease.record.id)
  } catch (fault) {
    return report(fault)
  }
  await lease.clearPending()
}
