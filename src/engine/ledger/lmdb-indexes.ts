import type { RootDatabase } from 'lmdb'
import type { Entry } from './entry.ts'

/** The ways to entries besides their ids: kept in the same transactions as the entries. */
export interface Indexes {
  /** Takes the place of what was stored (undefined: nothing) in every index. */
  move(previous: Entry | undefined, next: Entry | undefined): void
  /** Id of the entry that has the identifier of this one. */
  identified({ identifier }: Entry): string | undefined
  due(now: number, limit: number): string[]
  /** Newest first. */
  bought(buyer: string, since: number): string[]
}

export function openIndexes(root: RootDatabase): Indexes {
  const dues = root.openDB<string, [number, string]>({ name: 'dues', encoding: 'string' })
  const buyers = root.openDB<string, [string, number, string]>({ name: 'buyers', encoding: 'string' })
  const identifiers = root.openDB<string, string>({ name: 'identifiers', encoding: 'string' })
  return {
    move: (previous, next) => {
      const [old, fresh] = [placesOf(previous), placesOf(next)]
      if (old.due !== undefined) void dues.remove(old.due)
      if (fresh.due !== undefined) void dues.put(fresh.due, '')
      if (old.bought !== undefined) void buyers.remove(old.bought)
      if (fresh.bought !== undefined) void buyers.put(fresh.bought, '')
      if (previous?.identifier !== undefined) void identifiers.remove(previous.identifier)
      if (next?.identifier !== undefined) void identifiers.put(next.identifier, next.id)
    },
    identified: ({ identifier }) => (identifier === undefined ? undefined : identifiers.get(identifier)),
    due: (now, limit) => Array.from(dues.getKeys({ end: [now + 1], limit }), ([, id]) => id),
    bought: (buyer, since) =>
      Array.from(
        buyers.getKeys({ start: [buyer, Number.MAX_SAFE_INTEGER], end: [buyer, since], reverse: true }),
        ([, , id]) => id,
      ),
  }
}

interface Places {
  readonly due?: [number, string]
  readonly bought?: [string, number, string]
}

function placesOf(entry: Entry | undefined): Places {
  if (entry === undefined) return {}
  const { id, due, buyer, createdAt } = entry
  const bought: [string, number, string] = [buyer, createdAt, id]
  return due === undefined ? { bought } : { bought, due: [due, id] }
}
