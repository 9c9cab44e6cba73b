import type { Catalog } from '../catalog/catalog.ts'
import { frameOf, readPage } from './page-frame.ts'
import { type Facts, placedDocuments } from './registry.ts'
import type { TemplateContext } from './template.ts'

const STEPS: readonly (readonly [name: keyof Funnel, label: string])[] = [
  ['unpaid', '402 answers'],
  ['presented', 'Payment received'],
  ['verified', 'Verified'],
  ['settled', 'Settled'],
  ['sent', 'Sent'],
  ['uncharged', 'Verified, not charged'],
]

const print = readPage('status.html.hbs')

/** The live page `/status`: the content of `/status.json` for people. */
export function renderStatusPage(catalog: Catalog, facts: Facts, standing: StatusModel): string {
  const { status, reasons, checked_at: checkedAt, days = [], funnel, routes, sources } = standing
  const idle = routes.filter((route) => !isCalled(route))
  const ready = idle.filter(({ availability }) => availability === 'available')
  const asked = sources.filter(wasAsked)
  const unasked = sources.filter((source) => !asked.includes(source))
  const json = placedDocuments(catalog, facts.baseUrl).find(({ name }) => name === 'status-json')
  return print({
    page: frameOf(catalog, facts, 'status'),
    status,
    state: status === 'operational' ? 'up' : status,
    checked: momentOf(checkedAt),
    reasons,
    refused: standing.refused_reload === null ? '' : refusal(standing.refused_reload),
    since: standing.since ?? '',
    funnel:
      funnel !== undefined && routes.some(({ kind }) => kind === 'paid')
        ? STEPS.map(([name, label]) => ({ name, label, count: String(funnel[name]) })).filter(
            ({ count }) => count !== '0',
          )
        : [],
    days: days.filter(hasRequests).map(dayRow),
    uptime: uptimeOf(routes),
    called: routes.filter(isCalled).map(routeRow),
    away: idle.filter((route) => !ready.includes(route)).map(routeRow),
    idle: ready.map(routeRow),
    idleCount: String(ready.length),
    hasSources: sources.length > 0,
    sources: asked.map(sourceRow),
    unasked: unasked.map(sourceRow),
    unaskedCount: String(unasked.length),
    json: json?.paths[0] ?? '',
  })
}

function refusal({ refused_at: at, kept, errors }: RefusedReload): TemplateContext {
  return {
    at: momentOf(at),
    kept,
    errors: errors.map(({ code, line, column }) => ({
      code,
      place: line === undefined ? '' : `line ${line}, column ${column ?? 1}`,
    })),
  }
}

function dayRow({
  date,
  unpaid,
  settled,
  paid_answers: paid,
  free_answers: free,
}: DayFigures): TemplateContext {
  return {
    date,
    unpaid: String(unpaid),
    settled: String(settled),
    paid: String(paid),
    free: String(free),
  }
}

function hasRequests({ unpaid, settled, paid_answers: paid, free_answers: free }: DayFigures): boolean {
  return unpaid + settled + paid + free > 0
}

/** A route without calls has no figures. */
function isCalled({ success_rate: rate, p50_ms: p50 }: RouteStanding): boolean {
  return rate !== null || p50 !== null
}

/** The state of all routes in a sentence or two. */
function uptimeOf(routes: readonly RouteStanding[]): string {
  const up = routes.filter(({ availability }) => availability === 'available').length
  const rates = routes.flatMap(({ success_rate: rate }) => (rate === null ? [] : [rate]))
  const standing = `${up} of ${routes.length} routes and tools are available.`
  if (rates.length === 0) return standing
  const perfect = rates.filter((rate) => rate === 1).length
  if (perfect === rates.length) return `${standing} Every call of these days succeeded.`
  return `${standing} On ${perfect} of the ${rates.length} that were called, every call succeeded; the lowest rate is ${percent(Math.min(...rates))}.`
}

/** Shares of answers that colour the bar of a route. */
const GOOD = 0.99
const FAIR = 0.9

const STATES = { available: 'up', failing: 'down', not_configured: 'degraded' } as const

function routeRow(route: RouteStanding): TemplateContext {
  const { path, availability, success_rate: rate, p50_ms: p50, p95_ms: p95, last_success: last } = route
  return {
    path,
    availability: availability.replaceAll('_', ' '),
    state: STATES[availability],
    rate: rate === null ? '' : percent(rate),
    length: rate === null ? '' : String(Math.floor(rate * 1_000) / 10),
    barState: rate === null || rate >= GOOD ? 'up' : rate >= FAIR ? 'degraded' : 'down',
    p50: p50 === null ? '' : latency(p50),
    p95: p95 === null ? '' : latency(p95),
    lastSuccess: last === null ? '' : momentOf(last),
  }
}

