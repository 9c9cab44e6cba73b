import type { Entry } from '../ledger/entry.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Tally } from './tally.ts'

/** Told of a change of an entry once it is made; must be quick and must not throw. */
export type Settle = (previous: Entry, next: Entry) => void

/**
 * The same ledger, which counts what becomes of the payments of an operation. Every change is made by one process and
 * once, whoever makes it: a request, a copy of it, or recovery after a crash. So is every count.
 */
export function watchLedger(ledger: Ledger, tallyOf: (operation: string) => Tally, settle?: Settle): Ledger {
  return {
    name: ledger.name,
    get: (key) => ledger.get(key),
    find: (id) => ledger.find(id),
    insert: (entry) => ledger.insert(entry),
    replace: async (previous, next) => {
      const replaced = await ledger.replace(previous, next)
      if (replaced) {
        countChange(tallyOf(next.operation), previous, next)
        settle?.(previous, next)
      }
      return replaced
    },
    remove: async (entry) => {
      const removed = await ledger.remove(entry)
      // What was only reserved was refused after all; what is voided was counted when it was.
      if (removed && entry.state !== 'reserved' && entry.state !== 'voided')
        tallyOf(entry.operation).count('uncharged')
      return removed
    },
    entries: () => ledger.entries(),
    due: (now, limit) => ledger.due(now, limit),
    bought: (buyer, since) => ledger.bought(buyer, since),
    remember: (name, fact, until) => ledger.remember(name, fact, until),
    recall: (name, now) => ledger.recall(name, now),
    lease: (name, owner, now, until) => ledger.lease(name, owner, now, until),
    release: (lease, left) => ledger.release(lease, left),
    close: () => ledger.close(),
  }
}

function countChange(tally: Tally, previous: Entry, next: Entry): void {
  if (previous.receipt === undefined && next.receipt !== undefined) tally.count('settled')
  if (previous.state === next.state) return
  if (previous.state === 'reserved') tally.count('verified')
  if (next.state === 'sent') tally.count('sent')
  if (next.state === 'voided') tally.count('uncharged')
}
