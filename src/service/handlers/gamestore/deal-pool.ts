import type { JSONSchemaType } from 'ajv/dist/2020.js'
import { Failure } from 'ratecard/handler'
import { Fallbacks } from '../../sources/attempt.ts'
import type { Discounted, Gamestore } from '../../sources/gamestore.ts'
import type { Title } from '../../sources/gamestore/title.ts'
import { MONEY, moneyFromHundredths, type Money } from '../../sources/shown-money.ts'
import { compileShape } from '../../sources/answer-shape.ts'

/** A game at a discount with all that its score needs. */
export type Deal = {
  readonly appid: number
  readonly name: string
  readonly discountPercent: number
  readonly price: Money
  readonly originalPrice: Money
  readonly savings: Money
  readonly percentPositive: number
  readonly reviewCount: number
  readonly reviewLabel?: string | null
  /** ISO 8601, UTC. */
  readonly endsAt?: string | null
}

/** All deals worth ranking at one time, before any filter of a buyer. */
export type DealPool = {
  readonly origin: 'store_query' | 'store_search' | 'store_featured'
  readonly deals: readonly Deal[]
  /** Games the deals were chosen from, and how many are on sale in all; null when the store does not say. */
  readonly read: number
  readonly total?: number | null
  /** Pages of games that could not be read. */
  readonly missingPages: number
}

/** Savings are compared in one currency. */
export const COUNTRY = 'US'
const CURRENCY = 'USD'
/** The item batch takes no more. */
const SEARCHED = 100
/** Number of reviews below which their share of positive ones means nothing. */
const FEWEST_REVIEWS = 10

const DEAL: JSONSchemaType<Deal> = {
  type: 'object',
  required: [
    'appid',
    'name',
    'discountPercent',
    'price',
    'originalPrice',
    'savings',
    'percentPositive',
    'reviewCount',
  ],
  properties: {
    appid: { type: 'integer' },
    name: { type: 'string' },
    discountPercent: { type: 'number' },
    price: MONEY,
    originalPrice: MONEY,
    savings: MONEY,
    percentPositive: { type: 'number' },
    reviewCount: { type: 'integer' },
    reviewLabel: { type: 'string', nullable: true },
    endsAt: { type: 'string', nullable: true },
  },
}

/** A pool as a cache kept it. */
export const isDealPool = compileShape<DealPool>({
  type: 'object',
  required: ['origin', 'deals', 'read', 'missingPages'],
  properties: {
    read: { type: 'integer' },
    total: { type: 'integer', nullable: true },
    missingPages: { type: 'integer' },
    origin: { type: 'string', enum: ['store_query', 'store_search', 'store_featured'] },
    deals: { type: 'array', items: DEAL },
  },
})

/**
 * The best pool that can be had now: the store's query for best-selling games on sale, else its search or the front page,
 * each with one call for prices and reviews. Throws the failure of the first when none can be had: without reviews there is no score.
 */
export async function readDealPool(store: Gamestore, signal: AbortSignal): Promise<DealPool> {
  const fallbacks = new Fallbacks()
  const queried = await fallbacks.attempt(async () => poolOf(await store.discounted(COUNTRY, signal)))
  if (queried) return queried

  const searched = await fallbacks.attempt(() => store.search(COUNTRY, 'discounted', SEARCHED, signal))
  const listed = searched ?? (await fallbacks.attempt(() => store.featured(COUNTRY, 'specials', signal)))
  const appids = listed?.map(({ appid }) => appid)
  const detailed =
    appids &&
    (await fallbacks.attempt(async () =>
      some(dealsOf((await store.items(appids, COUNTRY, signal)).values())),
    ))
  if (detailed) {
    const origin = searched ? 'store_search' : 'store_featured'
    return { origin, deals: detailed, read: appids.length, total: null, missingPages: 0 }
  }
  throw fallbacks.failure
}

function poolOf({ titles, read, total, missingPages }: Discounted): DealPool {
  return { origin: 'store_query', deals: some(dealsOf(titles)), read, total: total ?? null, missingPages }
}

function dealsOf(titles: Iterable<Title>): Deal[] {
  return Array.from(titles).flatMap((title) => {
    const { appid, name, type, price, originalPrice, discountPercent, reviews } = title
    if (type !== null && type !== 'game') return []
    if (price === null || originalPrice === null || price.amount_minor === 0 || discountPercent === 0)
      return []
    const saved = originalPrice.amount_minor - price.amount_minor
    const { percentPositive, count, label } = reviews
    if (saved <= 0 || percentPositive === null || count === null || count < FEWEST_REVIEWS) return []
    return {
      appid,
      name,
      discountPercent,
      price,
      originalPrice,
      savings: moneyFromHundredths(BigInt(saved), CURRENCY),
      percentPositive,
      reviewCount: count,
      reviewLabel: label,
      endsAt: title.discountEndsAt,
    }
  })
}

function some(deals: readonly Deal[]): readonly Deal[] {
  if (deals.length === 0) throw new Failure('source_error', 'The game store named no deals')
  return deals
}
