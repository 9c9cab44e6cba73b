import { type Route, routeKey, usesTestNetworks } from '../catalog/catalog.ts'
import { countKinds, listedRoutes } from '../documents/listed-operations.ts'
import type {
  DayFigures,
  Funnel,
  NetworkStanding,
  RefusedReload,
  RouteStanding,
  SalesFigures,
  SourceStanding,
  StatusModel,
} from '../documents/status-page.ts'
import type { JsonObject } from '../base/json.ts'
import { formatCoin } from '../chains/evm/gas-balance.ts'
import type { ListingReport } from '../payment/listing-report.ts'
import type { NetworkHealth } from '../payment/network-health.ts'
import type { Readiness } from '../purchase/execution.ts'
import { type Days } from '../usage/usage-store.ts'
import { add, NOTHING, type Counts, freeName, isSold, soldName } from '../usage/counts.ts'
import { answersIn, quantile } from '../usage/latency.ts'
import type { SourceFigures } from '../service-definition.ts'
import { toolsAlone, type Revision } from './revision.ts'

/** Figures by the key of the source in the catalog. */
export type AllFigures = () => ReadonlyMap<string, SourceFigures>

/** The facts for one status report. */
export interface StatusSnapshot {
  readonly now: number
  readonly days: Days
  /** Whether payments can be recorded. */
  readonly ledger: 'reachable' | 'unreachable' | 'lost'
  readonly sources: ReadonlyMap<string, SourceFigures>
  readonly networks: readonly NetworkHealth[]
  readonly listings: readonly ListingReport[]
  readonly refused: RefusedReload | undefined
}

/** The live `/status.json`, which `/status` shows. */
export function statusModel(revision: Revision, snapshot: StatusSnapshot): StatusModel {
  const { catalog, facts } = revision
  const { service } = catalog
  const { now, days, sources, networks, listings, refused } = snapshot
  const readiness = new Map(revision.routes.map((each) => [each.route, each.readiness]))
  const listed = listedRoutes(catalog).map((route) => ({
    route,
    readiness: readiness.get(route) ?? 'planned',
    counts: totalOf(days, nameOfRoute(route)),
  }))
  const alone = toolsAlone(revision).filter(({ served: { operation } }) => !operation.planned)
  const routes = [
    ...listed.map(({ route, ...rest }) =>
      standingOf({ path: routeKey(route), kind: route.kind, ...rest }, now),
    ),
    ...alone.map(({ endpoint, served: { operation, readiness: ready } }) => {
      const counts = totalOf(days, soldName(operation.id))
      return standingOf({ path: endpoint.path, kind: 'tool', readiness: ready, counts }, now)
    }),
  ]
  return {
    service: service.name,
    version: service.version,
    revision: catalog.revision,
    sandbox: facts.sandbox,
    ...(usesTestNetworks(catalog.payments) ? { testnet: true } : {}),
    ...verdict(revision, snapshot, routes),
    checked_at: new Date(now).toISOString(),
    since: days[0]?.date ?? null,
    ...(catalog.status === 'sales' ? salesOf(days) : {}),
    routes,
    unavailable: routes
      .filter(({ kind, availability }) => UNAVAILABLE.has(kind) && availability === 'not_configured')
      .map(({ path, availability: reason }) => ({ path, reason })),
    sources: sourceStandings(revision, sources),
    networks: networks.map(networkStanding),
    listings: listings.map(({ facilitator, operation, status, reason, at }) => ({
      facilitator,
      operation,
      status,
      reason: reason ?? null,
      at: new Date(at).toISOString(),
    })),
    refused_reload: refused ?? null,
  }
}

/** Kinds that count as sold, free tools included. */
const UNAVAILABLE: ReadonlySet<RouteStanding['kind']> = new Set(['paid', 'tool'])

/** A route counts as failing after this many consecutive failures, until it answers or an hour has passed. */
const FAILURES = 3
const FAILING_MS = 3_600_000

interface Listed extends Pick<RouteStanding, 'path' | 'kind'> {
  readonly readiness: Readiness
  readonly counts: Counts
}

function standingOf({ path, kind, readiness, counts }: Listed, now: number): RouteStanding {
  const { stages, latency, lastSuccess } = counts
  const answered = answersIn(latency)
  return {
    path,
    kind,
    availability: readiness !== 'ready' ? 'not_configured' : isFailing(counts, now) ? 'failing' : 'available',
    success_rate: answered + stages.failed === 0 ? null : roughly(answered / (answered + stages.failed)),
    p50_ms: quantile(latency, 0.5) ?? null,
    p95_ms: quantile(latency, 0.95) ?? null,
    last_success: lastSuccess === 0 ? null : new Date(lastSuccess).toISOString(),
  }
}

/** Rounded to a tenth of a percent: more digits would disclose the number of calls. */
function roughly(rate: number): number {
  return Math.floor(rate * 1_000) / 1_000
}

function isFailing({ failedInARow, lastFailure }: Counts, now: number): boolean {
  return failedInARow >= FAILURES && now - lastFailure < FAILING_MS
}

