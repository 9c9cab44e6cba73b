import { nextCheckAt } from '../ledger/lifecycle.ts'
import type { Desk } from '../ledger/claim.ts'
import type { Entry } from '../ledger/entry.ts'

/** The answer has arrived: from now on more than the signature is asked for it. */
export function markSent(desk: Desk, entry: Entry): Promise<void> {
  return change(desk, entry, (current) => ({ ...current, state: 'sent' }))
}

/** The answer is not known to have arrived and nobody sees to it any more: whoever has a right to it need not wait. */
export function markUndelivered(desk: Desk, entry: Entry): Promise<void> {
  return change(desk, entry, (current) => ({ ...current, leaseUntil: desk.now() }))
}

/** Without effect when the entry has been taken up again since it was delivered, or has been marked before. */
async function change(
  { ledger, now }: Desk,
  delivered: Entry,
  mark: (current: Entry) => Entry,
): Promise<void> {
  const current = await ledger.get(delivered.key)
  if (current?.receipt === undefined || current.attempts !== delivered.attempts || current.state === 'sent')
    return
  const marked = { ...mark(current), updatedAt: now(), version: current.version + 1 }
  await ledger.replace(current, { ...marked, due: nextCheckAt(marked) })
}
