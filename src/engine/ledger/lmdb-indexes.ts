import type { RootDatabase } from 'lmdb'
import type { Entry } from './entry.ts'
import { isUndelivered, queueOf, type Queue } from './lifecycle.ts'

/** When an entry was made, and its id. */
export type Age = [number, string]

/** The ways to entries besides their ids: kept in the same transactions as the entries. */
export interface Indexes {
  /** Takes the place of what was stored (undefined: nothing) in every index. */
  move(previous: Entry | undefined, next: Entry | undefined): void
  /** Id of the entry that has the identifier of this one, if there is one. */
  identified(entry: Entry): string[]
  due(queue: Queue, now: number, limit: number): string[]
  /** Newest first. */
  undelivered(buyer: string, since: number, limit: number): string[]
  /** The next entries in the order of their age; undefined: the oldest. */
  after(last: Age | undefined, limit: number): Age[]
}

export function openIndexes(root: RootDatabase): Indexes {
  const ages = root.openDB<string, Age>({ name: 'ages', encoding: 'string' })
  const buyers = root.openDB<string, [string, number, string]>({ name: 'undelivered', encoding: 'string' })
  const dues = root.openDB<string, [Queue, number, string]>({ name: 'dues', encoding: 'string' })
  const identifiers = root.openDB<string, string>({ name: 'identifiers', encoding: 'string' })

  return {
    move: (previous, next) => {
      if (previous === undefined && next !== undefined) void ages.put([next.createdAt, next.id], '')
      if (previous !== undefined && next === undefined) void ages.remove([previous.createdAt, previous.id])
      if (previous !== undefined && isUndelivered(previous)) void buyers.remove(buyerKey(previous))
      if (next !== undefined && isUndelivered(next)) void buyers.put(buyerKey(next), '')
      if (previous?.due !== undefined) void dues.remove([queueOf(previous), previous.due, previous.id])
      if (next?.due !== undefined) void dues.put([queueOf(next), next.due, next.id], '')
      if (previous?.identifier !== next?.identifier) {
        if (previous?.identifier !== undefined) void identifiers.remove(previous.identifier)
        if (next?.identifier !== undefined) void identifiers.put(next.identifier, next.id)
      }
    },
    identified: ({ identifier }) => {
      const id = identifier === undefined ? undefined : identifiers.get(identifier)
      return id === undefined ? [] : [id]
    },
    due: (queue, now, limit) =>
      Array.from(dues.getKeys({ start: [queue], end: [queue, now + 1], limit }), ([, , id]) => id),
    undelivered: (buyer, since, limit) => {
      const newestFirst = { start: [buyer, Number.MAX_SAFE_INTEGER], end: [buyer, since], reverse: true }
      return Array.from(buyers.getKeys({ ...newestFirst, limit }), ([, , id]) => id)
    },
    after: (last, limit) =>
      Array.from(
        ages.getKeys({ ...(last === undefined ? {} : { start: last, exclusiveStart: true }), limit }),
      ),
  }
}

function buyerKey({ buyer, createdAt, id }: Entry): [string, number, string] {
  return [buyer, createdAt, id]
}
