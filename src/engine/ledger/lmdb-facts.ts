import { createHash } from 'node:crypto'
import type { RootDatabase } from 'lmdb'

/** What is remembered under names for a while. `remember` and `forget` are called in a transaction. */
export interface Facts {
  remember(name: string, fact: string, until: number): number
  recall(name: string, now: number): string[]
  /** Whether a fact of any name has ended. */
  haveEnded(now: number): boolean
  /** Drops facts of all names that have ended: some at a time. */
  forget(now: number): void
}

interface Fact {
  readonly fact: string
  readonly until: number
}

/** Names and facts are of any characters and length, and keys are not. */
type Key = [name: string, fact: string]

export function openFacts(root: RootDatabase): Facts {
  const facts = root.openDB<Fact, Key>({ name: 'facts', encoding: 'json' })
  const ends = root.openDB<string, [number, ...Key]>({ name: 'ends', encoding: 'string' })
  return {
    remember: (name, fact, until) => {
      const key: Key = [digest(name), digest(fact)]
      const known = facts.get(key)
      if (known !== undefined) void ends.remove([known.until, ...key])
      void facts.put(key, { fact, until })
      void ends.put([until, ...key], '')
      return facts.getKeysCount(under(name))
    },
    recall: (name, now) => {
      const found = facts.getRange(under(name))
      return Array.from(found).flatMap(({ value }) => (value.until > now ? [value.fact] : []))
    },
    haveEnded: (now) => Array.from(ends.getKeys({ end: [now + 1], limit: 1 })).length > 0,
    forget: (now) => {
      for (const [until, ...key] of Array.from(ends.getKeys({ end: [now + 1], limit: BATCH }))) {
        void facts.remove(key)
        void ends.remove([until, ...key])
      }
    },
  }
}

const BATCH = 1_000

/** Comes after every digest. */
const AFTER = '~'

function under(name: string) {
  const start = digest(name)
  return { start: [start], end: [start, AFTER] }
}

function digest(text: string): string {
  return createHash('sha256').update(text, 'utf16le').digest('base64url')
}
