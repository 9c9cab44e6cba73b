import type { Ledger } from '../../ledger/ledger.ts'
import type { Signed } from './transaction.ts'

/** Margin after the last expiry of the batch's payments, longer than any request waits for them. */
const KEPT_MS = 60_000

const LONGEST_MS = 3_600_000

/** Stores the bytes of a batch once for all its payments, since they may have to be sent again. */
export async function keepBatch(ledger: Ledger, { call, transaction: { hash, raw } }: Signed): Promise<void> {
  const now = ledger.now()
  await ledger.addExpiring(nameOf(hash), raw, Math.min(call.expires, now + LONGEST_MS) + KEPT_MS)
}

/** Resolves to whether the batch will not be sent again. */
export async function forgetBatch(ledger: Ledger, { members, transaction }: Signed): Promise<boolean> {
  if (members.length === 1) return true
  const { hash, raw } = transaction
  return ledger.addExpiring(nameOf(hash), raw, 0).then(
    () => true,
    () => false,
  )
}

/** The signed bytes of a batch; undefined after its payments have ended. */
export async function findBatch(ledger: Ledger, hash: string): Promise<string | undefined> {
  const [raw] = await ledger.listExpiring(nameOf(hash), ledger.now())
  return raw
}

function nameOf(hash: string): string {
  return `batch:${hash}`
}
