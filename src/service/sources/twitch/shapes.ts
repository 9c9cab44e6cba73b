import type { JSONSchemaType } from 'ajv/dist/2020.js'
import { compileShape } from '../answer-shape.ts'

/** The answers of Twitch as far as we read them. */
export interface Category {
  readonly id: string
  readonly name: string
  /** With `{width}` and `{height}` to be filled in. */
  readonly box_art_url?: string | null
  /** Empty when the category is no game. */
  readonly igdb_id?: string | null
}
export interface Stream {
  readonly id: string
  readonly type: string
  readonly user_login: string
  /** Empty when the channel has chosen no category. */
  readonly game_id: string
  readonly game_name: string
  readonly viewer_count: number
  readonly language?: string | null
}

const ID = { type: 'string', pattern: '^[0-9]{1,20}$' } as const
const TEXT = { type: 'string', maxLength: 500 } as const

const CATEGORY: JSONSchemaType<Category> = {
  type: 'object',
  required: ['id', 'name'],
  properties: {
    id: ID,
    name: { ...TEXT, minLength: 1 },
    box_art_url: { ...TEXT, nullable: true },
    igdb_id: { type: 'string', nullable: true, pattern: '^[0-9]{0,15}$' },
  },
}
const STREAM: JSONSchemaType<Stream> = {
  type: 'object',
  required: ['id', 'type', 'user_login', 'game_id', 'game_name', 'viewer_count'],
  properties: {
    id: ID,
    type: TEXT,
    user_login: { ...TEXT, minLength: 1 },
    game_id: { type: 'string', pattern: '^[0-9]{0,20}$' },
    game_name: TEXT,
    viewer_count: { type: 'integer', minimum: 0, maximum: 1_000_000_000 },
    language: { ...TEXT, nullable: true },
  },
}

/** `games/top`. */
export const CATEGORIES = compileShape<{ readonly data: readonly Category[] }>(
  {
    type: 'object',
    required: ['data'],
    properties: { data: { type: 'array', items: CATEGORY } },
  },
  { rows: 'data', expected: ['box_art_url', 'igdb_id'] },
)

/** `streams`; the last page has no cursor. */
export const STREAMS = compileShape<{
  readonly data: readonly Stream[]
  readonly pagination?: { readonly cursor?: string | null } | null
}>(
  {
    type: 'object',
    required: ['data'],
    properties: {
      data: { type: 'array', items: STREAM },
      pagination: {
        type: 'object',
        nullable: true,
        properties: { cursor: { type: 'string', nullable: true, maxLength: 2000 } },
      },
    },
  },
  { rows: 'data', expected: ['language'] },
)