/** A missing setting is no failure, unless nothing else works. */
function verdict(
  { routes: served }: Revision,
  { ledger, networks }: StatusSnapshot,
  routes: readonly RouteStanding[],
): Pick<StatusModel, 'status' | 'reasons'> {
  const paid = routes.filter(({ kind }) => kind === 'paid')
  const down = [
    ledger === 'unreachable' && 'The record of payments cannot be reached.',
    ledger === 'lost' && 'The record of payments has lost data.',
    paid.length > 0 && served.every(({ challenges }) => challenges.size === 0) && 'No way to pay is offered.',
    paid.length > 0 &&
      paid.every(({ availability }) => availability !== 'available') &&
      'Nothing that is sold can be served.',
  ].filter((reason) => reason !== false)
  if (down.length > 0) return { status: 'down', reasons: down }
  const failing = routes.filter(({ availability }) => availability === 'failing')
  const reasons = [
    ...failing.map(({ path }) => `${path} does not answer.`),
    ...networks.flatMap(({ network, trouble }) =>
      trouble === undefined ? [] : [`Payments on ${network.title} are not settled: ${trouble}.`],
    ),
  ]
  return { status: reasons.length === 0 ? 'operational' : 'degraded', reasons }
}

function networkStanding({ network, balances, gasLost, unmined, trouble }: NetworkHealth): NetworkStanding {
  return {
    network: network.id,
    name: network.title,
    status: trouble === undefined ? 'open' : 'closed',
    reason: trouble ?? null,
    coin: network.coin,
    signers: Array.from(balances, ([address, wei]) => ({ address, balance: formatCoin(wei) })),
    gas_lost_last_hour: formatCoin(gasLost),
    unmined: unmined.count,
  }
}

const NONE: Pick<SourceFigures, 'asked' | 'failed' | 'drifted' | 'skipped' | 'lastDrift'> = {
  asked: 0,
  failed: 0,
  drifted: 0,
  skipped: 0,
  lastDrift: undefined,
}

function sourceStandings(
  { catalog, routes }: Revision,
  seen: ReadonlyMap<string, SourceFigures>,
): SourceStanding[] {
  const used = new Set(routes.flatMap(({ route }) => route.operation.sources))
  return Object.entries(catalog.sources)
    .filter(([name]) => used.has(name) || seen.has(name))
    .map(([name, { title }]) => {
      const { asked, failed, drifted, skipped, lastDrift } = seen.get(name) ?? NONE
      const drift = lastDrift && { at: lastDrift.at.toISOString(), where: lastDrift.where }
      return { name, title, asked, failed, drifted, skipped, ...(drift && { last_drift: drift }) }
    })
}

function salesOf(days: Days): SalesFigures {
  return { days: days.map(dayFigures), funnel: funnelOf(totalOfAll(days)) }
}

/**
 * The live `/stats.json`: totals of the service, those of sales where the catalog makes them public. Revenue is for the
 * operator: `ratecard payments`.
 */
export function stats({ catalog, facts }: Revision, days: Days, now: number): JsonObject {
  const { service, revision, status } = catalog
  return {
    service: service.name,
    version: service.version,
    revision,
    sandbox: facts.sandbox,
    checked_at: new Date(now).toISOString(),
    routes: countKinds(listedRoutes(catalog)),
    since: days[0]?.date ?? null,
    ...(status === 'sales' ? salesTotals(salesOf(days)) : {}),
  }
}

function salesTotals({ days, funnel }: SalesFigures): JsonObject {
  const sum = (count: (day: DayFigures) => number): number =>
    days.reduce((total, day) => total + count(day), 0)
  return {
    answers: { paid: sum((day) => day.paid_answers), free: sum((day) => day.free_answers) },
    funnel: { ...funnel },
    days: days.map((day) => ({ ...day })),
  }
}

/** The name under which a route is counted: together with the tools of its operation. */
export function nameOfRoute(route: Route): string {
  return route.kind === 'paid' ? soldName(route.operation.id) : freeName(routeKey(route))
}

/** Total of one name over all days. */
function totalOf(days: Days, name: string): Counts {
  return total(days.flatMap(({ counts }) => counts.get(name) ?? []))
}

/** Total of all names, including those that left the catalog. */
function totalOfAll(days: Days): Counts {
  return total(days.flatMap(({ counts }) => [...counts.values()]))
}

function funnelOf({ stages }: Counts): Funnel {
  const { unpaid, presented, verified, settled, sent, uncharged } = stages
  return { unpaid, presented, verified, settled, sent, uncharged }
}

function dayFigures({ date, counts }: Days[number]): DayFigures {
  const of = (isMeant: (name: string) => boolean): Counts =>
    total([...counts].flatMap(([name, each]) => (isMeant(name) ? [each] : [])))
  return {
    date,
    ...funnelOf(total([...counts.values()])),
    paid_answers: answersIn(of(isSold).latency),
    free_answers: answersIn(of((name) => !isSold(name)).latency),
  }
}

function total(counts: readonly Counts[]): Counts {
  return counts.reduce(add, NOTHING)
}
