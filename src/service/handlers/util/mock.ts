import { createRequire } from 'node:module'
import type { JsonObject } from 'ratecard/handler'
import type { HandlerWithPreview, Parameters } from '../catalog.ts'
import type { Kind } from './mock/kind.ts'
import { events, iot, logs } from './mock/machines.ts'
import { addresses, companies, people } from './mock/people.ts'
import { reviews } from './mock/reviews.ts'
import { orders, products, transactions } from './mock/trade.ts'

const fakerPackage: { readonly version: string } = createRequire(import.meta.url)(
  '@faker-js/faker/package.json',
)

/** Dates are relative to this day, not to the present one: the same seed gives the same rows next year. */
const REFERENCE_DATE = '2026-01-01T00:00:00Z'

const KINDS: Readonly<Record<Parameters['util/mock']['kind'], Kind>> = {
  people,
  companies,
  products,
  orders,
  transactions,
  addresses,
  events,
  logs,
  reviews,
  iot,
}

/**
 * Made-up rows with reserved names and addresses; the same kind and seed give the same rows, and a larger count only
 * adds to them.
 */
export const mock: HandlerWithPreview<'util/mock'> = {
  run: async ({ kind, n, seed }, { random }) => {
    const usedSeed = seed === '' ? Buffer.from(random(4)).toString('hex') : seed
    const seedNumber = hash(usedSeed)
    return {
      source: [
        {
          name: '@faker-js/faker',
          url: 'https://fakerjs.dev',
          licence: 'MIT',
          version: fakerPackage.version,
        },
      ],
      body: {
        kind,
        n,
        seed: usedSeed,
        seed_used: seedNumber,
        generator: `@faker-js/faker ${fakerPackage.version}`,
        schema: KINDS[kind].schema,
        items: await rowsOf(KINDS[kind], n, seedNumber),
      },
    }
  },
  preview: (body) => body,
}

/** Each row starts from the seed and its own number, so that it does not depend on the rows before it. */
async function rowsOf(kind: Kind, count: number, seed: number): Promise<JsonObject[]> {
  // 35 MB of word lists: loaded by the first question, not at boot.
  const { base, en, Faker } = await import('@faker-js/faker')
  const faker = new Faker({ locale: [en, base] })
  faker.setDefaultRefDate(REFERENCE_DATE)
  return Array.from({ length: count }, (_, index) => {
    faker.seed([seed, index])
    return kind.row(faker, index)
  })
}

/** FNV-1a of the UTF-8 bytes, cut to 31 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193)
  return value >>> 1
}
