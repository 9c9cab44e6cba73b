import type { Ledger } from './ledger.ts'
import { chargeStatus, isLeased, nextCheckAt } from './payment-lifecycle.ts'
import type { PaymentRecord, Receipt } from './payment-record.ts'
import type { SchemeState } from './scheme-state.ts'

/** Numbers of records of a backup, by what became of them. */
export interface RestoreResult {
  /** Records that were missing in the ledger. */
  readonly added: number
  /** Records that were less far in the ledger, and are now as in the backup. */
  readonly advanced: number
  /** Records that are as far in the ledger, or further. */
  readonly kept: number
  /** Nothing was charged for them when the backup was written: they are left out. */
  readonly uncharged: number
  /** A server works on them at present: another run restores them. */
  readonly busy: number
}

/**
 * Merges the records of a backup into a ledger, which servers may use meanwhile. Of each payment the further record wins:
 * an amount that is settled or refunded in either is so afterwards, and a finished payment is never opened again.
 */
export async function restoreRecords(
  ledger: Ledger,
  records: AsyncIterable<PaymentRecord>,
): Promise<RestoreResult> {
  const counts = { added: 0, advanced: 0, kept: 0, uncharged: 0, busy: 0 }
  for await (const record of records) {
    const outcome = hasMoney(record) ? await restore(ledger, record) : 'uncharged'
    counts[outcome] += 1
  }
  return counts
}

/**
 * Puts back what schemes have kept, where the ledger has nothing under the same name: what it has is newer. Resolves to the
 * number of those that were put back.
 */
export async function restoreStates(
  ledger: Pick<Ledger, 'states' | 'commit'>,
  kept: AsyncIterable<Pick<SchemeState, 'name' | 'text'>>,
): Promise<number> {
  let restored = 0
  for await (const { name, text } of kept) {
    const previous = await ledger.states.get(name)
    if (previous.version === 0 && (await ledger.commit([], [{ previous, next: text }]))) restored += 1
  }
  return restored
}

/** What is not charged is not restored: the chain refuses a payment that was used since, and the buyer may use another. */
function hasMoney(record: PaymentRecord): boolean {
  return chargeStatus(record) !== 'no' || record.undone !== undefined
}

async function restore(ledger: Ledger, backup: PaymentRecord): Promise<keyof RestoreResult> {
  for (;;) {
    const standing = await ledger.find(backup.id)
    if (standing === undefined) {
      const record = unheld({ ...backup, version: backup.version + 1 })
      const taken = await ledger.insert(record)
      if (taken === undefined) return 'added'
      // A newer payment has the identifier.
      if (taken.id !== record.id && (await ledger.insert({ ...record, identifier: undefined })) === undefined)
        return 'added'
      continue
    }
    const merged = mergeRecords(standing, backup)
    if (merged === undefined) return 'kept'
    if (isLeased(standing, ledger.now())) return 'busy'
    if (await ledger.replace(standing, unheld({ ...merged, version: standing.version + 1 })))
      return 'advanced'
  }
}

/** No process holds a record of a backup. */
function unheld(record: PaymentRecord): PaymentRecord {
  const free = { ...record, owner: '', leaseUntil: 0 }
  return { ...free, due: nextCheckAt(free) }
}

/** How far the money of a payment is. */
function stageOf({ refund, ...record }: PaymentRecord): number {
  if (refund !== undefined) return { due: 3, sending: 4, sent: 5 }[refund.kind]
  return { no: 0, unknown: 1, yes: 2 }[chargeStatus(record)]
}

/**
 * Merges two records of one payment: the one whose money is further wins. Undefined when the record in the ledger stays
 * as it is.
 */
export function mergeRecords(standing: PaymentRecord, backup: PaymentRecord): PaymentRecord | undefined {
  const receipt = largerOf(standing.receipt, backup.receipt)
  const isFurther = stageOf(backup) > stageOf(standing)
  if (standing.receipt !== undefined) {
    if (!isFurther && receipt === standing.receipt) return undefined
    const refund = isFurther ? backup.refund : standing.refund
    const merged = receipt === undefined ? standing : { ...standing, receipt }
    return refund === undefined ? merged : { ...merged, refund, redeliver: 0 }
  }
  if (!isFurther || isUndone(standing, backup)) return undefined
  const { createdAt, identifier, pendingWrite } = standing
  return { ...backup, createdAt, identifier, ...(pendingWrite && { pendingWrite }) }
}

function largerOf(one: Receipt | undefined, another: Receipt | undefined): Receipt | undefined {
  if (one === undefined || another === undefined) return one ?? another
  return BigInt(another.amount) > BigInt(one.amount) ? another : one
}

/** Whether a reorganization has undone the receipt of the backup since. */
function isUndone({ undone }: PaymentRecord, { receipt }: PaymentRecord): boolean {
  return undone !== undefined && undone.transaction === receipt?.transaction
}
