import type { JSONSchemaType } from 'ajv/dist/2020.js'
import { compileShape } from '../answer-shape.ts'

/**
 * The answers of IGDB as far as we read them. A field that is absent or null is unknown: rows of the database are seldom
 * complete. Types, not interfaces, so that they count as JSON.
 */
export type Named = { readonly name: string }
export type InvolvedCompany = {
  readonly company: Named
  readonly developer?: boolean | null
  readonly publisher?: boolean | null
}
export type SimilarGame = {
  readonly id: number
  readonly name: string
  readonly slug?: string | null
  readonly total_rating?: number | null
  readonly first_release_date?: number | null
}
export type Game = SimilarGame & {
  readonly url?: string | null
  readonly summary?: string | null
  readonly game_type?: { readonly id: number; readonly type: string } | null
  readonly alternative_names?: readonly Named[] | null
  readonly genres?: readonly Named[] | null
  readonly themes?: readonly Named[] | null
  readonly game_modes?: readonly Named[] | null
  readonly player_perspectives?: readonly Named[] | null
  readonly platforms?: readonly Named[] | null
  readonly franchises?: readonly Named[] | null
  readonly involved_companies?: readonly InvolvedCompany[] | null
  readonly rating?: number | null
  readonly rating_count?: number | null
  readonly aggregated_rating?: number | null
  readonly aggregated_rating_count?: number | null
  readonly total_rating_count?: number | null
  readonly cover?: { readonly image_id: string } | null
  readonly websites?: readonly { readonly url: string }[] | null
  readonly external_games?:
    readonly { readonly uid: string; readonly external_game_source?: number | null }[] | null
  readonly similar_games?: readonly SimilarGame[] | null
}
/** Seconds. */
export type TimeToBeat = {
  readonly hastily?: number | null
  readonly normally?: number | null
  readonly completely?: number | null
  readonly count?: number | null
}

const ID = { type: 'integer', minimum: 1 } as const
const TEXT = { type: 'string', maxLength: 500 } as const
const OPTIONAL_TEXT = { ...TEXT, nullable: true } as const
const LONG_TEXT = { type: 'string', nullable: true } as const
const RATING = { type: 'number', nullable: true, minimum: 0, maximum: 100 } as const
const COUNT = { type: 'integer', nullable: true, minimum: 0 } as const
/** From 1900, which is before all of them, to 2200, which every Date can hold. */
const TIME = { type: 'integer', nullable: true, minimum: -2208988800, maximum: 7258118400 } as const

const NAMED: JSONSchemaType<Named> = { type: 'object', required: ['name'], properties: { name: TEXT } }
const NAMES = { type: 'array', nullable: true, items: NAMED } as const

const SIMILAR = {
  id: ID,
  name: { ...TEXT, minLength: 1 },
  slug: OPTIONAL_TEXT,
  total_rating: RATING,
  first_release_date: TIME,
} as const

const GAME: JSONSchemaType<Game> = {
  type: 'object',
  required: ['id', 'name'],
  properties: {
    ...SIMILAR,
    url: OPTIONAL_TEXT,
    summary: LONG_TEXT,
    game_type: {
      type: 'object',
      nullable: true,
      required: ['id', 'type'],
      properties: { id: { type: 'integer' }, type: TEXT },
    },
    alternative_names: NAMES,
    genres: NAMES,
    themes: NAMES,
    game_modes: NAMES,
    player_perspectives: NAMES,
    platforms: NAMES,
    franchises: NAMES,
    involved_companies: {
      type: 'array',
      nullable: true,
      items: {
        type: 'object',
        required: ['company'],
        properties: {
          company: NAMED,
          developer: { type: 'boolean', nullable: true },
          publisher: { type: 'boolean', nullable: true },
        },
      },
    },
    rating: RATING,
    rating_count: COUNT,
    aggregated_rating: RATING,
    aggregated_rating_count: COUNT,
    total_rating_count: COUNT,
    cover: {
      type: 'object',
      nullable: true,
      required: ['image_id'],
      properties: { image_id: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,60}$' } },
    },
    websites: {
      type: 'array',
      nullable: true,
      items: { type: 'object', required: ['url'], properties: { url: { type: 'string', maxLength: 2000 } } },
    },
    external_games: {
      type: 'array',
      nullable: true,
      items: {
        type: 'object',
        required: ['uid'],
        properties: { uid: TEXT, external_game_source: { type: 'integer', nullable: true } },
      },
    },
    similar_games: {
      type: 'array',
      nullable: true,
      items: { type: 'object', required: ['id', 'name'], properties: SIMILAR },
    },
  },
}

/** `games`. */
export const GAMES = compileShape<readonly Game[]>(
  { type: 'array', items: GAME },
  { rows: '', expected: ['slug', 'first_release_date', 'genres', 'platforms', 'game_type/type'] },
)

/** `external_games`: the game that an id at a store belongs to. */
export const EXTERNAL = compileShape<readonly { readonly game: number }[]>(
  {
    type: 'array',
    items: { type: 'object', required: ['game'], properties: { game: ID } },
  },
  { rows: '' },
)

/** `game_time_to_beats`. */
export const TIMES = compileShape<readonly TimeToBeat[]>({
  type: 'array',
  items: {
    type: 'object',
    properties: { hastily: COUNT, normally: COUNT, completely: COUNT, count: COUNT },
  },
})
