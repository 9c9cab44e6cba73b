import { openTable } from '../../../data/open-table.ts'

type Range = {
  readonly min?: number | null
  readonly max?: number | null
}

/** What a platform takes of one type; what is absent has no limit, or none that is known. */
export interface Row {
  readonly source_url: string
  /** The day the figures were read. */
  readonly verified_at: string
  /** Where: on the platform’s own page, or in independent guides that agree. */
  readonly confidence: 'official' | 'guides'
  /** The recommended one first. */
  readonly aspect_ratios?: readonly string[] | null
  /** WIDTHxHEIGHT in pixels. */
  readonly resolution?: {
    readonly recommended: string
    readonly min?: string | null
    readonly max?: string | null
  } | null
  readonly duration_seconds?: (Range & { readonly max_upload?: number | null }) | null
  readonly max_bytes?: number | null
  readonly formats?: readonly string[] | null
  readonly video_codecs?: readonly string[] | null
  readonly audio_codecs?: readonly string[] | null
  readonly frame_rate?: Range | null
  readonly max_items?: number | null
  /** Characters, by the part of the post. */
  readonly text?: Readonly<Record<string, number>> | null
  readonly text_unit?: string | null
  readonly max_hashtags?: number | null
  readonly safe_zone_px?: {
    readonly top: number
    readonly bottom: number
    readonly left: number
    readonly right: number
  } | null
  readonly notes?: string | null
}

interface Table {
  readonly version: string
  /** Older rows are not sold. */
  readonly max_age_days: number
  readonly platforms: Readonly<Record<string, Readonly<Record<string, Row>>>>
}

const DATE = { type: 'string', pattern: '^20[0-9]{2}-[0-9]{2}-[0-9]{2}$' } as const
const SIZE = { type: 'string', pattern: '^[0-9]{1,5}x[0-9]{1,5}$' } as const
const AMOUNT = { type: 'number', exclusiveMinimum: 0, nullable: true } as const
const COUNT = { type: 'integer', minimum: 1, nullable: true } as const
const PIXELS = { type: 'integer', minimum: 0 } as const
const WORDS = { type: 'array', items: { type: 'string' }, minItems: 1, nullable: true } as const

export const platformLimits = openTable(
  'platform-specs.yaml',
  {
    type: 'object',
    required: ['version', 'max_age_days', 'platforms'],
    additionalProperties: false,
    properties: {
      version: DATE,
      max_age_days: { type: 'integer', minimum: 1 },
      platforms: {
        type: 'object',
        required: [],
        additionalProperties: {
          type: 'object',
          required: [],
          additionalProperties: {
            type: 'object',
            required: ['source_url', 'verified_at', 'confidence'],
            additionalProperties: false,
            properties: {
              source_url: { type: 'string', pattern: '^https://' },
              verified_at: DATE,
              confidence: { type: 'string', enum: ['official', 'guides'] },
              aspect_ratios: {
                type: 'array',
                items: { type: 'string', pattern: '^[0-9.]+:[0-9]+$' },
                minItems: 1,
                nullable: true,
              },
              resolution: {
                type: 'object',
                required: ['recommended'],
                additionalProperties: false,
                properties: {
                  recommended: SIZE,
                  min: { ...SIZE, nullable: true },
                  max: { ...SIZE, nullable: true },
                },
                nullable: true,
              },
              duration_seconds: {
                type: 'object',
                additionalProperties: false,
                properties: { min: AMOUNT, max: AMOUNT, max_upload: AMOUNT },
                nullable: true,
              },
              max_bytes: COUNT,
              formats: WORDS,
              video_codecs: WORDS,
              audio_codecs: WORDS,
              frame_rate: {
                type: 'object',
                additionalProperties: false,
                properties: { min: AMOUNT, max: AMOUNT },
                nullable: true,
              },
              max_items: COUNT,
              text: {
                type: 'object',
                required: [],
                additionalProperties: { type: 'integer', minimum: 1 },
                nullable: true,
              },
              text_unit: { type: 'string', nullable: true },
              max_hashtags: COUNT,
              safe_zone_px: {
                type: 'object',
                required: ['top', 'bottom', 'left', 'right'],
                additionalProperties: false,
                properties: { top: PIXELS, bottom: PIXELS, left: PIXELS, right: PIXELS },
                nullable: true,
              },
              notes: { type: 'string', nullable: true },
            },
          },
        },
      },
    },
  },
  (table: Table) => table,
)
