import type { RootDatabase } from 'lmdb'
import { dueOf } from './due.ts'
import type { Entry, OwnTransaction } from './entry.ts'
import { FORMAT, refuseFormat } from './format.ts'
import { buyerName, LedgerError } from './ledger.ts'
import { openIndexes } from './lmdb-indexes.ts'
import { commit } from './lmdb-store.ts'

/**
 * Gives a new store our format and brings one of format 1 to it, in one transaction: whoever is killed meanwhile leaves
 * it as it was. A process of an older version must not be at work on the store any more: it does not know the indexes.
 *
 * Resolves to the check that every later change makes, for a newer version may come and migrate the store again. Throws
 * `LedgerError` when the store has any other format, which stays as it is.
 */
export async function settleFormat(root: RootDatabase, store: string): Promise<() => void> {
  const meta = root.openDB<unknown, string>({ name: 'meta', encoding: 'json' })
  const check = (): void => {
    const found = meta.get('format')
    if (found !== FORMAT) throw new LedgerError(refuseFormat(store, found))
  }
  const found = meta.get('format')
  if (found === undefined || found === 1) {
    const migrate = openMigration(root)
    await commit(root, () => {
      // Another process may have opened the same store.
      const standing = meta.get('format')
      if (standing === 1) migrate()
      if (standing === undefined || standing === 1) void meta.put('format', FORMAT)
    })
  }
  check()
  return check
}

/** An entry as format 1 had it. */
type Entry1 = Omit<Entry, 'flow' | 'redeliver' | 'buyer' | 'identifier' | 'due' | 'dispatch'> & {
  readonly transaction?: Omit<OwnTransaction, 'kind'>
}

/** What `payments.redeliver` was for everybody who had not set it: format 1 did not keep it with the entry. */
const REDELIVER_MS = 86_400_000

function openMigration(root: RootDatabase): () => void {
  const payments = root.openDB<Entry1, string>({ name: 'payments', encoding: 'json' })
  const indexes = openIndexes(root)
  return () => {
    for (const id of Array.from(payments.getKeys())) {
      const found = payments.get(id)
      if (found === undefined) continue
      const entry = fromFormat1(found)
      void payments.put(id, entry)
      indexes.move(undefined, entry)
    }
  }
}

function fromFormat1({ transaction, ...kept }: Entry1): Entry {
  const entry = {
    ...kept,
    ...(transaction === undefined ? {} : { dispatch: { kind: 'own', ...transaction } as const }),
    flow: 'authorization',
    redeliver: REDELIVER_MS,
    buyer: buyerName(kept.payer, kept.operation, kept.digest),
    identifier: undefined,
  } as const
  return { ...entry, due: dueOf(entry) }
}
