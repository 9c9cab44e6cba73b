import type { PaymentRecord } from '../payment-record.ts'
import { casToken, isUndelivered, queueOf } from '../payment-lifecycle.ts'
import { decodeRecord, encodeRecord } from '../record-codec.ts'
import { totalChanges } from '../sales-totals.ts'
import { searchNames } from '../search-term.ts'
import type { RedisConnection } from './redis-connection.ts'
import { KEYS, NO_RECORD, type Stored, type StoredTotalChange } from './redis-scripts.ts'

/** The records of these ids, as far as they exist. */
export async function readRecords(
  { ask }: Pick<RedisConnection, 'ask'>,
  ids: readonly string[],
): Promise<PaymentRecord[]> {
  if (ids.length === 0) return []
  const values = await ask((redis) => redis.mget(ids.map(KEYS.payment)))
  return values.flatMap((value) => (value === null ? [] : [entryOf(value)]))
}

type Names = Pick<Stored, 'id' | 'token' | 'age' | 'undelivered' | 'found'>

/** The keys under which a record is found. */
export function namesOf(record: PaymentRecord): Names {
  const { id, buyerKey: buyer, createdAt } = record
  const age = `${timeOf(createdAt)}:${id}`
  return {
    id,
    token: casToken(record),
    age,
    undelivered: isUndelivered(record) ? `${buyer}:${age}` : '',
    found: searchNames(record)
      .map((name) => `${name}:${age}`)
      .join('\n'),
  }
}

/** In the place of the names of a new record’s predecessor. */
export function nothingBefore(record: PaymentRecord): Names {
  return { ...namesOf(record), token: NO_RECORD, undelivered: '', found: '' }
}

/** What a change of a record changes in the totals. */
export function storedTotals(
  previous: PaymentRecord | undefined,
  next: PaymentRecord | undefined,
): StoredTotalChange[] {
  const createdAt = (next ?? previous)?.createdAt ?? 0
  return totalChanges(previous, next).map((change) => ({ createdAt, change }))
}

/** A record as scripts store it. */
export function storedOf(record: PaymentRecord): Stored {
  const { due, identifier } = record
  return {
    ...namesOf(record),
    record: encodeRecord(record),
    queue: queueOf(record),
    due: due === undefined ? '' : String(due),
    identifier: identifier ?? '',
  }
}

/** The record after the lines that scripts read: compare-and-set token and identifier. */
export function entryOf(value: string): PaymentRecord {
  return decodeRecord(value.slice(value.indexOf('\n', value.indexOf('\n') + 1) + 1))
}

/** Texts that sort like their times. */
export function timeOf(time: number): string {
  return String(time).padStart(String(Number.MAX_SAFE_INTEGER).length, '0')
}

/** The id in a member of an index. */
export function idOf(member: string): string {
  return member.slice(member.lastIndexOf(':') + 1)
}
