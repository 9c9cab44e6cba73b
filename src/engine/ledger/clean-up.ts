import { deleteAnswer, STALE_MS } from './answers.ts'
import type { Desk } from './claim.ts'
import type { Entry } from './entry.ts'
import type { Change, Ledger } from './ledger.ts'
import { closed, isLeased, nextCheckAt, payableUntil, redact } from './lifecycle.ts'

const BATCH = 200
/** Batches of one round: other processes take their part, and the event loop breathes in between. */
const BATCHES = 25

/**
 * Deletes what is over, in batches: reservations and refused payments that nobody comes back for, payment orders that
 * have expired, answers after the time of redelivery. Any number of processes may do it at the same time.
 *
 * Resolves to the number of entries it has changed.
 */
export async function cleanUp({ ledger, now }: Pick<Desk, 'ledger' | 'now'>): Promise<number> {
  await ledger.check()
  let changed = 0
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const entries = await ledger.due('cleanup', now(), BATCH)
    const free = entries.filter((entry) => !isLeased(entry, now()))
    const changes = free.map((previous): Change => ({ previous, next: cleaned(previous, now()) }))
    const made = await commitEach(ledger, changes)
    changed += made.length
    for (const { previous, next } of made)
      if (previous.answer !== undefined && next?.answer === undefined)
        await deleteAnswer(ledger.answers, previous.id, previous.answer)
    if (entries.length < BATCH) break
  }
  return changed
}

/** All at once, or, when somebody else is at one of them, those that can be. */
async function commitEach(ledger: Ledger, changes: readonly Change[]): Promise<readonly Change[]> {
  if (changes.length === 0 || (await ledger.commit(changes))) return changes
  const made = await Promise.all(changes.map((change) => ledger.commit([change])))
  return changes.filter((_, place) => made[place])
}

/** What is left of an entry; undefined: nothing. */
function cleaned(entry: Entry, now: number): Entry | undefined {
  if (entry.receipt === undefined && entry.state !== 'settled' && entry.state !== 'sent') return undefined
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

/** Deletes answers that no record refers to: those of processes that have died in between. */
export function sweepAnswers(ledger: Ledger, now: number): Promise<number> {
  return ledger.answers.sweep(now, async (id, attempt) => {
    const entry = await ledger.find(id)
    return entry !== undefined && (entry.answer?.attempt === attempt || now - entry.updatedAt < STALE_MS)
  })
}

/**
 * Deletes the records of sales that were made before a time and are over: answered, or not to be answered any more.
 * Resolves to their number.
 */
export async function prune(ledger: Ledger, before: number): Promise<number> {
  let pruned = 0
  let batch: Change[] = []
  const flush = async (): Promise<void> => {
    pruned += (await commitEach(ledger, batch)).length
    batch = []
  }
  for await (const entry of ledger.entries()) {
    if (entry.createdAt >= before) break
    const { receipt, due, validBefore } = entry
    if (receipt === undefined || due !== undefined || validBefore >= before) continue
    batch.push({ previous: entry, next: undefined })
    if (batch.length === BATCH) await flush()
  }
  await flush()
  return pruned
}
