import type { Catalog } from '../catalog/catalog.ts'
import { frameOf, readPage } from './page.ts'
import { type Facts, placedDocuments } from './registry.ts'
import type { TemplateContext } from './template.ts'

const STEPS: readonly (readonly [name: keyof Funnel, label: string])[] = [
  ['unpaid', 'Price shown (402)'],
  ['presented', 'Payment came'],
  ['verified', 'Found good'],
  ['settled', 'Charged'],
  ['sent', 'Arrived'],
  ['uncharged', 'Found good and not charged'],
]

const print = readPage('status.html.hbs')

/** The live `/status`: what `/status.json` says, for people. */
export function renderStatusPage(catalog: Catalog, facts: Facts, standing: StatusModel): string {
  const { status, reasons, checked_at: checkedAt, days, funnel, routes, sources } = standing
  const json = placedDocuments(catalog, facts.baseUrl).find(({ name }) => name === 'status-json')
  return print({
    page: frameOf(catalog, facts, 'status'),
    status,
    state: status === 'operational' ? 'up' : status,
    checked: momentOf(checkedAt),
    reasons,
    refused: standing.refused_reload === null ? '' : refusal(standing.refused_reload),
    since: days[0]?.date ?? '',
    sells: routes.some(({ kind }) => kind === 'paid'),
    funnel: STEPS.map(([name, label]) => ({ name, label, count: String(funnel[name]) })),
    days: days.map(dayRow),
    routes: routes.map(routeRow),
    sources: sources.map(sourceRow),
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

const STATES = { available: 'up', failing: 'down', not_configured: 'degraded' } as const

function routeRow(route: RouteStanding): TemplateContext {
  const { path, availability, success_rate: rate, p50_ms: p50, p95_ms: p95, last_success: last } = route
  return {
    path,
    availability: availability.replaceAll('_', ' '),
    state: STATES[availability],
    rate: rate === null ? '' : percent(rate),
    p50: p50 === null ? '' : String(p50),
    p95: p95 === null ? '' : String(p95),
    lastSuccess: last === null ? '' : momentOf(last),
  }
}

/** Cut, not rounded: only what never failed has a hundred. */
function percent(share: number): string {
  return `${Math.floor(share * 1_000) / 10} %`
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

/** For people to the minute, for programs in full. */
function momentOf(iso: string): TemplateContext {
  return { iso, words: `${iso.slice(0, 16).replace('T', ' ')} UTC` }
}

/** How the service stands, as `/status.json` says it and `/status` shows it: every figure of the page is one of these. */
export interface StatusModel {
  readonly service: string
  readonly version: string
  readonly revision: string
  readonly sandbox: boolean
  /**
   * - `operational`: whatever is set up answers
   * - `degraded`: a route that is set up fails
   * - `down`: nothing can be sold now
   */
  readonly status: 'operational' | 'degraded' | 'down'
  /** Why it is not operational, one sentence each. */
  readonly reasons: readonly string[]
  readonly checked_at: string
  /** The days that the figures are of, oldest first, today among them. */
  readonly days: readonly DayFigures[]
  /** Of these days, all routes and tools together. */
  readonly funnel: Funnel
  readonly routes: readonly RouteStanding[]
  /** Paid routes that cannot be served now. */
  readonly unavailable: readonly { readonly path: string; readonly reason: string }[]
  readonly sources: readonly SourceStanding[]
  /** Networks on which this process has settled payments with signers of its own. */
  readonly networks: readonly NetworkStanding[]
  /** The last catalog that was to take the place of this one, if it was refused. */
  readonly refused_reload: RefusedReload | null
}

/** What became of requests to what is sold; `engine/usage/usage.ts` says when each is counted. */
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

/** Numbers of calls are left out: with the price they would tell what each route earns. `ratecard stats` has them. */
export interface RouteStanding {
  readonly path: string
  readonly kind: 'paid' | 'sample' | 'free'
  readonly availability: Availability
  /** Answers with status 200 among these and those of 500 and above, 0 to 1; null: none of either in these days. */
  readonly success_rate: number | null
  /** Null: no answer in these days. */
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
  /** `closed`: nothing is settled now, and `reason` says why. */
  readonly status: 'open' | 'closed'
  readonly reason: string | null
  /** Coin that gas is paid in; the amounts are in its units. */
  readonly coin: string
  readonly signers: readonly { readonly address: string; readonly balance: string }[]
  /** What reverted transactions have cost over all processes. */
  readonly gas_lost_last_hour: string
  /** Transactions in no block yet. */
  readonly unmined: number
}

export interface RefusedReload {
  readonly refused_at: string
  /** The revision that serves on. */
  readonly kept: string
  /** Places in the catalog; the operator's log has the words, which could quote what should not be public. */
  readonly errors: readonly { readonly code: string; readonly line?: number; readonly column?: number }[]
}