/** In milliseconds up to a second, above in seconds. */
function latency(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`
}

/** Truncated, not rounded: only a route that never failed shows 100 %. */
function percent(share: number): string {
  return `${Math.floor(share * 1_000) / 10} %`
}

function wasAsked({ asked, failed, drifted, skipped }: SourceStanding): boolean {
  return asked + failed + drifted + skipped > 0
}

function sourceRow({
  title,
  asked,
  failed,
  drifted,
  skipped,
  last_drift: drift,
}: SourceStanding): TemplateContext {
  return {
    title,
    asked: String(asked),
    failed: String(failed),
    drifted: String(drifted),
    skipped: String(skipped),
    driftAt: drift === undefined ? '' : momentOf(drift.at),
    driftWhere: drift?.where ?? '',
  }
}

/** A time for people to the minute, for programs in full. */
function momentOf(iso: string): TemplateContext {
  return { iso, words: `${iso.slice(0, 16).replace('T', ' ')} UTC` }
}

/** State of the service, as in `/status.json`: every figure of the page `/status` comes from here. */
export interface StatusModel extends Partial<SalesFigures> {
  readonly service: string
  readonly version: string
  readonly revision: string
  readonly sandbox: boolean
  /** Set while it sells for the worthless money of test networks. */
  readonly testnet?: boolean
  /**
   * - `operational`: whatever is set up answers
   * - `degraded`: a route that is set up fails
   * - `down`: nothing can be sold now
   */
  readonly status: 'operational' | 'degraded' | 'down'
  /** Why it is not operational, one sentence each. */
  readonly reasons: readonly string[]
  readonly checked_at: string
  /** The first day of the figures, in UTC. */
  readonly since: string | null
  readonly routes: readonly RouteStanding[]
  /** Paid routes that cannot be served now. */
  readonly unavailable: readonly { readonly path: string; readonly reason: string }[]
  readonly sources: readonly SourceStanding[]
  /** Networks on which this process has settled payments with its own signers. */
  readonly networks: readonly NetworkStanding[]
  /** The latest report of facilitators about the listing of each operation. */
  readonly listings: readonly ListingStanding[]
  /** The last catalog that was refused at a reload. */
  readonly refused_reload: RefusedReload | null
}

/** What only the operator knows, unless its catalog has `status: sales`. */
export interface SalesFigures {
  /** Oldest first, including today. */
  readonly days: readonly DayFigures[]
  /** Totals over these days, of all routes and tools. */
  readonly funnel: Funnel
}

/** Numbers of requests by result; `engine/usage/usage.ts` states when each is counted. */
export interface Funnel {
  readonly unpaid: number
  readonly presented: number
  readonly verified: number
  readonly settled: number
  readonly sent: number
  readonly uncharged: number
}

export interface DayFigures extends Funnel {
  readonly date: string
  /** Answers with status 200. */
  readonly paid_answers: number
  readonly free_answers: number
}

type Availability = 'available' | 'failing' | 'not_configured'

/** Without numbers of calls, which would disclose the revenue of each route. `ratecard stats` has them. */
export interface RouteStanding {
  readonly path: string
  /** `tool`: only offered by an MCP server, free or paid. */
  readonly kind: 'paid' | 'sample' | 'free' | 'tool'
  readonly availability: Availability
  /** Share of answers with status 200 among these and those of 500 and above, 0 to 1; null when there were neither. */
  readonly success_rate: number | null
  /** Null when there was no answer. */
  readonly p50_ms: number | null
  readonly p95_ms: number | null
  readonly last_success: string | null
}

export interface SourceStanding {
  readonly name: string
  readonly title: string
  readonly asked: number
  readonly failed: number
  readonly drifted: number
  readonly skipped: number
  readonly last_drift?: { readonly at: string; readonly where: string }
}

export interface NetworkStanding {
  /** CAIP-2. */
  readonly network: string
  readonly name: string
  /** `closed`: nothing is settled now, for this `reason`. */
  readonly status: 'open' | 'closed'
  readonly reason: string | null
  /** The native coin, in whose units the amounts are. */
  readonly coin: string
  readonly signers: readonly { readonly address: string; readonly balance: string }[]
  /** Cost of reverted transactions of all processes. */
  readonly gas_lost_last_hour: string
  /** Transactions in no block yet. */
  readonly unmined: number
}

export interface ListingStanding {
  /** Host. */
  readonly facilitator: string
  readonly operation: string
  readonly status: 'success' | 'processing' | 'rejected'
  /** Why it was rejected. */
  readonly reason: string | null
  readonly at: string
}

export interface RefusedReload {
  readonly refused_at: string
  /** The revision that is still served. */
  readonly kept: string
  /** Positions in the catalog; only the operator's log has the messages, which could quote private text. */
  readonly errors: readonly { readonly code: string; readonly line?: number; readonly column?: number }[]
}
