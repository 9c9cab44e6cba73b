import { deleteAnswer, STALE_MS } from './answers.ts'
import type { LeaseContext } from './lease.ts'
import type { PaymentRecord } from './payment-record.ts'
import type { Change, Ledger } from './ledger.ts'
import {
  closed,
  isLeased,
  isOwed,
  isRefundDue,
  NEVER,
  nextCheckAt,
  payableUntil,
  redact,
  voided,
} from './payment-lifecycle.ts'
import { encodeRecord } from './record-codec.ts'

const BATCH = 200
/** Batches per round: other processes do the rest, and the event loop runs in between. */
const BATCHES = 25

/**
 * Deletes what is over, in batches: reservations and refused payments that nobody comes back for, payment orders that
 * have expired, answers after the redelivery period. Any number of processes may do it at the same time.
 *
 * Resolves to the number of entries it has changed.
 */
export async function cleanUp({ ledger, now }: Pick<LeaseContext, 'ledger' | 'now'>): Promise<number> {
  await ledger.check()
  let changed = 0
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const entries = await ledger.due('cleanup', now(), BATCH)
    const free = entries.filter((entry) => !isLeased(entry, now()))
    const changes = free.map((previous): Change => ({ previous, next: cleaned(previous, now()) }))
    const made = await commitEach(ledger, changes)
    changed += made.length
    await Promise.all(
      made.map(async ({ previous: { id, answer }, next }) => {
        if (answer !== undefined && next?.answer === undefined) await deleteAnswer(ledger.answers, id, answer)
      }),
    )
    if (entries.length < BATCH) break
  }
  return changed
}

/** Commits all changes at once, or if another process holds one of the records, those that are possible. */
export async function commitEach(ledger: Ledger, changes: readonly Change[]): Promise<readonly Change[]> {
  if (changes.length === 0 || (await ledger.commit(changes))) return changes
  const made = await Promise.all(changes.map((change) => ledger.commit([change])))
  return changes.filter((_, place) => made[place])
}

/** What remains of a record; undefined: nothing. */
export function cleaned(entry: PaymentRecord, now: number): PaymentRecord | undefined {
  if (entry.receipt === undefined && entry.state !== 'settled' && entry.state !== 'sent') {
    if (entry.failedIn === undefined) return undefined
    const left = { ...voided(entry, now), updatedAt: now, version: entry.version + 1 }
    return { ...left, due: nextCheckAt(left) }
  }
  const { settledAt = 0, redeliver } = entry
  const { dispatch, ...open } = now < settledAt + redeliver ? entry : closed(entry)
  const next = {
    ...open,
    ...(dispatch === undefined ? {} : { dispatch: now < payableUntil(entry) ? dispatch : redact(dispatch) }),
    updatedAt: now,
    version: entry.version + 1,
  }
  return { ...next, due: nextCheckAt(next) }
}

/** Payments that are owed a refund, `limit` at most; one that may still be sent again is added when it expires. */
export async function findRefundsDue(
  ledger: Pick<Ledger, 'due'>,
  limit: number,
): Promise<readonly PaymentRecord[]> {
  const entries = await ledger.due('money', NEVER, limit)
  return entries.filter(({ due }) => due === NEVER)
}

/** Deletes answers that no record refers to: those of processes that died in between. */
export function sweepAnswers(ledger: Ledger, now: number): Promise<number> {
  return ledger.answers.sweep(now, async (id, attempt) => {
    const entry = await ledger.find(id)
    return entry !== undefined && (entry.answer?.attempt === attempt || now - entry.updatedAt < STALE_MS)
  })
}

/** Number of records that a prune deletes, and of equally old ones that it keeps. */
interface PruneResult {
  readonly records: number
  /** Size of the stored records, without indexes. */
  readonly bytes: number
  /** Unfinished, owed an answer, or within the redelivery period. */
  readonly kept: number
}

type PruneDeps = Pick<LeaseContext, 'ledger' | 'now'>

/** What `prune` would delete. `before`: milliseconds since the epoch. */
export async function measurePrune({ ledger, now }: PruneDeps, before: number): Promise<PruneResult> {
  let [records, bytes, kept] = [0, 0, 0]
  for await (const entry of entriesBefore(ledger, before)) {
    if (isPrunable(entry, now())) [records, bytes] = [records + 1, bytes + sizeOf(entry)]
    else kept += 1
  }
  return { records, bytes, kept }
}

/**
 * Deletes the records of finished payments from before a time, in milliseconds since the epoch. Servers may use the
 * ledger meanwhile.
 */
export async function prune({ ledger, now }: PruneDeps, before: number): Promise<PruneResult> {
  let [records, bytes, kept] = [0, 0, 0]
  let batch: Change[] = []
  const flush = async (): Promise<void> => {
    const made = await commitEach(ledger, batch)
    records += made.length
    bytes += made.reduce((sum, { previous }) => sum + sizeOf(previous), 0)
    kept += batch.length - made.length
    batch = []
  }
  for await (const entry of entriesBefore(ledger, before)) {
    if (!isPrunable(entry, now())) kept += 1
    else if (batch.push({ previous: entry, next: undefined }) === BATCH) await flush()
  }
  await flush()
  return { records, bytes, kept }
}

async function* entriesBefore(ledger: Ledger, before: number): AsyncGenerator<PaymentRecord> {
  for await (const entry of ledger.entries()) {
    if (entry.createdAt >= before) return
    yield entry
  }
}

/** A record also prevents its payment from being accepted again, so it stays until the payment has expired. */
export function isPrunable(entry: PaymentRecord, now: number): boolean {
  const { receipt, undone, due, validBefore, settledAt = 0, redeliver } = entry
  const isCharged = receipt !== undefined && !isOwed(entry) && !isRefundDue(entry, now)
  const isFinished = due === undefined && (isCharged || (receipt === undefined && undone !== undefined))
  return isFinished && validBefore < now && settledAt + redeliver < now
}

function sizeOf(entry: PaymentRecord): number {
  return Buffer.byteLength(encodeRecord(entry))
}
