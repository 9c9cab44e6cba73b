import { openTable } from '../../../data/open-table.ts'

interface Row {
  /** Separated by spaces; * stands for any ending. */
  readonly words: string
  /** Words that speak for it a little: alone they do not decide. */
  readonly weak?: string | null
  readonly low: number
  readonly typical: number
  readonly high: number
  readonly unit: string
  /** What a need counts, in words separated by spaces, and how many of it one price covers. */
  readonly counted?: { readonly words: string; readonly size: number } | null
  /** The delivery service that brings it; absent when a person comes or goes. */
  readonly delivery?: string | null
  /** What an order is made of, as shares of its price that add up to 1. */
  readonly items: Readonly<Record<string, number>>
  readonly questions: readonly string[]
  readonly recorded_at: string
}

interface Table {
  readonly version: string
  readonly source: string
  /** Words of services that have no price here, separated by spaces. */
  readonly unpriced: string
  /** Units of a quantity that no price covers, separated by spaces. */
  readonly measures: string
  readonly default_factor: number
  readonly factors: Readonly<Record<string, number>>
  /** Countries by currency, separated by spaces. */
  readonly currencies: Readonly<Record<string, string>>
  readonly categories: Readonly<Record<string, Row>>
}

export interface Category extends Row {
  readonly id: string
}

const DATE = { type: 'string', pattern: '^20[0-9]{2}-[0-9]{2}-[0-9]{2}$' } as const
const DOLLARS = { type: 'number', exclusiveMinimum: 0 } as const
const TEXT = { type: 'string', minLength: 1 } as const

export const servicePrices = openTable(
  'services.yaml',
  {
    type: 'object',
    required: [
      'version',
      'source',
      'unpriced',
      'measures',
      'default_factor',
      'factors',
      'currencies',
      'categories',
    ],
    additionalProperties: false,
    properties: {
      version: DATE,
      source: TEXT,
      unpriced: TEXT,
      measures: TEXT,
      default_factor: DOLLARS,
      factors: { type: 'object', required: [], additionalProperties: DOLLARS },
      currencies: { type: 'object', required: [], additionalProperties: TEXT },
      categories: {
        type: 'object',
        required: [],
        additionalProperties: {
          type: 'object',
          required: ['words', 'low', 'typical', 'high', 'unit', 'items', 'questions', 'recorded_at'],
          additionalProperties: false,
          properties: {
            words: TEXT,
            weak: { ...TEXT, nullable: true },
            low: DOLLARS,
            typical: DOLLARS,
            high: DOLLARS,
            unit: TEXT,
            counted: {
              type: 'object',
              nullable: true,
              required: ['words', 'size'],
              additionalProperties: false,
              properties: { words: TEXT, size: { type: 'integer', minimum: 1 } },
            },
            delivery: { ...TEXT, nullable: true },
            items: { type: 'object', required: [], additionalProperties: DOLLARS },
            questions: { type: 'array', items: TEXT },
            recorded_at: DATE,
          },
        },
      },
    },
  },
  (table: Table) => ({
    ...table,
    categories: Object.entries(table.categories).map(([id, row]): Category => ({ id, ...row })),
  }),
)

/** The price level of a country against the United States. */
export function factorOf(country: string): number {
  const { factors, default_factor: usual } = servicePrices()
  return factors[country] ?? usual
}

/** ISO 4217, where the table knows it. */
export function currencyOf(country: string): string | undefined {
  return Object.entries(servicePrices().currencies).find(([, countries]) =>
    countries.split(' ').includes(country),
  )?.[0]
}
