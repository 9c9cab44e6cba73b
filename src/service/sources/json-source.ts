import { Failure, type Source } from 'ratecard/handler'
import { beforeDeadline, DeadlinePassed } from './deadline.ts'
import { discard, readJson } from './json-body.ts'
import { parseReset, parseRetryAfter } from './retry-after.ts'
import type { Shape } from './answer-shape.ts'
import type { SourceMetrics } from './source-metrics.ts'
import { TokenBucket, type Rate } from './token-bucket.ts'
import type { FetchOptions, Reply, Runtime } from './source-runtime.ts'

/** What differs between a source and its stand-in. */
export interface SourceOptions {
  /** Source name in answers. */
  readonly source: Source
  readonly baseUrl: string
  /** For each question; all that follow one another must fit into the time of a request. */
  readonly timeoutMs: number
}

export interface JsonSourceOptions {
  /** Name at the start of error sentences: `The game store`. */
  readonly name: string
  readonly baseUrl: string
  readonly rate: Rate
  /** For one question, with the wait for its turn and the retry. */
  readonly timeoutMs: number
}

export interface Question<Answer> {
  /** Below the base URL, with dynamic segments already encoded. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly shape: Shape<Answer>
  readonly headers?: Readonly<Record<string, string>>
  /** Makes it a POST; it must be one that may be sent twice. */
  readonly post?: { readonly type: string; readonly text: string }
}

/** The source has understood and will not answer: it wants other credentials, or another question. */
export class Refused extends Failure {
  /** Between 400 and 499, and neither 404 nor 429. */
  readonly answered: number

  constructor(name: string, answered: number) {
    super('source_error', `${name} answered with an error`)
    this.answered = answered
  }
}

type Outcome =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'absent' }
  /** `hiccup` is worth a second attempt, `failed` is not. */
  | { readonly kind: 'hiccup' | 'failed'; readonly failure: Failure }

const MAX_BYTES = 2 * 1024 * 1024
/** A limited host that does not say for how long. */
const PAUSE_SECONDS = 30
const RETRY_MS = 150
/** Crossref answers the DOI of a work that has another one now with a redirect to that. */
const MOST_REDIRECTS = 2

/**
 * Asks one host for JSON: within a deadline, a size and a rate, with one retry, and with every
 * answer checked: what is odd in it is left out and counted.
 * Whatever goes wrong becomes a `Failure`: `source_error`, `source_timeout` or `source_limited`.
 *
 * @example
 * const store = new JsonSource({ name: 'The store', baseUrl, rate: { perSecond: 1, burst: 5 }, timeoutMs: 5000 }, runtime, record)
 * const { items } = await store.get({ path: '/search', query: { q: 'chess' }, shape: SEARCH }, context.signal)
 */
export class JsonSource {
  readonly #options: JsonSourceOptions
  readonly #runtime: Runtime
  readonly #record: SourceMetrics
  readonly #bucket: TokenBucket
  #pause = { from: 0, until: 0 }

  constructor(options: JsonSourceOptions, runtime: Runtime, record: SourceMetrics) {
    this.#options = options
    this.#runtime = runtime
    this.#record = record
    this.#bucket = new TokenBucket(options.rate, runtime.now)
  }

  /** The answer; status 404 is a failure like any other. */
  async get<Answer>(question: Question<Answer>, signal: AbortSignal): Promise<Answer> {
    const answer = await this.find(question, signal)
    if (answer === undefined) throw this.#failed('answered with an error').failure
    return answer
  }

  /** The answer; undefined for a 404. */
  async find<Answer>(question: Question<Answer>, signal: AbortSignal): Promise<Answer | undefined> {
    const outcome = await this.#recorded(() => this.#ask(question, signal))
    if (outcome.kind === 'absent') return undefined
    if (outcome.kind !== 'json') throw outcome.failure
    const reading = question.shape.read(outcome.value)
    if (reading.kind === 'unreadable') {
      this.#record.countDrifted(reading.where)
      throw this.#failed('answered in an unknown form').failure
    }
    for (const { where, count } of reading.flaws) this.#record.countSkipped(where, count)
    return reading.answer
  }

