import type { PaymentRecord } from './payment-record.ts'

/**
 * What the payments of one day (UTC) come to, for one name. Totals are the sum over all records, and nothing else: each
 * commit changes them together with the records that it changes, and `SalesTotals.rebuild` works them out again.
 */
export interface DailyTotal {
  readonly date: string
  readonly of: TotalName
  readonly payments: number
  /** In atomic units of the asset; for gas in wei. */
  readonly amount: bigint
}

/** Each network and asset apart: their amounts cannot be added up. */
export type TotalName =
  /** Charged on the day on which it was settled. */
  | {
      readonly kind: 'sale'
      readonly operation: string
      readonly protocol: string
      readonly scheme: string
      readonly network: string
      readonly asset: string
    }
  /** The same money by who has paid it. */
  | { readonly kind: 'buyer'; readonly payer: string; readonly network: string; readonly asset: string }
  /** Sent back on the day on which the refund was seen in a block. */
  | { readonly kind: 'refund'; readonly operation: string; readonly network: string; readonly asset: string }
  /** What our signers have paid for settlements. */
  | { readonly kind: 'gas'; readonly network: string }

export type TotalKind = TotalName['kind']

/** What is added to a total; less than nothing when a record does not count for it any more. */
export type TotalChange = DailyTotal

/** A page of totals is read in about a millisecond, for which sales wait. */
export const TOTALS_AT_ONCE = 250

/** Totals by day. `test/contract/ledger-totals.ts` says what a store has to do. */
export interface SalesTotals {
  /**
   * The totals of a kind over these days, both included, in no order. They come in pages, between which sales go on:
   * there may be a million.
   */
  read(kind: TotalKind, from: string, to: string): AsyncIterable<readonly DailyTotal[]>
  /**
   * Works all totals out again from the records, page by page, while servers go on; readers see the new ones once they
   * are complete. Resolves to the number of records.
   */
  rebuild(): Promise<number>
}

/** The changes of the totals that belong to one change of a record. */
export function totalChanges(
  previous: PaymentRecord | undefined,
  next: PaymentRecord | undefined,
): readonly TotalChange[] {
  const [before, after] = [totalsOf(previous), totalsOf(next)]
  // Most changes of a record move no money.
  if (before.length === after.length && before.every((each, place) => isSame(each, after[place]))) return []
  return [...before.map((each) => ({ ...each, payments: -each.payments, amount: -each.amount })), ...after]
}

/** What one record adds to the totals. */
function totalsOf(record: PaymentRecord | undefined): readonly DailyTotal[] {
  if (record?.receipt === undefined) return []
  const { operation, protocol, scheme, network, asset, payer, receipt, settledAt, createdAt, refund } = record
  const charged = { date: dateOf(settledAt ?? createdAt), payments: 1, amount: BigInt(receipt.amount) }
  const totals: DailyTotal[] = [
    { ...charged, of: { kind: 'sale', operation, protocol, scheme, network, asset } },
    { ...charged, of: { kind: 'buyer', payer, network, asset } },
  ]
  if (receipt.gasCost !== undefined)
    totals.push({ ...charged, of: { kind: 'gas', network }, amount: BigInt(receipt.gasCost) })
  if (refund?.kind === 'sent') {
    const date = refund.sentAt === undefined ? charged.date : dateOf(refund.sentAt)
    totals.push({ ...charged, date, of: { kind: 'refund', operation, network, asset } })
  }
  return totals
}

function isSame(one: DailyTotal, other: DailyTotal | undefined): boolean {
  return (
    other !== undefined &&
    one.date === other.date &&
    one.amount === other.amount &&
    nameText(one.of) === nameText(other.of)
  )
}

/** The day of a time in UTC, such as `2026-11-26`. */
export function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** A name as it is stored. */
export function nameText({ kind: _kind, ...name }: TotalName): string {
  return JSON.stringify(Object.values(name))
}

/** A stored name. */
export function readName(kind: TotalKind, text: string): TotalName {
  const [one = '', two = '', three = '', four = '', five = '']: string[] = JSON.parse(text)
  switch (kind) {
    case 'sale':
      return { kind, operation: one, protocol: two, scheme: three, network: four, asset: five }
    case 'buyer':
      return { kind, payer: one, network: two, asset: three }
    case 'refund':
      return { kind, operation: one, network: two, asset: three }
    case 'gas':
      return { kind, network: one }
  }
}

/** The dates from one to another, both included. */
export function datesBetween(from: string, to: string): string[] {
  const dates: string[] = []
  for (let time = Date.parse(from); time <= Date.parse(to); time += DAY_MS) dates.push(dateOf(time))
  return dates
}

export const DAY_MS = 86_400_000
