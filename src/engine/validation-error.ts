import type { JsonObject } from './json.ts'

/** One item of the 422 body, in the words of `HTTPValidationError`. */
export interface ValidationError {
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly type: string
  /** What was sent; null when nothing was. */
  readonly input?: string | null
  readonly ctx?: JsonObject
}
