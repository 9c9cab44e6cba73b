import type { Entry, State } from '../ledger/entry.ts'
import type { Change, Ledger } from '../ledger/ledger.ts'
import type { UsageStore } from './usage-store.ts'
import { soldName } from './names.ts'
import type { Tally } from './tally.ts'

/** Told of a change of an entry once it is made; must be quick and must not throw. */
export type OnPaymentChange = (previous: Entry, next: Entry) => void

/**
 * The same ledger, which counts what becomes of the payments of an operation. Every change is made by one process and
 * once, whoever makes it: a request, a copy of it, or recovery after a crash. So is every count.
 */
export function meterLedger(ledger: Ledger, usageStore: UsageStore, settle?: OnPaymentChange): Ledger {
  const commit = async (changes: readonly Change[]): Promise<boolean> => {
    const committed = await ledger.commit(changes)
    if (committed) for (const change of changes) count(change)
    return committed
  }
  const count = ({ previous, next }: Change): void => {
    const tally = usageStore.of(soldName(previous.operation))
    if (next !== undefined) {
      countChange(tally, previous, next)
      settle?.(previous, next)
    } else if (previous.receipt === undefined && !FREE.has(previous.state)) tally.count('uncharged')
  }
  return {
    ...ledger,
    commit,
    replace: (previous, next) => commit([{ previous, next }]),
    remove: (entry) => commit([{ previous: entry, next: undefined }]),
  }
}

/** What was only reserved was refused after all; what is voided was counted when it was. */
const FREE: ReadonlySet<State> = new Set<State>(['reserved', 'voided'])

function countChange(tally: Tally, previous: Entry, next: Entry): void {
  if (previous.receipt === undefined && next.receipt !== undefined) tally.count('settled')
  if (previous.state === next.state) return
  if (previous.state === 'reserved') tally.count('verified')
  if (next.state === 'sent') tally.count('sent')
  if (next.state === 'voided') tally.count('uncharged')
}
