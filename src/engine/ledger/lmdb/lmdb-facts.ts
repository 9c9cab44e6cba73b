import { type RootDatabase } from 'lmdb'
import { hash } from 'node:crypto'

interface Fact {
  readonly fact: string
  readonly until: number
}

/** Keys are limited in characters and length, names and facts are not. */
type FactKey = [name: string, fact: string]

/** Facts that expire, by name. `remember` and `forget` are called in a transaction. */
export function openFacts(root: RootDatabase) {
  const facts = root.openDB<Fact, FactKey>({ name: 'facts', encoding: 'json' })
  const ends = root.openDB<string, [number, ...FactKey]>({ name: 'ends', encoding: 'string' })
  return {
    remember: (name: string, fact: string, until: number): number => {
      const key: FactKey = [digest(name), digest(fact)]
      const known = facts.get(key)
      if (known !== undefined) void ends.remove([known.until, ...key])
      void facts.put(key, { fact, until })
      void ends.put([until, ...key], '')
      return facts.getKeysCount(under(name))
    },
    recall: (name: string, now: number): string[] => {
      const found = facts.getRange(under(name))
      return Array.from(found).flatMap(({ value }) => (value.until > now ? [value.fact] : []))
    },
    /** Whether any fact has expired. */
    haveEnded: (now: number): boolean => Array.from(ends.getKeys({ end: [now + 1], limit: 1 })).length > 0,
    /** Deletes some of the expired facts. */
    forget: (now: number): void => {
      for (const [until, ...key] of Array.from(ends.getKeys({ end: [now + 1], limit: FORGOTTEN_AT_ONCE }))) {
        void facts.remove(key)
        void ends.remove([until, ...key])
      }
    },
  }
}

const FORGOTTEN_AT_ONCE = 1_000

/** Sorts after every digest. */
const AFTER = '~'

function under(name: string): { start: [string]; end: [string, string] } {
  const start = digest(name)
  return { start: [start], end: [start, AFTER] }
}

function digest(text: string): string {
  return hash('sha256', Buffer.from(text, 'utf16le'), 'base64url')
}
