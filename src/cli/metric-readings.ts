import { stat } from 'node:fs/promises'
import { LedgerLostError } from '../engine/base/errors.ts'
import type { AllFigures } from '../engine/http/status.ts'
import { findRefundsDue } from '../engine/ledger/clean-up.ts'
import type { Ledger } from '../engine/ledger/ledger.ts'
import type { PaymentRecord } from '../engine/ledger/payment-record.ts'
import type { NetworkHealth } from '../engine/payment/network-health.ts'
import {
  listChannelBalances,
  type ChannelBalance,
} from '../engine/x402/batch-settlement-evm/channel-balances.ts'
import { unpaidStreams } from '../engine/purchase/payer-credit.ts'
import type { Revenue } from './revenue.ts'

export interface DenyList {
  /** Name of the file in the catalog. */
  readonly name: string
  readonly path: string
}

export interface MetricSources {
  readonly ledger: Ledger
  readonly now: () => number
  /** How the outside sources have done. */
  readonly figures: AllFigures
  /** State of settlement on the networks with payments. */
  readonly health: () => Promise<readonly NetworkHealth[]>
  readonly revision: () => string
  /** Whether the catalog file is refused, and an earlier revision served in its place. */
  readonly isRefused: () => boolean
  /** The files of denied payers. */
  readonly denyLists: () => readonly DenyList[]
  /** The file of a ledger on this machine. */
  readonly ledgerFile: string | undefined
}

/**
 * Shortest time between two searches for payments with an unknown outcome and for refunds that are due, and the most
 * that are counted.
 */
const LOOK_MS = 10_000
const MOST_COUNTED = 1_000
/** Payments that recovery checks within this time count as uncertain. */
const SOON_MS = 330_000

/** What is looked up when metrics are read. A store that is unavailable omits its own; the others are still exported. */
export class Readings {
  readonly #sources: MetricSources
  readonly revenue: Revenue
  /** What buyers had signed for at most, of the same payments. */
  readonly authorized: Revenue
  /** Payments of which nobody knows yet whether they have settled. */
  readonly unknown: () => Promise<number>
  readonly refundsDue: () => Promise<readonly PaymentRecord[]>
  /** Streams of the last hour that were sent on credit and not paid. */
  readonly unpaid: () => ReturnType<typeof unpaidStreams>
  /** The channels of buyers. */
  readonly channels: () => Promise<readonly ChannelBalance[]>

  constructor(sources: MetricSources, { revenue, authorized }: Pick<Readings, 'revenue' | 'authorized'>) {
    const { ledger, now } = sources
    this.#sources = sources
    this.revenue = revenue
    this.authorized = authorized
    const unknown = recent(now, () => countUnknown(ledger, now()))
    const due = recent(now, () => findRefundsDue(ledger, MOST_COUNTED))
    const channels = recent(now, () => listChannelBalances(ledger))
    this.unpaid = () => unpaidStreams(ledger, now()).catch(() => ({ count: Number.NaN, amount: 0n }))
    this.channels = () => channels().catch(() => [])
    this.unknown = () => unknown().catch(() => Number.NaN)
    this.refundsDue = () => due().catch(() => [])
  }

  get figures(): ReturnType<AllFigures> {
    return this.#sources.figures()
  }

  get revision(): string {
    return this.#sources.revision()
  }

  get isRefused(): boolean {
    return this.#sources.isRefused()
  }

  networks(): Promise<readonly NetworkHealth[]> {
    return this.#sources.health().catch(() => [])
  }

  /** Why the ledger takes no payment. */
  async ledgerFault(): Promise<'lost' | 'unavailable' | undefined> {
    const fault: unknown = await this.#sources.ledger.check().catch((caught: unknown) => caught)
    if (fault === undefined) return undefined
    return fault instanceof LedgerLostError ? 'lost' : 'unavailable'
  }

  /** Seconds since each file of denied payers was written; NaN for one that is gone. */
  denyListAges(): Promise<readonly (readonly [name: string, seconds: number])[]> {
    const { denyLists, now } = this.#sources
    return Promise.all(
      denyLists().map(async ({ name, path }) => {
        const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.NaN }))
        return [name, Math.max(0, now() - mtimeMs) / 1000] as const
      }),
    )
  }

  /** Undefined for a ledger that has no file on this machine. */
  async ledgerBytes(): Promise<number | undefined> {
    const { ledgerFile } = this.#sources
    if (ledgerFile === undefined) return undefined
    return (await stat(ledgerFile).catch(() => ({ size: Number.NaN }))).size
  }
}

/** What was found within the last seconds, or is looked for again. */
export function recent<T>(now: () => number, find: () => Promise<T>): () => Promise<T> {
  let last: { readonly at: number; readonly found: Promise<T> } | undefined
  return () => {
    if (last === undefined || now() - last.at >= LOOK_MS) last = { at: now(), found: find() }
    return last.found
  }
}

async function countUnknown(ledger: Ledger, now: number): Promise<number> {
  const due = await ledger.due('money', now + SOON_MS, MOST_COUNTED)
  return due.filter(({ state }) => state === 'unknown').length
}
