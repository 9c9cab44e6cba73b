import { LeaseLostError, acquireExpired, type PaymentLease, type LeaseContext } from '../ledger/lease.ts'
import { cleanUp } from '../ledger/clean-up.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { payableUntil } from '../ledger/payment-lifecycle.ts'
import type { Protocol } from '../protocols/protocol.ts'
import { isRedeliverable } from './redelivery.ts'
import type { Store } from './request.ts'
import { finishWrite, noteFailure } from './settlement-flow.ts'

export interface RecoveryDeps extends LeaseContext {
  /** The ways to be paid that are offered now. */
  readonly protocols: () => readonly Protocol[]
  /** What decides over the things an operation has stored; undefined when it stores nothing. */
  readonly storeOf: (operation: string) => Store | undefined
  readonly report: (fault: unknown) => void
}

/** Payments of one round, all at once: one that waits for its block must not hold up the others. */
const AT_ONCE = 50
/** Read beyond that, so that entries which only another process can finish do not take every place. */
const READ_AHEAD = 4 * AT_ONCE

/**
 * Finishes what processes that have died, or did not know, have left: payments to be resolved by what the chain shows,
 * work to be committed or rolled back; and cleans up what is over. Any number of processes may do it at the same time.
 *
 * Resolves to the number of entries it has found due.
 */
export async function recover(deps: RecoveryDeps): Promise<number> {
  const due = await deps.ledger.due('money', deps.now(), READ_AHEAD)
  const entries = due.filter((entry) => !isForAnotherProcess(deps, entry)).slice(0, AT_ONCE)
  const [cleaned] = await Promise.all([cleanUp(deps), ...entries.map((entry) => recoverEntry(deps, entry))])
  return entries.length + cleaned
}

/** A block that was seen longer ago than this is not undone any more. */
const REORG_MS = 120_000
/** How long the transaction of a settled payment is kept, at the most. */
const KEPT_MS = 3_900_000
/** Payments that a start looks at again, at most. */
const RECHECKED = 500

/**
 * Looks once more at what others have settled a moment ago, and sends it again when a reorganization has undone its block:
 * the process that watched it may be dead. To be called once, when a process starts.
 */
export async function recheckSettled(deps: RecoveryDeps): Promise<void> {
  const { ledger, owner, now, protocols, report } = deps
  const entries = await ledger.due('cleanup', now() + KEPT_MS, RECHECKED)
  const recheck = async (entry: PaymentRecord): Promise<void> => {
    const { id, protocol, dispatch, settledAt = 0 } = entry
    if (entry.owner === owner || settledAt < now() - REORG_MS) return
    if (dispatch === undefined || dispatch.kind === 'facilitator' || dispatch.raw === undefined) return
    const settlement = await protocols()
      .find(({ name }) => name === protocol)
      ?.resolve(entry)
    if (settlement?.kind === 'failed')
      report(new Error(`payment ${id} was undone by a reorganization after its answer, and is not charged`))
  }
  for (let first = 0; first < entries.length; first += AT_ONCE)
    await Promise.all(entries.slice(first, first + AT_ONCE).map((entry) => recheck(entry).catch(report)))
}

/** A process that does not have the operation leaves what it stored to one that does, as long as the answer is owed. */
function isForAnotherProcess({ storeOf, now }: RecoveryDeps, entry: PaymentRecord): boolean {
  const { operation, pendingWrite, createdAt, redeliver } = entry
  return pendingWrite !== undefined && storeOf(operation) === undefined && now() - createdAt < redeliver
}

async function recoverEntry(deps: RecoveryDeps, entry: PaymentRecord): Promise<void> {
  let lease: PaymentLease | undefined
  try {
    lease = await acquireExpired(deps, entry)
    if (lease !== undefined) await finish(deps, lease)
  } catch (fault) {
    // Another process is faster, or the store is away: the next round sees what is left.
    if (!(fault instanceof LeaseLostError)) deps.report(fault)
  } finally {
    lease?.stopRenewal()
  }
}

async function finish(deps: RecoveryDeps, lease: PaymentLease): Promise<void> {
  const { state, receipt, answer } = lease.entry
  if (receipt !== undefined) {
    // Work that was paid for and failed has left nothing worth keeping: it is done again.
    await decide(deps, lease, answer === undefined ? 'abort' : 'commit')
    const { pendingWrite } = lease.entry
    if (pendingWrite === undefined && !isRedeliverable(lease.entry, deps.now())) await lease.purgeAnswer()
    else await lease.release()
    return
  }
  switch (state) {
    case 'reserved':
    case 'voided':
      await decide(deps, lease, 'abort')
      return lease.entry.pendingWrite === undefined ? lease.delete() : lease.release()
    case 'fulfilled':
    case 'settling':
    case 'unknown':
    case 'settled':
    case 'sent':
      return resolve(deps, lease)
  }
}

async function resolve(deps: RecoveryDeps, lease: PaymentLease): Promise<void> {
  const { ledger, now, report } = deps
  const { entry } = lease
  const protocol = deps.protocols().find(({ name }) => name === entry.protocol)
  if (protocol === undefined) return lease.release()
  const settlement = await protocol.resolve(entry)
  switch (settlement.kind) {
    case 'settled':
      await lease.settle(settlement.receipt)
      await decide(deps, lease, 'commit')
      return lease.release()
    case 'unknown':
      await lease.advance(entry.state === 'fulfilled' ? 'fulfilled' : 'unknown')
      return lease.release()
    case 'failed': {
      const { id, payer, answer, dispatch } = entry
      if (answer !== undefined && dispatch !== undefined)
        await noteFailure(ledger, payer, id, now()).catch(report)
      // The payment may come again until it ends, and be charged then: the work is not done twice.
      if (answer !== undefined && now() < payableUntil(entry)) return lease.keepForRetry()
      await lease.void()
      await decide(deps, lease, 'abort')
      return lease.release()
    }
  }
}

/** Commits or aborts what the handler has stored for the payment. */
async function decide(deps: RecoveryDeps, lease: PaymentLease, decision: 'commit' | 'abort'): Promise<void> {
  const { id, operation, pendingWrite } = lease.entry
  if (pendingWrite === undefined) return
  const store = deps.storeOf(operation)
  if (store !== undefined) return finishWrite(deps, lease, store, decision)
  // A reload may have removed the operation since the entry was taken over.
  if (isForAnotherProcess(deps, lease.entry)) return
  deps.report(new Error(`${operation} is gone: no ${decision} of what it stored for payment ${id}`))
  await lease.clearPending()
}
