import { FlatSums, type Sum } from './flat-sums.ts'
import { findAsset } from '../engine/base/networks.ts'
import { toMicros, type Micros } from '../engine/base/money.ts'
import type { Ledger } from '../engine/ledger/ledger.ts'
import { type DailyTotal, DAY_MS, dateOf, type TotalKind } from '../engine/ledger/sales-totals.ts'

/** The periods that views show, in days, today included. */
export const PERIODS = [1, 7, 30, 90] as const
export type Days = (typeof PERIODS)[number]

export interface Period {
  readonly days: Days
  readonly from: string
  readonly to: string
}

/** The period that a page asks for; a week unless it says otherwise. */
export function periodOf(query: URLSearchParams, now: number): Period {
  const days = PERIODS.find((each) => String(each) === query.get('days')) ?? 7
  return { days, from: dateOf(now - (days - 1) * DAY_MS), to: dateOf(now) }
}

/** Sums by name, the largest first. */
export function sumsBy(totals: Iterable<DailyTotal>, nameOf: (total: DailyTotal) => string): Sum[] {
  const sums = new FlatSums()
  for (const total of totals) sums.add(nameOf(total), total.payments, dollarsOf(total))
  return sums.ranked(Array.from({ length: sums.size }, (_, place) => place))
}

export function sumOf(totals: Iterable<DailyTotal>): Sum {
  return sumsBy(totals, () => '')[0] ?? { name: '', payments: 0, dollars: NOTHING }
}

const MICRO_DECIMALS = 6
const NOTHING = toMicros(0n)

/** In micro-dollars; nothing for a token that is not known. */
export function dollarsOf({ of, amount }: DailyTotal): Micros {
  if (of.kind === 'gas') return NOTHING
  const known = findAsset(of.network, of.asset)
  if (known === undefined) return NOTHING
  if (known.decimals === MICRO_DECIMALS) return toMicros(amount)
  return toMicros((amount * 10n ** BigInt(MICRO_DECIMALS)) / 10n ** BigInt(known.decimals))
}

/** The totals of one kind in a period. */
export async function totalsIn(ledger: Ledger, kind: TotalKind, { from, to }: Period): Promise<DailyTotal[]> {
  const totals: DailyTotal[] = []
  for await (const page of ledger.totals.read(kind, from, to)) totals.push(...page)
  return totals
}
