import type { Entry } from './entry.ts'

/** A block later than the end of a payment has to be there before anybody can say that it was never used. */
const AFTER_END_MS = 30_000

const FIRST_LOOK_MS = 5_000
const LONGEST_WAIT_MS = 300_000

/** When somebody has to look after an entry, by what it is; undefined: never again. */
export function dueOf(entry: Omit<Entry, 'due'>): number | undefined {
  const { state, leaseUntil, validBefore } = entry
  const end = validBefore + AFTER_END_MS
  switch (state) {
    case 'reserved':
    case 'settling':
      return leaseUntil
    case 'fulfilled':
      // The work is done and nobody has asked for the money yet: the payment may come again until its end.
      return entry.receipt === undefined ? Math.max(leaseUntil, end) : afterSettlement(entry)
    case 'settled':
    case 'sent':
      return afterSettlement(entry)
    case 'voided':
      return entry.prepared === undefined ? Math.max(leaseUntil, end) : nextAttempt(entry)
    case 'unknown':
      return entry.updatedAt + backoff(entry.attempts)
  }
}

/** Less and less often: what fails now may fail for long. */
function backoff(attempts: number): number {
  return Math.min(FIRST_LOOK_MS * 2 ** Math.min(attempts, 10), LONGEST_WAIT_MS)
}

/** The first attempt is due at the end of the lease, in case its process has died. */
function nextAttempt({ leaseUntil, updatedAt, attempts }: Omit<Entry, 'due'>): number {
  return attempts <= 1 ? leaseUntil : Math.max(leaseUntil, updatedAt + backoff(attempts))
}

function afterSettlement(entry: Omit<Entry, 'due'>): number | undefined {
  const { answer, prepared, settledAt, redeliver } = entry
  if (prepared !== undefined) return nextAttempt(entry)
  return answer === undefined ? undefined : (settledAt ?? 0) + redeliver
}
