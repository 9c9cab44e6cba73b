import { type RootDatabase } from 'lmdb'
import { type Queue, isUndelivered, queueOf } from '../payment-lifecycle.ts'
import type { PaymentRecord } from '../payment-record.ts'
import { searchName, searchNames, type SearchPlace, type SearchTerm } from '../search-term.ts'

/** Records per look-up while all are listed. */
export const PAGE = 100

/** Creation time and id of a record. */
export type Age = [number, string]

/** Indexes of the records, updated in the same transactions. */
export function openIndexes(root: RootDatabase) {
  const ages = root.openDB<string, Age>({ name: 'ages', encoding: 'string' })
  const buyers = root.openDB<string, [string, number, string]>({ name: 'undelivered', encoding: 'string' })
  const dues = root.openDB<string, [Queue, number, string]>({ name: 'dues', encoding: 'string' })
  const found = root.openDB<string, [string, number, string]>({ name: 'found', encoding: 'string' })
  const identifiers = root.openDB<string, string>({ name: 'identifiers', encoding: 'string' })

  return {
    /** Replaces what was stored (undefined: nothing) in every index. */
    move: (previous: PaymentRecord | undefined, next: PaymentRecord | undefined): void => {
      if (previous === undefined && next !== undefined) void ages.put([next.createdAt, next.id], '')
      if (previous !== undefined && next === undefined) void ages.remove([previous.createdAt, previous.id])
      if (previous !== undefined && isUndelivered(previous)) void buyers.remove(buyerKey(previous))
      if (next !== undefined && isUndelivered(next)) void buyers.put(buyerKey(next), '')
      if (previous?.due !== undefined) void dues.remove([queueOf(previous), previous.due, previous.id])
      if (next?.due !== undefined) void dues.put([queueOf(next), next.due, next.id], '')
      const [before, after] = [searchNames(previous), searchNames(next)]
      for (const name of before) if (!after.includes(name)) void found.remove(foundKey(name, previous))
      for (const name of after) if (!before.includes(name)) void found.put(foundKey(name, next), '')
      if (previous?.identifier !== next?.identifier) {
        if (previous?.identifier !== undefined) void identifiers.remove(previous.identifier)
        if (next?.identifier !== undefined) void identifiers.put(next.identifier, next.id)
      }
    },
    /** Id of the record with the identifier of this one. */
    identified: ({ identifier }: PaymentRecord): string[] => {
      const id = identifier === undefined ? undefined : identifiers.get(identifier)
      return id === undefined ? [] : [id]
    },
    due: (queue: Queue, now: number, limit: number): string[] =>
      Array.from(dues.getKeys({ start: [queue], end: [queue, now + 1], limit }), ([, , id]) => id),
    /** Newest first. */
    undelivered: (buyer: string, since: number, limit: number): string[] => {
      const newestFirst = { start: [buyer, Number.MAX_SAFE_INTEGER], end: [buyer, since], reverse: true }
      return Array.from(buyers.getKeys({ ...newestFirst, limit }), ([, , id]) => id)
    },
    /** Newest first. */
    search: (term: SearchTerm | undefined, limit: number, before: SearchPlace | undefined): string[] => {
      const { createdAt = Number.MAX_SAFE_INTEGER, id = '' } = before ?? {}
      const newestFirst = { reverse: true, exclusiveStart: before !== undefined, limit }
      if (term === undefined)
        return Array.from(ages.getKeys({ start: [createdAt, id], ...newestFirst }), ([, each]) => each)
      const name = searchName(term)
      return Array.from(
        found.getKeys({ start: [name, createdAt, id], end: [name, 0], ...newestFirst }),
        ([, , each]) => each,
      )
    },
    /** The oldest records that were created at a time or later. */
    since: (createdAt: number, limit: number): Age[] =>
      Array.from(ages.getKeys({ start: [createdAt], limit })),
    /** All that were created between two times, both included. */
    between: (from: number, to: number): string[] =>
      Array.from(ages.getKeys({ start: [from], end: [to + 1] }), ([, id]) => id),
    /** The next records by age; undefined: from the oldest. */
    after: (last: Age | undefined, limit: number): Age[] =>
      Array.from(
        ages.getKeys({ ...(last === undefined ? {} : { start: last, exclusiveStart: true }), limit }),
      ),
  }
}

function buyerKey({ buyerKey: buyer, createdAt, id }: PaymentRecord): [string, number, string] {
  return [buyer, createdAt, id]
}

function foundKey(name: string, record: PaymentRecord | undefined): [string, number, string] {
  return [name, record?.createdAt ?? 0, record?.id ?? '']
}
