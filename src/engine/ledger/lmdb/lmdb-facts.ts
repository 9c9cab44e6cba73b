import { type RootDatabase } from 'lmdb'
import { hash } from 'node:crypto'
import { type AmountLimit, factOf, type LimitedAmount } from '../ledger.ts'

interface Fact {
  readonly fact: string
  readonly until: number
}

/** Keys are limited in characters and length, names and facts are not. */
type FactKey = [name: string, fact: string]

/** Facts that expire, by name. All but `listExpiring` and `haveEnded` are called in a transaction. */
export function openFacts(root: RootDatabase) {
  const facts = root.openDB<Fact, FactKey>({ name: 'facts', encoding: 'json' })
  const ends = root.openDB<string, [number, ...FactKey]>({ name: 'ends', encoding: 'string' })
  const put = (name: string, fact: string, until: number): void => {
    const key: FactKey = [digest(name), digest(fact)]
    const known = facts.get(key)
    if (known !== undefined) void ends.remove([known.until, ...key])
    void facts.put(key, { fact, until })
    void ends.put([until, ...key], '')
  }
  const unexpired = (name: string, now: number): Fact[] =>
    Array.from(facts.getRange(under(name))).flatMap(({ value }) => (value.until > now ? [value] : []))
  return {
    addExpiring: (name: string, fact: string, until: number): number => {
      put(name, fact, until)
      return facts.getKeysCount(under(name))
    },
    /** Undefined, or when the amount fits. */
    addWithinLimit: (
      name: string,
      amount: LimitedAmount,
      { count, sum }: AmountLimit,
      now: number,
    ): number | undefined => {
      const fact = factOf(amount)
      const kept = unexpired(name, now).toSorted((a, b) => a.until - b.until)
      if (kept.some((each) => each.fact === fact)) return undefined
      let total = kept.reduce((before, each) => before + valueOf(each), amount.value)
      let fits: number | undefined
      for (const [place, each] of kept.entries()) {
        if (kept.length - place < count && (sum === undefined || total <= sum)) break
        total -= valueOf(each)
        fits = each.until
      }
      if (fits === undefined) put(name, fact, amount.until)
      return fits
    },
    listExpiring: (name: string, now: number): string[] => unexpired(name, now).map(({ fact }) => fact),
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

/** The amount in a fact, which ends with it. */
function valueOf({ fact }: Fact): bigint {
  return BigInt(fact.slice(fact.lastIndexOf(' ') + 1))
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
