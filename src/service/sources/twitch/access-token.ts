import { Failure } from 'ratecard/handler'
import { JsonSource, Refused, type Question } from '../json-source.ts'
import { compileShape } from '../answer-shape.ts'
import type { SourceMetrics } from '../source-metrics.ts'
import type { Runtime } from '../source-runtime.ts'

/** An application of the operator's, as Twitch's console names its parts. */
export interface Credentials {
  readonly clientId: string
  readonly clientSecret: string
}

/** Opens a stand-in and nothing else. */
export const STAND_IN_CREDENTIALS: Credentials = {
  clientId: 'stand-in-client',
  clientSecret: 'stand-in-secret',
}

export interface TwitchAccessOptions {
  readonly baseUrl: string
  /** Undefined: what needs them fails with `not_configured`. */
  readonly credentials: Credentials | undefined
  readonly timeoutMs: number
}

interface Token {
  readonly text: string
  /** Milliseconds since the epoch. */
  readonly until: number
}

const TOKEN = compileShape<{ readonly access_token: string; readonly expires_in: number }>({
  type: 'object',
  required: ['access_token', 'expires_in'],
  properties: {
    access_token: { type: 'string', pattern: '^[\\x21-\\x7e]{1,500}$' },
    expires_in: { type: 'integer', minimum: 0 },
  },
})

/** A token is not used in its last minutes: the clocks of two hosts may differ. */
const MARGIN_SECONDS = 300

/** The operator's way into Twitch and IGDB, which know one token for both. */
export class TwitchAccess {
  readonly #credentials: Credentials | undefined
  readonly #host: JsonSource
  readonly #now: () => Date
  #token: Token | undefined
  #fetching: Promise<Token> | undefined

  constructor(
    { baseUrl, credentials, timeoutMs }: TwitchAccessOptions,
    runtime: Runtime,
    record: SourceMetrics,
  ) {
    this.#credentials = credentials
    this.#now = runtime.now
    const rate = { perSecond: 0.5, burst: 10 }
    this.#host = new JsonSource({ name: 'The log-in of Twitch', baseUrl, rate, timeoutMs }, runtime, record)
  }

  /**
   * Asks a question with a token, and once more with a fresh one when the source does not accept it. Throws `Failure` as
   * `JsonSource` does, and `not_configured` without credentials or with wrong ones.
   */
  async ask<Answer>(source: JsonSource, question: Question<Answer>, signal: AbortSignal): Promise<Answer> {
    const token = await this.#hold()
    try {
      return await source.get(this.#sign(question, token), signal)
    } catch (fault) {
      if (!(fault instanceof Refused && fault.answered === 401)) throw fault
      // The first that notices discards the token; the others take the new one.
      if (this.#token === token) this.#token = undefined
      return source.get(this.#sign(question, await this.#hold()), signal)
    }
  }

  #sign<Answer>(question: Question<Answer>, { text }: Token): Question<Answer> {
    const headers = { authorization: `Bearer ${text}`, 'client-id': this.#credentials?.clientId ?? '' }
    return { ...question, headers }
  }

  async #hold(): Promise<Token> {
    if (this.#token !== undefined && this.#now().getTime() < this.#token.until) return this.#token
    this.#fetching ??= this.#fetch().finally(() => (this.#fetching = undefined))
    return this.#fetching
  }

  /** Serves all who need it, so nobody's leaving ends it: its own time does. */
  async #fetch(): Promise<Token> {
    if (this.#credentials === undefined)
      throw new Failure('not_configured', 'the operator has set no credentials for Twitch')
    const { clientId, clientSecret } = this.#credentials
    const form = { client_id: clientId, client_secret: clientSecret, grant_type: 'client_credentials' }
    const post = { type: 'application/x-www-form-urlencoded', text: new URLSearchParams(form).toString() }
    try {
      const signal = new AbortController().signal
      const answer = await this.#host.get({ path: '/oauth2/token', query: {}, post, shape: TOKEN }, signal)
      const seconds = Math.max(0, answer.expires_in - MARGIN_SECONDS)
      const token = { text: answer.access_token, until: this.#now().getTime() + seconds * 1000 }
      this.#token = token
      return token
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault
      throw new Failure('not_configured', 'Twitch does not accept the credentials of the operator')
    }
  }
}
