import type { Source } from 'ratecard/handler'
import { JsonSource } from './json-source.ts'
import { HITS, type SearchEngine, type SearchHit } from './search-engine.ts'
import { compileShape } from './answer-shape.ts'
import type { MetricsBySource } from './source-metrics.ts'
import type { Runtime } from './source-runtime.ts'

export interface SearxngOptions {
  /** As answers name where their data comes from. */
  readonly source: Source
  readonly baseUrl: string
  /** For a question. */
  readonly timeoutMs: number
}

/** What an operator's own engine has in common with others; its address is the operator's. */
export const LIVE_SEARXNG: Omit<SearxngOptions, 'baseUrl'> = {
  source: { name: 'SearXNG' },
  timeoutMs: 5000,
}

interface Answer {
  readonly results: readonly SearchHit[]
}

const ANSWER = compileShape<Answer>(
  {
    type: 'object',
    required: ['results'],
    properties: { results: HITS },
  },
  { rows: 'results' },
)

/** An engine that the operator runs. It answers with 403 unless `json` is under `search.formats` of its settings. */
export class Searxng implements SearchEngine {
  readonly source: Source
  readonly #api: JsonSource

  constructor({ source, baseUrl, timeoutMs }: SearxngOptions, runtime: Runtime, records: MetricsBySource) {
    this.source = source
    const rate = { perSecond: 2, burst: 10 }
    this.#api = new JsonSource(
      { name: 'The search engine', baseUrl, rate, timeoutMs },
      runtime,
      records.of('searxng'),
    )
  }

  async search(query: string, signal: AbortSignal): Promise<readonly SearchHit[]> {
    const question = { path: '/search', query: { q: query, format: 'json' }, shape: ANSWER }
    return (await this.#api.get(question, signal)).results
  }
}
