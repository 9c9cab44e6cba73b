import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { platformLimits } from '../../../src/service/handlers/util/platform-spec/table.ts'
import { APP_PAGES, detailsOf } from '../../../src/service/sources/gamestore/details.ts'
import { keptDays } from '../../../src/service/handlers/util/occasion/kept.ts'
import { openCalendar } from '../../../src/service/handlers/util/workday/calendar.ts'

const fixture = (name: string): string =>
  readFileSync(new URL(`../../fixtures/authority/${name}.yaml`, import.meta.url), 'utf8')

interface Compared {
  readonly equal: number
  readonly differing: readonly string[]
}

/** The limits of posts against those of others. */
export function compareLimits(): Compared & { readonly explained: readonly string[] } {
  const sources: readonly {
    readonly limits: readonly (readonly [string, string, string, number])[]
    readonly differs?: Readonly<Record<string, string>>
  }[] = parse(fixture('platform-limits'))
  const { platforms } = platformLimits()
  const compared = sources.flatMap(({ limits }) =>
    limits.map(([platform, type, figure, value]) => ({
      name: `${platform} ${type} ${figure}`,
      isEqual: figureOf(platforms[platform]?.[type], figure) === value,
    })),
  )
  return {
    equal: compared.filter(({ isEqual }) => isEqual).length,
    differing: compared.flatMap(({ name, isEqual }) => (isEqual ? [] : [name])),
    explained: sources.flatMap(({ differs = {} }) => Object.keys(differs)),
  }
}

function figureOf(row: unknown, figure: string): unknown {
  return figure.split('.').reduce((value, key) => (isObject(value) ? value[key] : undefined), row)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** Compares figures that are read from store pages with their meaning. */
export function compareStorePages(): Compared & { readonly pages: number } {
  const pages: readonly {
    readonly app: number
    readonly data: object
    readonly means: Readonly<Record<string, number | string>>
  }[] = parse(fixture('store-pages'))
  const compared = pages.flatMap(({ app, data, means }) => {
    const read = APP_PAGES.read({ [app]: { success: true, data } })
    const page = read.kind === 'read' ? read.answer[app]?.data : undefined
    if (!page) throw new Error(`the page of ${app} is not read`)
    const details = detailsOf(page)
    const figures: Readonly<Record<string, unknown>> = {
      released: details.release?.date,
      price: details.price?.amount_minor,
      was: details.originalPrice?.amount_minor,
      discount: details.discountPercent,
      age: details.requiredAge,
      platforms: details.platforms?.length,
      languages: details.languages?.length,
      metacritic: details.metacriticScore,
    }
    return Object.entries(means).map(([figure, value]) => ({
      name: `${app} ${figure}`,
      isEqual: figures[figure] === value,
    }))
  })
  return {
    pages: pages.length,
    equal: compared.filter(({ isEqual }) => isEqual).length,
    differing: compared.flatMap(({ name, isEqual }) => (isEqual ? [] : [name])),
  }
}

interface Tables {
  /** By country and occasion: a date for every year, or one date per year. */
  readonly occasions: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly differences: readonly {
    readonly country: string
    readonly id: string
    readonly years: string
    readonly reason: string
  }[]
}

const FIRST = 2024
const LAST = 2030

interface Comparison {
  readonly countries: number
  readonly equal: number
  /** `country id year`, those with a reason and those without. */
  readonly differing: readonly string[]
  readonly explained: readonly string[]
}

/** The occasions that buyers are given from 2024 to 2030 against those of other tables. */
export async function compareOccasions(): Promise<Comparison> {
  const path = new URL('../../fixtures/authority/second-occasion-table.yaml', import.meta.url)
  const { occasions, differences } = parse(readFileSync(path, 'utf8')) as Tables
  let equal = 0
  const differing: string[] = []
  for (const [country, dated] of Object.entries(occasions)) {
    const calendar = await openCalendar(country)
    if (calendar === undefined) throw new Error(`${country} is not known`)
    const kept = keptDays(calendar, `${FIRST}-01-01`, `${LAST}-12-31`)
    for (const [id, text] of Object.entries(dated))
      for (let year = FIRST; year <= LAST; year++) {
        const dates = text.split(' ')
        const theirs = dates.length === 1 ? text : dates[year - FIRST]
        const ours = kept
          .filter(({ occasion, date }) => occasion?.id === id && date.startsWith(`${year}-`))
          .map(({ date }) => date.slice(5))
        if (ours.join('+') === theirs) equal += 1
        else differing.push(`${country} ${id} ${year}`)
      }
  }
  const explained = differences.flatMap(({ country, id, years }) =>
    years.split(' ').map((year) => `${country} ${id} ${year}`),
  )
  return { countries: Object.keys(occasions).length, equal, differing, explained }
}
