import type { Entry } from '../ledger/entry.ts'
import type { Outcome, Paywall, Purchasing } from './paywall.ts'

/** How long a request waits for what another one is doing. */
const PATIENCE_MS = 45_000

/** Looks at an entry, again and again, until it can be said what becomes of the request. */
export async function wait<T>(
  paywall: Paywall,
  { gone }: Pick<Purchasing, 'gone'>,
  known: Entry,
  look: (entry: Entry | undefined) => Promise<T | undefined>,
): Promise<T | Outcome> {
  const patience = paywall.now() + PATIENCE_MS
  let entry: Entry | undefined = known
  for (let pause = 10; ; pause = Math.min(pause * 1.5, 200)) {
    const seen = await look(entry)
    if (seen !== undefined) return seen
    if (paywall.now() > patience || gone.aborted) return { kind: 'pending', id: known.id }
    await paywall.sleep(pause)
    entry = await paywall.ledger.get(known.key)
  }
}
