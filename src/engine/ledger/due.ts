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
      return entry.prepared === undefined ? Math.max(leaseUntil, end) : leaseUntil
    case 'unknown':
      return entry.updatedAt + Math.min(FIRST_LOOK_MS * 2 ** Math.min(entry.attempts, 10), LONGEST_WAIT_MS)
  }
}

function afterSettlement({ answer, prepared, leaseUntil, settledAt, redeliver }: Omit<Entry, 'due'>) {
  if (prepared !== undefined) return leaseUntil
  return answer === undefined ? undefined : (settledAt ?? 0) + redeliver
}
