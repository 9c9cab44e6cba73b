import type { ListingReport, ListingResponse } from '../../payment/listing-report.ts'
import { isJsonObject, parseJson } from '../../base/json.ts'
import type { Ledger } from '../../ledger/ledger.ts'

/** The header of a facilitator's answer: base64 of JSON with one member per extension (x402 v2, extension `bazaar`). */
export const EXTENSION_RESPONSES = 'extension-responses'

/** Longer reasons are cut: they are shown on the status page. */
const LONGEST_REASON = 300

/** The report about the `bazaar` extension in the header; undefined when there is none. */
export function readListingResponse(header: string | undefined): ListingResponse | undefined {
  if (header === undefined) return undefined
  const responses = parseJson(Buffer.from(header, 'base64').toString('utf8'))
  const bazaar = isJsonObject(responses) ? responses['bazaar'] : undefined
  if (!isJsonObject(bazaar)) return undefined
  const { status, rejectedReason } = bazaar
  if (status !== 'success' && status !== 'processing' && status !== 'rejected') return undefined
  return {
    status,
    reason: typeof rejectedReason === 'string' ? rejectedReason.slice(0, LONGEST_REASON) : undefined,
  }
}

/** The name under which the ledger keeps reports for every process. */
const FACTS = 'listings'
/** How long the largest registry lists an operation without purchases. */
const KEPT_MS = 30 * 86_400_000
/** Interval in which an unchanged report is stored once. */
const AGAIN_MS = 86_400_000

interface ListingReportsDeps {
  readonly ledger: Ledger
  readonly now: () => number
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** Keeps the reports of facilitators about listings: nothing else shows that an operation was rejected. */
export class ListingReports {
  readonly #deps: ListingReportsDeps
  /** What this process has written last. */
  readonly #written = new Map<string, ListingReport>()

  constructor(deps: ListingReportsDeps) {
    this.#deps = deps
  }

  /** Never rejects: a settlement does not fail because of its listing. */
  async note(said: Omit<ListingReport, 'at'>): Promise<void> {
    const { ledger, now, report } = this.#deps
    const { facilitator, operation, status, reason } = said
    const key = `${facilitator} ${operation}`
    const before = this.#written.get(key)
    const isNew = before?.status !== status || before.reason !== reason
    if (!isNew && now() - before.at < AGAIN_MS) return
    const written = { ...said, at: now() }
    this.#written.set(key, written)
    if (isNew && status === 'rejected')
      report(`x402: ${facilitator} rejects the listing of ${operation}: ${reason ?? 'no reason given'}`)
    try {
      await ledger.addExpiring(FACTS, JSON.stringify(written), now() + KEPT_MS)
    } catch (fault) {
      this.#written.delete(key)
      report(`x402: a report on a listing could not be kept: ${String(fault)}`)
    }
  }

  /** The latest report of each facilitator on each operation, by all processes. */
  async list(): Promise<readonly ListingReport[]> {
    const { ledger, now } = this.#deps
    const latest = new Map<string, ListingReport>()
    for (const fact of await ledger.listExpiring(FACTS, now())) {
      const report = readReport(fact)
      if (report === undefined) continue
      const key = `${report.facilitator} ${report.operation}`
      if (report.at > (latest.get(key)?.at ?? 0)) latest.set(key, report)
    }
    return Array.from(latest.values())
  }
}

function readReport(fact: string): ListingReport | undefined {
  const value = parseJson(fact)
  if (!isJsonObject(value)) return undefined
  const { facilitator, operation, status, reason, at } = value
  if (typeof facilitator !== 'string' || typeof operation !== 'string' || typeof at !== 'number')
    return undefined
  if (status !== 'success' && status !== 'processing' && status !== 'rejected') return undefined
  return { facilitator, operation, status, reason: typeof reason === 'string' ? reason : undefined, at }
}
