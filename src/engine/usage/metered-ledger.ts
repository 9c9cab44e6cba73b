import { asChange, type Addition, type Change, type Ledger } from '../ledger/ledger.ts'
import type { PaymentRecord, State } from '../ledger/payment-record.ts'
import type { RouteCounters } from './counts.ts'
import { soldName } from './counts.ts'

/** Called for a change of a record once it is made; must be quick and must not throw. */
export type OnPaymentChange = (previous: PaymentRecord, next: PaymentRecord) => void

/**
 * The same ledger, which counts what becomes of the payments of an operation. Every change is made by one process and
 * once, by a request, a copy of it, or recovery after a crash. So is every count.
 */
export function meterLedger(
  ledger: Ledger,
  usage: { of(name: string): RouteCounters },
  settle?: OnPaymentChange,
): Ledger {
  const commit: Ledger['commit'] = async (changes, states) => {
    const committed = await ledger.commit(changes, states)
    if (committed) for (const change of changes) count(change)
    return committed
  }
  const count = (change: Change | Addition): void => {
    const { previous, next } = asChange(change)
    const counters = usage.of(soldName(previous.operation))
    if (next !== undefined) {
      countChange(counters, previous, next)
      settle?.(previous, next)
    } else if (previous.receipt === undefined && !FREE.has(previous.state)) counters.count('uncharged')
  }
  return {
    ...ledger,
    commit,
    replace: (previous, next) => commit([{ previous, next }]),
    replaceSoon: async (previous, next) => {
      const isMade = await ledger.replaceSoon(previous, next)
      if (isMade) count({ previous, next })
      return isMade
    },
    remove: (record) => commit([{ previous: record, next: undefined }]),
  }
}

/**
 * States whose deletion counts nothing: a payment that was only reserved was refused, and a voided one was counted when
 * it became so.
 */
const FREE: ReadonlySet<State> = new Set<State>(['reserved', 'voided'])

function countChange(counters: RouteCounters, previous: PaymentRecord, next: PaymentRecord): void {
  const isUndone = previous.undone !== undefined || next.undone !== undefined
  if (previous.receipt === undefined && next.receipt !== undefined && !isUndone) counters.count('settled')
  if (previous.state === next.state || isUndone) return
  if (previous.state === 'reserved') counters.count('verified')
  if (next.state === 'sent') counters.count('sent')
  if (next.state === 'voided') counters.count('uncharged')
}
