import type { Source } from 'ratecard/handler'
import { JsonSource } from './json-source.ts'
import type { SourceRecords } from './source-record.ts'
import { DATACITE_WORK } from './works/datacite-attributes.ts'
import { readAttributes } from './works/read-attributes.ts'
import type { Work } from './works/work.ts'
import type { Runtime } from './world.ts'

export interface DataCiteOptions {
  /** As answers name where their data comes from. */
  readonly source: Source
  readonly baseUrl: string
  /** For a question. */
  readonly timeoutMs: number
}

/** DataCite itself; a caller replaces what differs. */
export const LIVE_DATACITE: DataCiteOptions = {
  source: { name: 'DataCite', url: 'https://datacite.org/', licence: 'CC0-1.0' },
  baseUrl: 'https://api.datacite.org',
  timeoutMs: 3000,
}

/** The registry of research data and software. Throws `Failure` as `JsonSource` does. */
export class DataCite {
  readonly source: Source
  readonly #api: JsonSource

  constructor({ source, baseUrl, timeoutMs }: DataCiteOptions, world: Runtime, records: SourceRecords) {
    this.source = source
    // 3,000 calls in five minutes are allowed.
    const rate = { perSecond: 5, burst: 10 }
    this.#api = new JsonSource({ name: 'DataCite', baseUrl, rate, timeoutMs }, world, records.of('datacite'))
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
