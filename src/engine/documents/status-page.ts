import type { Catalog } from '../catalog/catalog.ts'
import { frameOf, readPage } from './page.ts'
import { type Facts, placedDocuments } from './registry.ts'
import type {
  DayFigures,
  Funnel,
  RefusedReload,
  RouteStanding,
  SourceStanding,
  StatusModel,
} from './status-model.ts'
import type { TemplateContext } from './template.ts'

/** Where the bars begin, how long the longest is, and how far they stand apart, in units of the drawing. */
const LEFT = 190
const LONGEST = 360
const BAR = 24
const PITCH = 42

const STEPS: readonly (readonly [name: keyof Funnel, label: string])[] = [
  ['unpaid', 'Price shown (402)'],
  ['presented', 'Payment came'],
  ['verified', 'Found good'],
  ['settled', 'Charged'],
  ['sent', 'Arrived'],
]

/** A bar for each step, and the slopes between them. */
export function drawFunnel(funnel: Funnel): TemplateContext {
  const most = Math.max(...STEPS.map(([name]) => funnel[name]))
  const steps = STEPS.map(([name, label], place) => ({
    name,
    label,
    count: funnel[name],
    y: place * PITCH,
    width: lengthOf(funnel[name], most),
  }))
  return {
    height: String((STEPS.length - 1) * PITCH + BAR),
    title: steps.map(({ label, count }) => `${label}: ${count}`).join(', '),
    slopes: steps.slice(1).map(({ y, width }, place) => {
      const above = steps[place]?.width ?? 0
      const from = y - PITCH + BAR
      return { points: `${LEFT},${from} ${LEFT + above},${from} ${LEFT + width},${y} ${LEFT},${y}` }
    }),
    steps: steps.map(({ name, label, count, y, width }) => ({
      name,
      label,
      count: String(count),
      y: String(y),
      baseline: String(y + 18),
      width: String(width),
    })),
  }
}

/** By the logarithm: a thousand prices are shown for one that is paid. */
function lengthOf(count: number, most: number): number {
  return count === 0 ? 0 : Math.round((LONGEST * Math.log(1 + count)) / Math.log(1 + most))
}

const SLOWEST_MS = 60_000

/** From the median to the 95th of 100, in percent of a line from 1 ms to a minute; drawn at least that wide that it is seen. */
export function drawSpan(p50: number, p95: number): { readonly x: string; readonly width: string } {
  const [from, to] = [placeOf(p50), placeOf(p95)]
  const width = Math.max(2, to - from)
  return { x: String(Math.min(from, 100 - width)), width: String(width) }
}

function placeOf(ms: number): number {
  return Math.round((100 * Math.log(Math.max(1, ms))) / Math.log(SLOWEST_MS))
}

/** In percent of the most there was on any day. */
function drawShare(count: number, most: number): number {
  return most === 0 ? 0 : Math.round((100 * count) / most)
}

const print = readPage('status.html.hbs')

/** The live `/status`: what `/status.json` says, drawn. */
export function renderStatusPage(catalog: Catalog, facts: Facts, standing: StatusModel): string {
  const { status, reasons, checked_at: checkedAt, days, funnel, routes, sources } = standing
  const json = placedDocuments(catalog, facts.baseUrl).find(({ name }) => name === 'status-json')
  const most = Math.max(...days.map(answersOf))
  return print({
    page: frameOf(catalog, facts, 'status'),
    status,
    state: status === 'operational' ? 'up' : status,
    checked: momentOf(checkedAt),
    reasons,
    refused: standing.refused_reload === null ? '' : refusal(standing.refused_reload),
    since: days[0]?.date ?? '',
    sells: routes.some(({ kind }) => kind === 'paid'),
    funnel: drawFunnel(funnel),
    uncharged: String(funnel.uncharged),
    days: days.map((day) => dayRow(day, most)),
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

function answersOf({ paid_answers: paid, free_answers: free }: DayFigures): number {
  return paid + free
}

function dayRow(day: DayFigures, most: number): TemplateContext {
  return {
    date: day.date,
    unpaid: String(day.unpaid),
    settled: String(day.settled),
    paid: String(day.paid_answers),
    free: String(day.free_answers),
    answered: answersOf(day) > 0,
    paidWidth: String(drawShare(day.paid_answers, most)),
    freeWidth: String(drawShare(day.free_answers, most)),
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
    measured: p50 !== null && p95 !== null,
    ...(p50 !== null && p95 !== null ? drawSpan(p50, p95) : { x: '', width: '' }),
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
