import { Failure, isJsonObject, type Json, type JsonObject, type Source } from 'ratecard/handler'
import { beforeDeadline, DeadlinePassed } from './deadline.ts'
import type { Egress } from './egress.ts'
import type { Outcome } from './egress/outcome.ts'
import type { SourceOptions } from './json-source.ts'
import { compileShape } from './answer-shape.ts'
import type { SourceMetrics } from './source-metrics.ts'
import { CITED, MESSAGE } from './works/crossref-message.ts'
import { readMessage } from './works/read-message.ts'
import type { Work } from './works/work.ts'

/** The DOI Foundation's own; a caller replaces what differs. */
export const LIVE_DOI_RESOLVER: SourceOptions = {
  source: { name: 'doi.org', url: 'https://www.doi.org/' },
  baseUrl: 'https://doi.org',
  timeoutMs: 3000,
}

const REQUEST = {
  accept: 'application/vnd.citationstyles.csl+json',
  measure: { bytes: 1024 * 1024, beyond: 'refuse' },
  robots: 'ignore',
} as const
const JSON_TYPE = /^application\/([\w.-]+\+)?json\s*(;|$)/i

const IS_MESSAGE = compileShape(MESSAGE, { vital: CITED })

/**
 * What an agency says about a DOI, whichever it belongs to: doi.org sends on to it, and it is asked for CSL-JSON. Where that
 * leads is for agencies to say, hence by way of the egress.
 */
export class DoiResolver {
  readonly source: Source
  readonly #baseUrl: string
  readonly #timeoutMs: number
  readonly #egress: Egress
  readonly #record: SourceMetrics

  /** What others ask through `egress` takes nothing from the budget of this one. */
  constructor({ source, baseUrl, timeoutMs }: SourceOptions, egress: Egress, record: SourceMetrics) {
    this.source = source
    this.#baseUrl = baseUrl
    this.#timeoutMs = timeoutMs
    this.#egress = egress.apart()
    this.#record = record
  }

  /** The work; undefined when the DOI does not exist, or its agency describes works for people only. */
  async find(doi: string, signal: AbortSignal): Promise<Work | undefined> {
    this.#record.countAsked()
    const address = `${this.#baseUrl.replace(/\/+$/, '')}/${encodeURIComponent(doi)}`
    const outcome = await this.#get(address, signal)
    // An agency that is not there, or not for us, describes nothing.
    if (outcome.kind === 'refused' && (outcome.redirected || outcome.refusal === 'length')) return undefined
    if (outcome.kind === 'failed' && outcome.mishap === 'timeout')
      throw this.#failed('source_timeout', 'did not answer in time')
    if (outcome.kind === 'failed' && outcome.mishap === 'limited')
      throw this.#failed('source_limited', 'is asked as often as it may be', outcome.retryAfter)
    if (outcome.kind !== 'answered') throw this.#failed('source_error', 'could not be asked')
    const { status, header, body } = outcome.reply
    if (status === 429) throw this.#failed('source_limited', 'limits how often it may be asked')
    if (status >= 500) throw this.#failed('source_error', 'answered with an error')
    if (status !== 200 || !JSON_TYPE.test(header('content-type') ?? '')) return undefined
    const reading = IS_MESSAGE.read(asMessage(parse(body)))
    if (reading.kind === 'unreadable') {
      this.#record.countDrifted(reading.where)
      throw new Failure('source_error', 'The agency of the DOI answered in an unknown form')
    }
    for (const { where, count } of reading.flaws) this.#record.countSkipped(where, count)
    const work = readMessage(reading.answer)
    // Few agencies say so here, and none says that nothing was retracted.
    return { ...work, isRetracted: work.retraction === null ? null : true }
  }

  async #get(address: string, signal: AbortSignal): Promise<Outcome> {
    try {
      return await beforeDeadline(signal, this.#timeoutMs, (limit) =>
        this.#egress.get(address, REQUEST, limit),
      )
    } catch (cause) {
      if (!(cause instanceof DeadlinePassed)) throw cause
      return { kind: 'failed', mishap: 'timeout' }
    }
  }

  #failed(
    code: 'source_error' | 'source_timeout' | 'source_limited',
    verb: string,
    retryAfter?: number,
  ): Failure {
    this.#record.countFailed()
    const wait = retryAfter === undefined ? {} : { retryAfter }
    return new Failure(code, `The agency of the DOI ${verb}`, wait)
  }
}

function parse(bytes: Uint8Array): Json {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Json
  } catch {
    return null
  }
}

const LISTS = ['title', 'subtitle', 'container-title', 'short-container-title', 'ISSN', 'ISBN']
const TEXTS = ['volume', 'issue', 'page', 'article-number', 'language', 'publisher', 'type']

/** CSL-JSON in the form Crossref uses: lists for single texts, texts for numbers, numbers for dates. */
function asMessage(item: Json): Json {
  if (!isJsonObject(item)) return item
  const { DOI, author = null, editor = null, issued = null, edition = null } = item
  const short = item['container-title-short'] ?? item['short-container-title'] ?? null
  return {
    ...Object.fromEntries(LISTS.map((name) => [name, listOf(item[name] ?? null)])),
    ...Object.fromEntries(TEXTS.map((name) => [name, textOf(item[name] ?? null)])),
    ...(DOI === undefined ? {} : { DOI }),
    'short-container-title': listOf(short),
    'edition-number': textOf(edition),
    'updated-by': item['updated-by'] ?? null,
    author: namesOf(author),
    editor: namesOf(editor),
    issued: isJsonObject(issued) ? datedOf(issued) : null,
  }
}

function listOf(value: Json): Json {
  return typeof value === 'string' ? [value] : value
}

function textOf(value: Json): Json {
  return typeof value === 'number' ? String(value) : value
}

function namesOf(value: Json): Json {
  if (!Array.isArray(value)) return null
  return value.map((name: Json) =>
    isJsonObject(name) ? { ...name, name: name['literal'] ?? name['name'] ?? null } : name,
  )
}

function datedOf({ 'date-parts': parts = null, raw = null }: JsonObject): Json {
  const [first = null] = Array.isArray(parts) ? parts : []
  const numbers = Array.isArray(first) ? first : typeof raw === 'string' ? raw.split('-') : []
  return { 'date-parts': [numbers.map(numberOf)] }
}

function numberOf(part: Json): Json {
  const isText = typeof part === 'string' && /^\d{1,4}$/.test(part)
  return isText || typeof part === 'number' ? Number(part) : null
}
