import { Failure, isJsonObject, type Json, type JsonObject, type Part } from 'ratecard/handler'
import { attempt, type Attempt } from '../../sources/attempt.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import { readCountry } from '../gamestore/country.ts'
import { missing, oldest, partRow, sourcesOf } from './part.ts'

const PREVIEWED = 3

/**
 * Top sellers of some countries, deals and hype at once, each from its own operation and cache. Deals and one country
 * must be there; whatever else fails is null and named in a warning.
 */
export const marketSnapshot: HandlerWithPreview<'bundle/market-snapshot'> = {
  check: async ({ countries, deals_count }, { ask }) => {
    for (const country of countries) readCountry(country, 'countries')
    const deals = ask('gamestore/deals', { count: deals_count })
    const charts = countries.map((country) => attempt(ask('gamestore/top-sellers', { country })))
    await deals
    const read = await Promise.all(charts)
    if (read.every(({ kind }) => kind === 'failed')) throw firstFailure(read)
  },
  async run({ countries, deals_count, hype_limit }, { ask, now }) {
    for (const country of countries) readCountry(country, 'countries')
    const [charts, deals, hype] = await Promise.all([
      Promise.all(countries.map((country) => attempt(ask('gamestore/top-sellers', { country })))),
      attempt(ask('gamestore/deals', { count: deals_count })),
      attempt(ask('streaming/hype', { limit: hype_limit })),
    ])
    if (deals.kind === 'failed') throw deals.failure
    if (!charts.some(({ kind }) => kind === 'done')) throw firstFailure(charts)
    const named = [
      ...charts.map((chart, place) => ({ what: `top sellers of ${countries[place]}`, part: chart })),
      { what: 'streaming hype', part: hype },
    ]
    const parts = [...charts, deals, hype].flatMap((each) => (each.kind === 'done' ? each.value : []))
    const moment = now()
    const row = (each: Attempt<Part> | undefined): JsonObject | null =>
      each?.kind === 'done' ? partRow(each.value, moment) : null
    const topSellers = Object.fromEntries(countries.map((country, place) => [country, row(charts[place])]))
    return {
      source: sourcesOf(parts),
      fetchedAt: oldest(parts, moment),
      warnings: named.flatMap(({ what, part }) =>
        part.kind === 'failed' ? missing(what, part.failure) : [],
      ),
      body: {
        countries,
        top_sellers: topSellers,
        deals: row(deals),
        hype: row(hype),
        cross_market: compareMarkets(topSellers),
      },
    }
  },
  preview,
}

function firstFailure(charts: readonly Attempt<Part>[]): Failure {
  const failed = charts.flatMap((chart) => (chart.kind === 'failed' ? chart.failure : []))
  return failed[0] ?? new Failure('internal', 'The charts failed without a failure')
}

/** App ids that sell best in every country, and those that do in one only; null with fewer than two countries. */
function compareMarkets(topSellers: Readonly<Record<string, JsonObject | null>>): JsonObject | null {
  const markets = Object.entries(topSellers).flatMap(([country, chart]) =>
    chart === null ? [] : [{ country, appids: appidsOf(chart['items']) }],
  )
  if (markets.length < 2) return null
  const sells = (appid: number): number => markets.filter(({ appids }) => appids.includes(appid)).length
  const [first] = markets
  return {
    in_all: (first?.appids ?? []).filter((appid) => sells(appid) === markets.length),
    unique: Object.fromEntries(
      markets.map(({ country, appids }) => [country, appids.filter((appid) => sells(appid) === 1)]),
    ),
  }
}

function appidsOf(items: Json | undefined): number[] {
  if (!Array.isArray(items)) return []
  return items.flatMap((item) =>
    isJsonObject(item) && typeof item['appid'] === 'number' ? item['appid'] : [],
  )
}

/** The first three of everything. */
function preview({ top_sellers: charts = null, deals = null, hype = null, ...body }: JsonObject): JsonObject {
  const cut = isJsonObject(charts)
    ? Object.fromEntries(Object.entries(charts).map(([country, chart]) => [country, head(chart)]))
    : null
  return { ...body, top_sellers: cut, deals: head(deals), hype: head(hype) }
}

function head(list: Json): Json {
  if (!isJsonObject(list) || !Array.isArray(list['items'])) return list
  const items = list['items'].slice(0, PREVIEWED)
  return { ...list, count: items.length, items }
}