  async #recorded(ask: () => Promise<Outcome>): Promise<Outcome> {
    this.#record.countAsked()
    try {
      const outcome = await ask()
      if (outcome.kind === 'hiccup' || outcome.kind === 'failed') this.#record.countFailed()
      return outcome
    } catch (cause) {
      this.#record.countFailed()
      throw cause
    }
  }

  async #ask(question: Question<unknown>, signal: AbortSignal): Promise<Outcome> {
    const { path, query } = question
    const url = new URL(this.#options.baseUrl.replace(/\/+$/, '') + path)
    url.search = new URLSearchParams(query).toString()
    try {
      return await beforeDeadline(signal, this.#options.timeoutMs, async (limit) => {
        const first = await this.#attempt(url, question, limit)
        if (first.kind !== 'hiccup') return first
        await this.#runtime.sleep(RETRY_MS * (1 + this.#runtime.random()), limit)
        return this.#attempt(url, question, limit)
      })
    } catch (cause) {
      if (!(cause instanceof DeadlinePassed)) throw cause
      throw new Failure('source_timeout', `${this.#options.name} did not answer in time`, { cause })
    }
  }

  async #attempt(url: URL, { headers, post }: Question<unknown>, signal: AbortSignal): Promise<Outcome> {
    await this.#turn(signal)
    try {
      const sent: FetchOptions = {
        signal,
        headers: { accept: 'application/json', ...headers },
        redirect: 'manual',
      }
      const posted = post && ({ method: 'POST', body: post.text } as const)
      if (post !== undefined) sent.headers['content-type'] = post.type
      let reply = await this.#runtime.fetch(url, { ...sent, ...posted })
      for (let hops = 0; hops < MOST_REDIRECTS && post === undefined; hops++) {
        const next = redirectWithin(url, reply)
        if (next === undefined) break
        await discard(reply.body)
        reply = await this.#runtime.fetch(next, sent)
      }
      return await this.#judge(reply)
    } catch (cause) {
      if (signal.aborted) throw cause
      return { ...this.#failed('could not be reached', cause), kind: 'hiccup' }
    }
  }

  /** Waits until the rate limit allows a call, or fails at once when that takes too long. */
  async #turn(signal: AbortSignal): Promise<void> {
    this.#refuseWhilePaused()
    // Half of the time may go by waiting, the other half belongs to the call.
    const ticket = this.#bucket.take(this.#options.timeoutMs / 2)
    if (ticket.kind === 'refused')
      throw this.#limited(ticket.waitMs / 1000, 'is asked as often as we may').failure
    if (ticket.waitMs === 0) return
    try {
      await this.#runtime.sleep(ticket.waitMs, signal)
      this.#refuseWhilePaused()
    } catch (cause) {
      this.#bucket.giveBack()
      throw cause
    }
  }

  async #judge(reply: Reply): Promise<Outcome> {
    const { status, headers, body } = reply
    if (status >= 200 && status < 300) {
      const content = await readJson(reply, MAX_BYTES)
      if (content.kind === 'json') return content
      if (content.fault === 'a refusal') return this.#pauseFor(PAUSE_SECONDS)
      return this.#failed(`sent a body that is ${content.fault}`)
    }
    await discard(body)
    const now = this.#runtime.now()
    const retryAfter =
      parseRetryAfter(headers.get('retry-after'), now) ?? parseReset(headers.get('ratelimit-reset'), now)
    if (status === 429 || (status === 503 && retryAfter !== undefined)) {
      return this.#pauseFor(retryAfter ?? PAUSE_SECONDS)
    }
    if (status === 404) return { kind: 'absent' }
    if (status >= 400 && status < 500)
      return { kind: 'failed', failure: new Refused(this.#options.name, status) }
    const failed = this.#failed('answered with an error')
    return status >= 500 ? { ...failed, kind: 'hiccup' } : failed
  }

  #pauseFor(seconds: number): Outcome {
    const from = this.#runtime.now().getTime()
    this.#pause = { from, until: from + seconds * 1000 }
    return this.#limited(seconds)
  }

  #refuseWhilePaused(): void {
    const now = this.#runtime.now().getTime()
    const { from, until } = this.#pause
    // A clock set back to before the pause ends it: better one refused call than a pause of hours.
    if (now >= from && now < until) throw this.#limited((until - now) / 1000).failure
  }

  #limited(
    seconds: number,
    verb = 'limits how often it may be asked',
  ): { readonly kind: 'failed'; readonly failure: Failure } {
    const retryAfter = Math.max(1, Math.ceil(seconds))
    const failure = new Failure('source_limited', `${this.#options.name} ${verb}`, { retryAfter })
    return { kind: 'failed', failure }
  }

  #failed(verb: string, cause?: unknown): { readonly kind: 'failed'; readonly failure: Failure } {
    return {
      kind: 'failed',
      failure: new Failure('source_error', `${this.#options.name} ${verb}`, { cause }),
    }
  }
}

/** A redirect within the host; a redirect elsewhere means that the source has moved or wants a log-in. */
function redirectWithin({ origin, href }: URL, { status, headers }: Reply): URL | undefined {
  const location = [301, 302, 303, 307, 308].includes(status) ? headers.get('location') : null
  if (location === null || !URL.canParse(location, href)) return undefined
  const next = new URL(location, href)
  return next.origin === origin ? next : undefined
}
