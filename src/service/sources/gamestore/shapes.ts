import type { JSONSchemaType } from 'ajv/dist/2020.js'
import { compileShape } from '../answer-shape.ts'

/**
 * The answers of the game store as far as we read them. A field that is absent, null or of another type is unknown. The
 * store leaves out what is false or empty, and writes some numbers as text.
 */
export interface StoreItem {
  readonly appid?: number | null
  readonly success?: number | null
  readonly name?: string | null
  readonly type?: number | null
  readonly is_free?: boolean | null
  readonly reviews?: { readonly summary_filtered?: ReviewSummary | null } | null
  readonly release?: { readonly steam_release_date?: number | null } | null
  readonly platforms?: Platforms | null
  readonly assets?: { readonly asset_url_format?: string | null; readonly header?: string | null } | null
  readonly best_purchase_option?: PurchaseOption | null
}
/** A whole number, which the store may write as text. */
export type Digits = number | string
export interface ReviewSummary {
  readonly review_count?: Digits | null
  readonly percent_positive?: Digits | null
  readonly review_score_label?: string | null
}
export interface Platforms {
  readonly windows?: boolean | null
  readonly mac?: boolean | null
  readonly steamos_linux?: boolean | null
}
/** Amounts are hundredths of the country's currency. */
export interface PurchaseOption {
  readonly final_price_in_cents: Digits
  readonly original_price_in_cents?: Digits | null
  readonly formatted_final_price?: string | null
  readonly formatted_original_price?: string | null
  readonly discount_pct?: Digits | null
  readonly active_discounts?: readonly { readonly discount_end_date?: number | null }[] | null
}
/** An entry of the front page; amounts are hundredths of `currency`. */
export interface FeaturedItem {
  readonly id: number
  readonly type: number
  readonly name: string
  readonly currency: string
  readonly final_price: number
  readonly original_price?: number | null
  readonly discount_percent?: number | null
  readonly header_image?: string | null
}
interface RankedItem {
  readonly rank: number
  readonly appid: number
  readonly item?: StoreItem | null
}

const APPID = { type: 'integer', minimum: 1, maximum: 4294967295 } as const
const OPTIONAL_TEXT = { type: 'string', nullable: true, maxLength: 500 } as const
const DIGITS = {
  type: ['integer', 'string'],
  minimum: 0,
  maximum: 999999999999,
  pattern: '^[0-9]{1,12}$',
} as const
const OPTIONAL_DIGITS = { ...DIGITS, nullable: true } as const
const PERCENT_DIGITS = { ...OPTIONAL_DIGITS, maximum: 100, pattern: '^([0-9]{1,2}|100)$' } as const
const OPTIONAL_COUNT = { type: 'integer', nullable: true, minimum: 0 } as const
const OPTIONAL_PERCENT = { type: 'integer', nullable: true, minimum: 0, maximum: 100 } as const
/** Seconds since 1970, up to the year 2200, which every Date can hold. */
const OPTIONAL_TIME = { ...OPTIONAL_COUNT, maximum: 7258118400 } as const
const OPTIONAL_FLAG = { type: 'boolean', nullable: true } as const

const STORE_ITEM: JSONSchemaType<StoreItem> = {
  type: 'object',
  properties: {
    appid: { ...APPID, nullable: true },
    success: { type: 'integer', nullable: true },
    name: OPTIONAL_TEXT,
    type: { type: 'integer', nullable: true },
    is_free: OPTIONAL_FLAG,
    reviews: {
      type: 'object',
      nullable: true,
      properties: {
        summary_filtered: {
          type: 'object',
          nullable: true,
          properties: {
            review_count: OPTIONAL_DIGITS,
            percent_positive: PERCENT_DIGITS,
            review_score_label: OPTIONAL_TEXT,
          },
        },
      },
    },
    release: {
      type: 'object',
      nullable: true,
      properties: { steam_release_date: OPTIONAL_TIME },
    },
    platforms: {
      type: 'object',
      nullable: true,
      properties: { windows: OPTIONAL_FLAG, mac: OPTIONAL_FLAG, steamos_linux: OPTIONAL_FLAG },
    },
    assets: {
      type: 'object',
      nullable: true,
      properties: { asset_url_format: OPTIONAL_TEXT, header: OPTIONAL_TEXT },
    },
    best_purchase_option: {
      type: 'object',
      nullable: true,
      required: ['final_price_in_cents'],
      properties: {
        final_price_in_cents: DIGITS,
        original_price_in_cents: OPTIONAL_DIGITS,
        formatted_final_price: OPTIONAL_TEXT,
        formatted_original_price: OPTIONAL_TEXT,
        discount_pct: PERCENT_DIGITS,
        active_discounts: {
          type: 'array',
          nullable: true,
          items: { type: 'object', properties: { discount_end_date: OPTIONAL_TIME } },
        },
      },
    },
  },
}

