import { compileShape } from '../answer-shape.ts'

/** Over all languages and ways of buying. */
export interface ReviewTotals {
  /** 0 (none) to 9. */
  readonly review_score: number
  readonly review_score_desc: string
  readonly total_positive: number
  readonly total_negative: number
  readonly total_reviews: number
}

const COUNT = { type: 'integer', minimum: 0 } as const

/** `appreviews`: `success` is 1 and the figures are zero for an unknown app. */
export const REVIEWS = compileShape<{ readonly success: 1; readonly query_summary: ReviewTotals }>({
  type: 'object',
  required: ['success', 'query_summary'],
  properties: {
    success: { type: 'integer', const: 1 },
    query_summary: {
      type: 'object',
      required: ['review_score', 'review_score_desc', 'total_positive', 'total_negative', 'total_reviews'],
      properties: {
        review_score: { type: 'integer', minimum: 0, maximum: 9 },
        review_score_desc: { type: 'string', maxLength: 500 },
        total_positive: COUNT,
        total_negative: COUNT,
        total_reviews: COUNT,
      },
    },
  },
})

/** `GetNumberOfCurrentPlayers`: `result` is 1 and there is a count, or the store has none. */
export const PLAYERS = compileShape<{
  readonly response: { readonly result: number; readonly player_count?: number | null }
}>({
  type: 'object',
  required: ['response'],
  properties: {
    response: {
      type: 'object',
      required: ['result'],
      properties: { result: { type: 'integer' }, player_count: { ...COUNT, nullable: true } },
      if: { properties: { result: { const: 1 } } },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      then: { required: ['player_count'] },
    },
  },
})
