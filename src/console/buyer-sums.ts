import { setTimeout as delay } from 'node:timers/promises'
import { type Period, type Sum, sumsBy, totalsIn } from './sale-sums.ts'
import type { ConsoleSources } from './sources.ts'

/** How long a page waits for what is counted, and how long it is shown before it is counted again. */
const WAIT_MS = 600
const KEPT_MS = 30_000

const counted = new WeakMap<
  object,
  Map<string, { readonly at: number; readonly sums: Promise<readonly Sum[]> }>
>()

/**
 * What each buyer has paid in a period, the largest first. There may be a million of them: undefined while they are still
 * being counted, between other work, for the next page that asks.
 */
export async function buyersIn(
  { ledger, now }: Pick<ConsoleSources, 'ledger' | 'now'>,
  period: Period,
): Promise<readonly Sum[] | undefined> {
  const kept = counted.get(ledger) ?? new Map()
  counted.set(ledger, kept)
  const key = `${period.from} ${period.to}`
  const known = kept.get(key)
  const isRecent = known !== undefined && now() - known.at < KEPT_MS
  const sums: Promise<readonly Sum[]> = isRecent ? known.sums : countBuyers(ledger, period)
  if (!isRecent) {
    kept.set(key, { at: now(), sums })
    sums.then(
      () => kept.set(key, { at: now(), sums }),
      () => kept.delete(key),
    )
  }
  const waiting = new AbortController()
  try {
    return await Promise.race([sums, delay(WAIT_MS, undefined, { signal: waiting.signal })])
  } finally {
    waiting.abort()
  }
}

async function countBuyers(ledger: ConsoleSources['ledger'], period: Period): Promise<readonly Sum[]> {
  return sumsBy(await totalsIn(ledger, 'buyer', period), ({ of }) => (of.kind === 'buyer' ? of.payer : ''))
}
