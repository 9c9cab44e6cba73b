import type { Source } from 'ratecard/handler'
import { JsonSource, type SourceOptions } from './json-source.ts'
import type { MetricsBySource } from './source-metrics.ts'
import { DATACITE_WORK } from './works/datacite-attributes.ts'
import { readAttributes } from './works/read-attributes.ts'
import type { Work } from './works/work.ts'
import type { Runtime } from './source-runtime.ts'

/** DataCite itself; a caller replaces what differs. */
export const LIVE_DATACITE: SourceOptions = {
  source: { name: 'DataCite', url: 'https://datacite.org/', licence: 'CC0-1.0' },
  baseUrl: 'https://api.datacite.org',
  timeoutMs: 3000,
}

/** The registry of research data and software. Throws `Failure` as `JsonSource` does. */
export class DataCite {
  readonly source: Source
  readonly #api: JsonSource

  constructor({ source, baseUrl, timeoutMs }: SourceOptions, runtime: Runtime, records: MetricsBySource) {
    this.source = source
    // 3,000 calls in five minutes are allowed.
    const rate = { perSecond: 5, burst: 10 }
    this.#api = new JsonSource(
      { name: 'DataCite', baseUrl, rate, timeoutMs },
      runtime,
      records.of('datacite'),
    )
  }

  /** The work; undefined when it is not registered with DataCite. */
  async find(doi: string, signal: AbortSignal): Promise<Work | undefined> {
    const question = {
      path: `/dois/${encodeURIComponent(doi)}`,
      query: {},
      headers: { accept: 'application/vnd.api+json' },
      shape: DATACITE_WORK,
    }
    const answer = await this.#api.find(question, signal)
    return answer && readAttributes(answer.data.attributes)
  }
}
