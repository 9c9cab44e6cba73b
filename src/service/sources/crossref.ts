import type { Source } from 'ratecard/handler'
import { JsonSource, type SourceOptions } from './json-source.ts'
import { compileShape } from './answer-shape.ts'
import type { MetricsBySource } from './source-metrics.ts'
import { CITED, MESSAGE, type Message } from './works/crossref-message.ts'
import { readMessage } from './works/read-message.ts'
import type { Work } from './works/work.ts'
import type { Runtime } from './source-runtime.ts'

export interface CrossrefOptions extends SourceOptions {
  /** Whom Crossref may write to about our calls; it answers those faster who say. */
  readonly mailto: string | undefined
}

/** Crossref itself; a caller replaces what differs. */
export const LIVE_CROSSREF: Omit<CrossrefOptions, 'mailto'> = {
  source: { name: 'Crossref', url: 'https://www.crossref.org/', licence: 'CC0-1.0' },
  baseUrl: 'https://api.crossref.org',
  timeoutMs: 3000,
}

/** A work that a search has found, and how well it fits by Crossref's own measure. */
export interface Hit {
  readonly work: Work
  readonly score: number
}

const ROWS = '5'
const FIELDS = 'DOI,title,author,issued,container-title,type,score'

const WORK = compileShape<{ readonly message: Message }>(
  {
    type: 'object',
    required: ['message'],
    properties: { message: MESSAGE },
  },
  {
    vital: CITED.map((field) => `message/${field}`),
    expected: ['message/title', 'message/type', 'message/issued', 'message/publisher'],
  },
)
const HITS = compileShape<{ readonly message: { readonly items: readonly Message[] } }>(
  {
    type: 'object',
    required: ['message'],
    properties: {
      message: {
        type: 'object',
        required: ['items'],
        properties: { items: { type: 'array', items: MESSAGE } },
      },
    },
  },
  { rows: 'message/items', expected: ['title', 'type', 'score'] },
)

/** The largest registry of scholarly works. Throws `Failure` as `JsonSource` does. */
export class Crossref {
  readonly source: Source
  readonly #polite: Readonly<Record<string, string>>
  readonly #works: JsonSource
  readonly #lists: JsonSource

  constructor(
    { source, baseUrl, mailto, timeoutMs }: CrossrefOptions,
    runtime: Runtime,
    records: MetricsBySource,
  ) {
    this.source = source
    this.#polite = mailto === undefined ? {} : { mailto }
    // What is allowed to those who give an address, and to all others.
    const [one, list] = mailto === undefined ? [5, 1] : [10, 3]
    const ask = (perSecond: number): JsonSource =>
      new JsonSource(
        { name: 'Crossref', baseUrl, rate: { perSecond, burst: perSecond }, timeoutMs },
        runtime,
        records.of('crossref'),
      )
    this.#works = ask(one)
    this.#lists = ask(list)
  }

  /** The work; undefined when it is not registered with Crossref. */
  async find(doi: string, signal: AbortSignal): Promise<Work | undefined> {
    const path = `/works/${encodeURIComponent(doi)}`
    const answer = await this.#works.find({ path, query: this.#polite, shape: WORK }, signal)
    return answer && readMessage(answer.message)
  }

  /** Works that words of title, authors, journal and year may mean, the likeliest first; at most five. */
  async search(words: string, signal: AbortSignal): Promise<readonly Hit[]> {
    const query = { 'query.bibliographic': words, rows: ROWS, select: FIELDS, ...this.#polite }
    const { message } = await this.#lists.get({ path: '/works', query, shape: HITS }, signal)
    return message.items.map((item) => ({ work: readMessage(item), score: item.score ?? 0 }))
  }
}