/** `search/results` with `json=1`: only the address of the logo contains the app id. */
export const SEARCH = compileShape<{ readonly items: readonly { readonly logo: string }[] }>(
  {
    type: 'object',
    required: ['items'],
    properties: {
      items: {
        type: 'array',
        items: {
          type: 'object',
          required: ['logo'],
          properties: { logo: { type: 'string', pattern: '/(apps|subs|bundles)/[0-9]{1,10}/' } },
        },
      },
    },
  },
  { rows: 'items' },
)

const ROWS = { rows: 'response/store_items', given: ['success', 1] } as const
const PRICE = 'best_purchase_option/final_price_in_cents'
const REVIEWED = 'reviews/summary_filtered/review_count'

/** `IStoreBrowseService/GetItems`. */
export const ITEMS = compileShape<{ readonly response: { readonly store_items: readonly StoreItem[] } }>(
  {
    type: 'object',
    required: ['response'],
    properties: {
      response: {
        type: 'object',
        required: ['store_items'],
        properties: { store_items: { type: 'array', items: STORE_ITEM } },
      },
    },
  },
  {
    ...ROWS,
    vital: ['appid', 'name'],
    expected: ['type', PRICE, REVIEWED, 'release', 'platforms', 'assets'],
  },
)

/** `IStoreQueryService/Query` for what is sold at a discount: a page, and how many games there are on all pages. */
export const QUERIED = compileShape<{
  readonly response: {
    readonly metadata?: { readonly total_matching_records?: number | null } | null
    readonly store_items?: readonly StoreItem[] | null
  }
}>(
  {
    type: 'object',
    required: ['response'],
    properties: {
      response: {
        type: 'object',
        properties: {
          metadata: {
            type: 'object',
            nullable: true,
            properties: { total_matching_records: OPTIONAL_COUNT },
          },
          store_items: { type: 'array', nullable: true, items: STORE_ITEM },
        },
      },
    },
  },
  {
    ...ROWS,
    vital: ['appid', 'name', PRICE, 'best_purchase_option/discount_pct', REVIEWED],
    expected: ['type'],
  },
)

interface FeaturedList {
  readonly items: readonly FeaturedItem[]
}

const FEATURED_LIST: JSONSchemaType<FeaturedList> = {
  type: 'object',
  required: ['items'],
  properties: {
    items: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'type', 'name', 'currency', 'final_price'],
        properties: {
          id: APPID,
          type: { type: 'integer' },
          name: { type: 'string', minLength: 1, maxLength: 500 },
          currency: { type: 'string', pattern: '^[A-Z]{3}$' },
          final_price: { type: 'integer', minimum: 0, maximum: 999999999999 },
          original_price: { ...OPTIONAL_COUNT, maximum: 999999999999 },
          discount_percent: OPTIONAL_PERCENT,
          header_image: OPTIONAL_TEXT,
        },
      },
    },
  },
}

/** `api/featuredcategories`. */
export const FEATURED = compileShape<{
  readonly top_sellers: FeaturedList
  readonly specials: FeaturedList
}>(
  {
    type: 'object',
    required: ['top_sellers', 'specials'],
    properties: { top_sellers: FEATURED_LIST, specials: FEATURED_LIST },
  },
  { rows: 'top_sellers/items' },
)

/** `IStoreTopSellersService/GetWeeklyTopSellers`: `{}` where the country has no chart. */
export const WEEKLY = compileShape<{ readonly response: { readonly ranks?: readonly RankedItem[] | null } }>(
  {
    type: 'object',
    required: ['response'],
    properties: {
      response: {
        type: 'object',
        properties: {
          ranks: {
            type: 'array',
            nullable: true,
            items: {
              type: 'object',
              required: ['rank', 'appid'],
              properties: {
                rank: { type: 'integer' },
                appid: APPID,
                item: { ...STORE_ITEM, nullable: true },
              },
            },
          },
        },
      },
    },
  },
  { rows: 'response/ranks', expected: ['item/name'] },
)
