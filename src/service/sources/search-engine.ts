import type { JSONSchemaType } from 'ajv/dist/2020.js'
import type { Source } from 'ratecard/handler'

export interface SearchHit {
  readonly url: string
  readonly title: string
}

/** The part of an engine's answer that is read. */
export const HITS = {
  type: 'array',
  items: {
    type: 'object',
    required: ['url', 'title'],
    properties: { url: { type: 'string' }, title: { type: 'string' } },
  },
} as const satisfies JSONSchemaType<readonly SearchHit[]>

/** Finds pages by words. Throws `Failure` as `JsonSource` does. */
export interface SearchEngine {
  readonly source: Source
  /** The best first, as the engine gave them: addresses are unchecked. */
  search(query: string, signal: AbortSignal): Promise<readonly SearchHit[]>
}
