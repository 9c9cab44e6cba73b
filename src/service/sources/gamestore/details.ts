import type { JSONSchemaType } from 'ajv/dist/2020.js'
import { moneyFromHundredths, type Money } from '../shown-money.ts'
import { compileShape } from '../answer-shape.ts'
import { plainList, plainText } from './plain-text.ts'
import { readReleaseDate, type ReleaseDate } from './release-date.ts'

/** The store page of one app, in our own words. Null is unknown. */
export interface Details {
  readonly name: string
  readonly type: string
  readonly shortDescription: string | null
  readonly developers: readonly string[] | null
  readonly publishers: readonly string[] | null
  readonly genres: readonly string[] | null
  readonly categories: readonly string[] | null
  readonly platforms: readonly string[] | null
  readonly release: ReleaseDate | null
  readonly requiredAge: number | null
  readonly isFree: boolean
  readonly price: Money | null
  /** Equal to the price while there is no discount. */
  readonly originalPrice: Money | null
  readonly discountPercent: number
  readonly metacriticScore: number | null
  readonly achievements: number | null
  readonly languages: readonly string[] | null
  readonly website: string | null
  readonly headerImage: string | null
}

interface PriceOverview {
  readonly currency: string
  /** Hundredths of the currency. */
  readonly initial: number
  readonly final: number
  readonly discount_percent: number
  readonly final_formatted?: string | null
  readonly initial_formatted?: string | null
}
interface AppData {
  readonly name: string
  readonly type: string
  readonly is_free: boolean
  readonly required_age?: number | string | null
  readonly short_description?: string | null
  readonly supported_languages?: string | null
  readonly header_image?: string | null
  readonly website?: string | null
  readonly developers?: readonly string[] | null
  readonly publishers?: readonly string[] | null
  readonly price_overview?: PriceOverview | null
  readonly platforms?: { readonly windows: boolean; readonly mac: boolean; readonly linux: boolean } | null
  readonly metacritic?: { readonly score: number } | null
  readonly categories?: readonly Described[] | null
  readonly genres?: readonly Described[] | null
  readonly achievements?: { readonly total?: number | null } | null
  readonly release_date?: { readonly coming_soon: boolean; readonly date: string } | null
}
interface Described {
  readonly description: string
}
interface Page {
  readonly success: boolean
  readonly data?: AppData | null
}

const TEXT = { type: 'string', maxLength: 500 } as const
const OPTIONAL_TEXT = { ...TEXT, nullable: true } as const
const LONG_TEXT = { type: 'string', nullable: true } as const
const NAMES = { type: 'array', nullable: true, items: TEXT } as const
const DESCRIBED = {
  type: 'array',
  nullable: true,
  items: { type: 'object', required: ['description'], properties: { description: TEXT } },
} as const
const HUNDREDTHS = { type: 'integer', minimum: 0, maximum: 999999999999 } as const

const APP_DATA: JSONSchemaType<AppData> = {
  type: 'object',
  required: ['name', 'type', 'is_free'],
  properties: {
    name: { ...TEXT, minLength: 1 },
    type: { type: 'string', pattern: '^[a-z_]{1,40}$' },
    is_free: { type: 'boolean' },
    required_age: { type: ['integer', 'string'], nullable: true, minimum: 0, maximum: 99 },
    short_description: LONG_TEXT,
    supported_languages: LONG_TEXT,
    header_image: OPTIONAL_TEXT,
    website: { ...OPTIONAL_TEXT, maxLength: 2000 },
    developers: NAMES,
    publishers: NAMES,
    price_overview: {
      type: 'object',
      nullable: true,
      required: ['currency', 'initial', 'final', 'discount_percent'],
      properties: {
        currency: { type: 'string', pattern: '^[A-Z]{3}$' },
        initial: HUNDREDTHS,
        final: HUNDREDTHS,
        discount_percent: { type: 'integer', minimum: 0, maximum: 100 },
        final_formatted: OPTIONAL_TEXT,
        initial_formatted: OPTIONAL_TEXT,
      },
    },
    platforms: {
      type: 'object',
      nullable: true,
      required: ['windows', 'mac', 'linux'],
      properties: { windows: { type: 'boolean' }, mac: { type: 'boolean' }, linux: { type: 'boolean' } },
    },
    metacritic: {
      type: 'object',
      nullable: true,
      required: ['score'],
      properties: { score: { type: 'integer', minimum: 0, maximum: 100 } },
    },
    categories: DESCRIBED,
    genres: DESCRIBED,
    achievements: {
      type: 'object',
      nullable: true,
      properties: { total: { type: 'integer', nullable: true, minimum: 0 } },
    },
    release_date: {
      type: 'object',
      nullable: true,
      required: ['coming_soon', 'date'],
      properties: { coming_soon: { type: 'boolean' }, date: TEXT },
    },
  },
}

/** `api/appdetails`: one page by the app's id; without data for an app the store does not show. */
export const APP_PAGES = compileShape<Readonly<Record<string, Page>>>(
  {
    type: 'object',
    required: [],
    minProperties: 1,
    additionalProperties: {
      type: 'object',
      required: ['success'],
      properties: { success: { type: 'boolean' }, data: { ...APP_DATA, nullable: true } },
      if: { properties: { success: { const: true } } },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      then: { required: ['data'] },
    },
  },
  {
    given: ['*/success', true],
    vital: ['*/data/price_overview'],
    expected: [
      '*/data/short_description',
      '*/data/release_date',
      '*/data/developers',
      '*/data/genres',
      '*/data/platforms',
    ],
  },
)

/** The data of a store page. Throws RangeError for an amount that the currency cannot represent. */
export function detailsOf(data: AppData): Details {
  const { price_overview: overview } = data
  const price = data.is_free || !overview ? null : priced(overview.final, overview, overview.final_formatted)
  return {
    name: data.name,
    type: data.type,
    shortDescription: data.short_description ? plainText(data.short_description) : null,
    developers: data.developers ?? null,
    publishers: data.publishers ?? null,
    genres: data.genres?.map(({ description }) => description) ?? null,
    categories: data.categories?.map(({ description }) => description) ?? null,
    platforms: platformsOf(data.platforms),
    release: data.release_date
      ? readReleaseDate(data.release_date.date, data.release_date.coming_soon)
      : null,
    requiredAge: ageOf(data.required_age),
    isFree: data.is_free,
    price,
    originalPrice: price && overview ? priced(overview.initial, overview, overview.initial_formatted) : null,
    discountPercent: price && overview ? overview.discount_percent : 0,
    metacriticScore: data.metacritic?.score ?? null,
    achievements: data.achievements?.total ?? null,
    languages: data.supported_languages ? plainList(data.supported_languages) : null,
    website: /^https?:\/\//.test(data.website ?? '') ? (data.website ?? null) : null,
    headerImage: data.header_image?.startsWith('https://') ? data.header_image : null,
  }
}

function priced(hundredths: number, { currency }: PriceOverview, formatted?: string | null): Money {
  // Empty for the original price while there is no discount.
  return moneyFromHundredths(BigInt(hundredths), currency, formatted || null)
}

function platformsOf(platforms: AppData['platforms']): string[] | null {
  if (!platforms) return null
  return (['windows', 'mac', 'linux'] as const).filter((name) => platforms[name])
}

/** A number, or a text that starts with one (`17`, `18+`). */
function ageOf(age: AppData['required_age']): number | null {
  if (typeof age === 'number') return age
  const digits = /^\s*(\d{1,2})/.exec(age ?? '')?.[1]
  return digits === undefined ? null : Number(digits)
}
