import type { Source } from 'ratecard/handler'
import { JsonSource } from './json-source.ts'
import { HITS, type SearchEngine, type SearchHit } from './search-engine.ts'
import { compileShape } from './answer-shape.ts'
import type { MetricsBySource } from './source-metrics.ts'
import type { Runtime } from './source-runtime.ts'

export interface BraveOptions {
  /** Source name in answers. */
  readonly source: Source
  readonly baseUrl: string
  readonly apiKey: string
  /** For a question. */
  readonly timeoutMs: number
}

/** Brave's own; a caller adds the address and the key. */
export const LIVE_BRAVE: Omit<BraveOptions, 'baseUrl' | 'apiKey'> = {
  source: { name: 'Brave Search', url: 'https://search.brave.com/' },
  timeoutMs: 5000,
}

const MOST_HITS = '20'
/** Longest query; longer ones are refused. */
const LONGEST = 400
const MOST_WORDS = 50

interface Answer {
  /** Left out when nothing was found. */
  readonly web?: { readonly results: readonly SearchHit[] }
}

const ANSWER = compileShape<Answer>(
  {
    type: 'object',
    properties: {
      web: {
        type: 'object',
        nullable: true,
        required: ['results'],
        properties: { results: HITS },
      },
    },
  },
  { rows: 'web/results' },
)

/** The engine of Brave, which takes a key. */
export class Brave implements SearchEngine {
  readonly source: Source
  readonly #api: JsonSource
  readonly #headers: Readonly<Record<string, string>>

  constructor(
    { source, baseUrl, apiKey, timeoutMs }: BraveOptions,
    runtime: Runtime,
    records: MetricsBySource,
  ) {
    this.source = source
    this.#headers = { 'x-subscription-token': apiKey }
    // The smallest plan allows one call a second.
    const rate = { perSecond: 1, burst: 1 }
    this.#api = new JsonSource(
      { name: 'The search engine', baseUrl, rate, timeoutMs },
      runtime,
      records.of('brave-search'),
    )
  }

  async search(query: string, signal: AbortSignal): Promise<readonly SearchHit[]> {
    const words = query.trim().split(/\s+/).slice(0, MOST_WORDS).join(' ')
    const q = Array.from(words).slice(0, LONGEST).join('')
    const question = {
      path: '/web/search',
      query: { q, count: MOST_HITS, result_filter: 'web' },
      headers: this.#headers,
      shape: ANSWER,
    }
    return (await this.#api.get(question, signal)).web?.results ?? []
  }
}
