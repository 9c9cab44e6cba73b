import { Failure } from '../base/errors.ts'
import { LeaseLostError, acquireExpired, type PaymentLease, type LeaseContext } from '../ledger/lease.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { payableUntil } from '../ledger/payment-lifecycle.ts'
import { SETTLEMENT_FAILED, type Settlement } from '../payment/settlement.ts'
import type { Protocol } from '../payment/protocol.ts'
import { settlementOfFreeWork } from './free-work.ts'
import { isRedeliverable } from './redelivery.ts'
import type { Store } from './request.ts'
import { finishWrite } from './settlement-flow.ts'
import { isPayersFailure, noteFailure } from './payer-throttle.ts'
import { noteUnpaid } from './payer-credit.ts'

export interface RecoveryDeps extends LeaseContext {
  /** The protocols that are offered now. */
  readonly protocols: () => readonly Protocol[]
  /** The store of an operation's handler; undefined when it stores nothing. */
  readonly storeOf: (operation: string) => Store | undefined
  readonly report: (fault: unknown) => void
}

/** Payments that one round begins with. */
const PER_ROUND = 50
/** Records read beyond that, so that those which only another process can finish do not fill the round. */
const READ_AHEAD = 4 * PER_ROUND

/**
 * Finishes what processes have left that died or did not learn an outcome: resolves payments by what the chain shows, and
 * commits or rolls back prepared writes. Any number of processes may do it at the same time.
 *
 * Resolves to the work it has begun: it waits for blocks, and the next round, in which others are found that must be sent
 * before they expire, does not wait for it.
 */
export async function recover(deps: RecoveryDeps): Promise<readonly Promise<void>[]> {
  const records = await dueHere(deps)
  return records.slice(0, PER_ROUND).map((record) => recoverPayment(deps, record))
}

/** Begins to settle what other processes have handed over to accounts of this one: their buyers wait. */
export async function takeHandedOver(deps: RecoveryDeps): Promise<readonly Promise<void>[]> {
  const records = await dueHere(deps)
  return records
    .filter(({ dispatch }) => dispatch?.kind === 'handed over')
    .map((record) => recoverPayment(deps, record))
}

/** Payments that are due, and that this process can finish. */
async function dueHere(deps: RecoveryDeps): Promise<readonly PaymentRecord[]> {
  const due = await deps.ledger.due('money', deps.now(), READ_AHEAD)
  return due.filter((record) => !isForAnotherProcess(deps, record))
}

/** A process without the operation leaves its pending write to one that has it, while the answer is owed. */
function isForAnotherProcess({ storeOf, now, protocols }: RecoveryDeps, record: PaymentRecord): boolean {
  const { operation, pendingWrite, createdAt, redeliver } = record
  const protocol = protocols().find(({ name }) => name === record.protocol)
  if (protocol?.isForAnother?.(record)) return true
  return pendingWrite !== undefined && storeOf(operation) === undefined && now() - createdAt < redeliver
}

async function recoverPayment(deps: RecoveryDeps, record: PaymentRecord): Promise<void> {
  let lease: PaymentLease | undefined
  try {
    lease = await acquireExpired(deps, record)
    if (lease !== undefined) await finish(deps, lease)
    else if (record.undone !== undefined) await resend(deps, record)
  } catch (fault) {
    // Another process is faster, or the store is unavailable: the next round continues.
    if (!(fault instanceof LeaseLostError)) deps.report(fault)
  } finally {
    lease?.stopRenewal()
  }
}

async function finish(deps: RecoveryDeps, lease: PaymentLease): Promise<void> {
  const { state, receipt, answer } = lease.record
  if (receipt !== undefined) {
    // Paid work that failed has left nothing worth keeping: it is done again.
    await decide(deps, lease, answer === undefined ? 'abort' : 'commit')
    const { pendingWrite } = lease.record
    if (pendingWrite === undefined && !isRedeliverable(lease.record, deps.now())) await lease.purgeAnswer()
    else await lease.release()
    return
  }
  switch (state) {
    case 'reserved':
    case 'voided':
      await decide(deps, lease, 'abort')
      return lease.record.pendingWrite === undefined ? lease.delete() : lease.release()
    case 'fulfilled':
    case 'settling':
    case 'unknown':
    case 'settled':
    case 'sent':
      return resolve(deps, lease)
  }
}

async function resolve(deps: RecoveryDeps, lease: PaymentLease): Promise<void> {
  const { record } = lease
  const protocol = deps.protocols().find(({ name }) => name === record.protocol)
  if (protocol === undefined) return lease.release()
  const settlement = settlementOfFreeWork(record) ?? (await protocol.resolve(record))
  return conclude(deps, protocol, lease, settlement)
}

