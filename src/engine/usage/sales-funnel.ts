import type { AccessRecord } from '../base/access-record.ts'
import type { DailyCounts, DayCounts } from '../ledger/daily-counts.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { dateOf, DAY_MS } from '../ledger/sales-totals.ts'

/** What becomes of requests to what is sold, from the 402 to the delivered answer. */
export const SALE_STEPS = ['asked', 'signed', 'settled', 'delivered'] as const
export type SaleStep = (typeof SALE_STEPS)[number]

/**
 * Whose requests they are. `own`: paid by a wallet of the operator. `probe`: by their own words from a crawler or a monitor.
 * `other`: everybody else, buyers and those who may become some.
 */
export const VISITORS = ['other', 'own', 'probe'] as const
export type Visitor = (typeof VISITORS)[number]

/** What is counted of one operation on one day. */
export type SaleCount =
  | { readonly kind: 'step'; readonly operation: string; readonly visitor: Visitor; readonly step: SaleStep }
  /** A 402 that said that the request would fail even if it were paid for. */
  | { readonly kind: 'would_fail'; readonly operation: string; readonly reason: string }
  /** A payment that was not accepted: nothing was charged. */
  | { readonly kind: 'refused'; readonly operation: string; readonly reason: string }

export interface SaleFigure {
  readonly date: string
  readonly of: SaleCount
  readonly count: number
}

interface FunnelSettings {
  readonly counts: DailyCounts
  readonly now: () => number
  /** The operator's own wallets, as records spell payers. */
  readonly own: () => ReadonlySet<string>
}

/** Between the parts of a key, none of which has line breaks. */
const BETWEEN = '\n'

/** How many payments are remembered between their first change and the end of their request. */
const MOST_UNDER_WAY = 10_000

/**
 * Counts sales and lost sales by day over all processes. What a process has counted is in memory until `write`: a kill
 * loses what came after the last one.
 */
export class SalesFunnel {
  readonly #settings: FunnelSettings
  /** By day since the epoch. Keys are written as JSON when they are stored: that costs more than the rest of a count. */
  #counted = new Map<number, Map<string, number>>()
  /** Payments of own wallets whose request has not ended. */
  readonly #ownPayments = new Set<string>()

  constructor(settings: FunnelSettings) {
    this.#settings = settings
  }

  observe({ sale, outcome, payment, status }: AccessRecord): void {
    if (sale === undefined) return
    const { operation, paid, probe, wouldFail } = sale
    if (paid) {
      const isOwn = payment !== undefined && this.#ownPayments.delete(payment)
      this.#count({ kind: 'step', operation, visitor: isOwn ? 'own' : 'other', step: 'signed' })
      if (payment === undefined && outcome !== 'ok')
        this.#count({ kind: 'refused', operation, reason: outcome })
    } else if (status === 402) {
      this.#count({ kind: 'step', operation, visitor: probe ? 'probe' : 'other', step: 'asked' })
      if (wouldFail !== undefined && !probe) this.#count({ kind: 'would_fail', operation, reason: wouldFail })
    }
  }

  /** Called for each change of a payment that this process has made. */
  settle(previous: PaymentRecord, next: PaymentRecord): void {
    const isOwn = this.#settings.own().has(next.payer)
    if (isOwn && previous.state === 'reserved') {
      this.#ownPayments.add(next.id)
      for (const oldest of this.#ownPayments) {
        if (this.#ownPayments.size <= MOST_UNDER_WAY) break
        this.#ownPayments.delete(oldest)
      }
    }
    if (previous.undone !== undefined || next.undone !== undefined) return
    const { operation } = next
    const visitor = isOwn ? 'own' : 'other'
    if (previous.receipt === undefined && next.receipt !== undefined)
      this.#count({ kind: 'step', operation, visitor, step: 'settled' })
    if (previous.state !== 'sent' && next.state === 'sent')
      this.#count({ kind: 'step', operation, visitor, step: 'delivered' })
  }

  /**
   * Writes down what was counted since the last time. When the store does not say whether it has, the numbers are dropped
   * rather than counted twice.
   */
  async write(): Promise<void> {
    const counted = this.#counted
    this.#counted = new Map()
    for (const [day, counts] of counted) {
      const named = Array.from(counts, ([key, count]) => [JSON.stringify(key.split(BETWEEN)), count] as const)
      await this.#settings.counts.add(dateOf(day * DAY_MS), new Map(named))
    }
  }

  #count(of: SaleCount): void {
    const counts = this.#countsOfDay()
    const key = keyOf(of)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }

  #countsOfDay(): Map<string, number> {
    const day = Math.floor(this.#settings.now() / DAY_MS)
    const known = this.#counted.get(day)
    if (known !== undefined) return known
    const counts = new Map<string, number>()
    this.#counted.set(day, counts)
    return counts
  }
}

/** Written out for each kind: this is done for each 402. */
function keyOf(of: SaleCount): string {
  return of.kind === 'step'
    ? `${of.kind}${BETWEEN}${of.operation}${BETWEEN}${of.visitor}${BETWEEN}${of.step}`
    : `${of.kind}${BETWEEN}${of.operation}${BETWEEN}${of.reason}`
}

/** What was counted on some days. */
export function saleFigures(days: readonly DayCounts[]): SaleFigure[] {
  return days.flatMap(({ date, counts }) =>
    Array.from(counts, ([name, count]) => ({ date, of: readCount(name), count })),
  )
}

function readCount(name: string): SaleCount {
  const [kind = '', operation = '', third = '', fourth = '']: string[] = JSON.parse(name)
  if (kind === 'would_fail' || kind === 'refused') return { kind, operation, reason: third }
  return {
    kind: 'step',
    operation,
    visitor: VISITORS.find((each) => each === third) ?? 'other',
    step: SALE_STEPS.find((each) => each === fourth) ?? 'asked',
  }
}
