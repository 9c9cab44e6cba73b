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
 * Resolves to the number of records it has changed.
 */
export async function cleanUp({ ledger, now }: Pick<LeaseContext, 'ledger' | 'now'>): Promise<number> {
  await ledger.check()
  let changed = 0
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const records = await ledger.due('cleanup', now(), BATCH)
    const free = records.filter((record) => !isLeased(record, now()))
    const changes = free.map((previous): Change => ({ previous, next: cleaned(previous, now()) }))
    const made = await commitEach(ledger, changes)
    changed += made.length
    await Promise.all(
      made.map(async ({ previous: { id, answer }, next }) => {
        if (answer !== undefined && next?.answer === undefined) await deleteAnswer(ledger.answers, id, answer)
      }),
    )
    if (records.length < BATCH) break
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
export function cleaned(record: PaymentRecord, now: number): PaymentRecord | undefined {
  if (record.receipt === undefined && record.state !== 'settled' && record.state !== 'sent') {
    if (record.failedIn === undefined) return undefined
    const left = { ...voided(record, now), updatedAt: now, version: record.version + 1 }
    return { ...left, due: nextCheckAt(left) }
  }
  const { settledAt = 0, redeliver } = record
  const { dispatch, ...open } = now < settledAt + redeliver ? record : closed(record)
  const next = {
    ...open,
    ...(dispatch === undefined ? {} : { dispatch: now < payableUntil(record) ? dispatch : redact(dispatch) }),
    updatedAt: now,
    version: record.version + 1,
  }
  return { ...next, due: nextCheckAt(next) }
}

/** Payments that are owed a refund, `limit` at most; one that may still be sent again is added when it expires. */
export async function findRefundsDue(
  ledger: Pick<Ledger, 'due'>,
  limit: number,
): Promise<readonly PaymentRecord[]> {
  const records = await ledger.due('money', NEVER, limit)
  return records.filter(({ due }) => due === NEVER)
}

/** Deletes answers that no record refers to: those of processes that died in between. */
export function sweepAnswers(ledger: Ledger, now: number): Promise<number> {
  return ledger.answers.sweep(now, async (id, attempt) => {
    const record = await ledger.find(id)
    return record !== undefined && (record.answer?.attempt === attempt || now - record.updatedAt < STALE_MS)
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
  for await (const record of recordsBefore(ledger, before)) {
    if (isPrunable(record, now())) [records, bytes] = [records + 1, bytes + sizeOf(record)]
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
  for await (const record of recordsBefore(ledger, before)) {
    if (!isPrunable(record, now())) kept += 1
    else if (batch.push({ previous: record, next: undefined }) === BATCH) await flush()
  }
  await flush()
  return { records, bytes, kept }
}

async function* recordsBefore(ledger: Ledger, before: number): AsyncGenerator<PaymentRecord> {
  for await (const record of ledger.records()) {
    if (record.createdAt >= before) return
    yield record
  }
}

/** A record also prevents its payment from being accepted again, so it stays until the payment has expired. */
export function isPrunable(record: PaymentRecord, now: number): boolean {
  const { receipt, undone, due, validBefore, settledAt = 0, redeliver } = record
  const isCharged = receipt !== undefined && !isOwed(record) && !isRefundDue(record, now)
  const isFinished = due === undefined && (isCharged || (receipt === undefined && undone !== undefined))
  return isFinished && validBefore < now && settledAt + redeliver < now
}

function sizeOf(record: PaymentRecord): number {
  return Buffer.byteLength(encodeRecord(record))
}