/** Records the outcome of a payment that nobody waits for. */
export async function conclude(
  deps: RecoveryDeps,
  protocol: Protocol,
  lease: PaymentLease,
  found: Settlement,
): Promise<void> {
  const { ledger, now, report } = deps
  const { record } = lease
  if (found.kind === 'failed' && found.block !== undefined) await lease.failedIn(found.block)
  const settlement = isLost(record, found) ? await resettle(protocol, lease) : found
  switch (settlement.kind) {
    case 'settled':
      await lease.settle(settlement.receipt)
      if (wasDenied(record)) await oweBack(deps, lease)
      await decide(deps, lease, 'commit')
      return lease.release()
    case 'unknown':
      await lease.advance(record.state === 'fulfilled' ? 'fulfilled' : 'unknown')
      return lease.release()
    case 'failed': {
      const { id, payer, answer, dispatch, undone } = lease.record
      if (undone !== undefined)
        report(
          new Failure(
            'settlement_failed',
            `payment ${id} was answered, then undone by a reorganization, and is not charged`,
          ),
        )
      // What nobody has sent has not failed for its payer; what was refused is counted where its buyer waits.
      const wasSent = dispatch !== undefined && dispatch.kind !== 'handed over'
      if (answer !== undefined && wasSent && isPayersFailure(record, settlement.refusal, now()))
        await noteFailure(ledger, payer, id, now()).catch(report)
      // The payment may arrive again and be charged until it expires: the answer is kept for it.
      if (answer !== undefined && now() < payableUntil(record)) return lease.keepForRetry()
      // It was sent on credit.
      if (answer !== undefined && record.settle === 'after' && record.runs !== undefined)
        await noteUnpaid(ledger, record, now()).catch(report)
      await lease.void()
      await decide(deps, lease, 'abort')
      return lease.release()
    }
  }
}

/**
 * What was sent can never be mined any more, and its buyer may have the answer: a reorganization has undone the settlement,
 * or the store did not take the receipt.
 */
function isLost({ dispatch }: PaymentRecord, { kind }: Settlement): boolean {
  return kind === 'failed' && dispatch !== undefined
}

/** Whether the buyer was told that nothing was charged, although something had been sent. */
function wasDenied({ state, failedIn, undone }: PaymentRecord): boolean {
  return failedIn !== undefined && undone === undefined && (state === 'voided' || state === 'fulfilled')
}

/** What was told becomes true: the money goes back. */
async function oweBack({ report }: RecoveryDeps, lease: PaymentLease): Promise<void> {
  const { id } = await lease.refund({ kind: 'due', reason: 'settlement_failed' })
  const detail = `the transaction of payment ${id} had failed and its buyer was told that nothing was charged; a reorganization has undone that block, and it was carried out in another one: a refund is due`
  report(new Failure('settlement_failed', detail))
}

/** Sends what is recorded for a charged payment again while another process, or a dead one, holds it. */
export async function resend(
  { protocols }: Pick<RecoveryDeps, 'protocols'>,
  record: PaymentRecord,
): Promise<void> {
  await protocols()
    .find(({ name }) => name === record.protocol)
    ?.resend?.(record)
}

/** Settles a payment again: its buyer does not come back for that. */
async function resettle(protocol: Protocol, lease: PaymentLease): Promise<Settlement> {
  const settlement = await protocol.resettle?.(lease.record, {
    record: async (dispatch, joint) => {
      await lease.dispatch({ dispatch }, joint)
    },
  })
  if (settlement?.kind !== 'failed') return settlement ?? SETTLEMENT_FAILED
  // Nothing was sent: it is tried again while the payment is valid.
  const { code, detail } = settlement.refusal
  return code === 'chain_unavailable' ? { kind: 'unknown', detail } : settlement
}

/** Commits or aborts the handler's pending write for the payment. */
async function decide(deps: RecoveryDeps, lease: PaymentLease, decision: 'commit' | 'abort'): Promise<void> {
  const { id, operation, pendingWrite } = lease.record
  if (pendingWrite === undefined) return
  const store = deps.storeOf(operation)
  if (store !== undefined) return finishWrite(deps, lease, store, decision)
  // A reload may have removed the operation since the record was taken over.
  if (isForAnotherProcess(deps, lease.record)) return
  deps.report(new Error(`${operation} is gone: no ${decision} of what it stored for payment ${id}`))
  await lease.clearPending()
}
