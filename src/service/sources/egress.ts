import { beforeDeadline, DeadlinePassed } from './deadline.ts'
import type { Measure } from './egress/reply-body.ts'
import { SiteBudget, type SiteTerms } from './egress/site-budget.ts'
import { showCertificate, type Certificate } from './egress/certificate.ts'
import type { Wire } from './egress/connection.ts'
import { hop, type Hop } from './egress/hop.ts'
import type { Outcome, Redirect } from './egress/outcome.ts'
import { CLOSED, OPEN, permits, readRobots, type Rules } from './egress/robots.ts'
import { hostOf, readTarget, refuseTarget, type Policy } from './egress/target.ts'
import { registrableDomain } from './public-suffix.ts'

export interface EgressOptions {
  /** Product token, as robots.txt files name programs: letters, `_` and `-`. */
  readonly agent: string
  /** User-Agent: the token first, and a contact. */
  readonly userAgent: string
  readonly policy: Policy
  readonly wire: Wire
}

export interface Request {
  readonly accept: string
  readonly measure: Measure
  /** Whether the site is asked first if programs may read this; well-known files are made for programs. */
  readonly robots: 'honour' | 'ignore'
}

const DEADLINE_MS = 10_000
const REDIRECTS = 3
/** RFC 9309 §2.3.1.2 and §2.5. */
const ROBOTS_REDIRECTS = 5
const ROBOTS = { bytes: 500 * 1024, beyond: 'cut' } as const
const ROBOTS_KEPT_MS = 3_600_000
const ROBOTS_KEPT = 1000

type Failed = Extract<Outcome, { readonly kind: 'failed' }>
type Verdict = Rules | Failed

/**
 * The one way out to addresses that callers name. Whatever they name, and wherever that leads, only public addresses on
 * the ports of the web are asked, with GET, without cookies or credentials, within ten seconds and a measure.
 *
 * @example
 * const outcome = await egress.get('https://example.com/', { accept: 'text/html', measure, robots: 'honour' }, signal)
 * const { body } = answerOf(outcome, 'url')
 */
export class Egress {
  readonly #options: EgressOptions
  readonly #now: () => Date
  readonly #budget: SiteBudget
  /** By origin; promises, so that concurrent callers share one request. */
  readonly #robots = new Map<string, { readonly until: number; readonly verdict: Promise<Verdict> }>()

  constructor(options: EgressOptions, now: () => Date, terms?: SiteTerms) {
    this.#options = options
    this.#now = now
    this.#budget = new SiteBudget(now, terms)
  }

  /** The same way out with budgets of its own: who uses this one up takes nothing from that one. */
  apart(terms?: SiteTerms): Egress {
    return new Egress(this.#options, this.#now, terms)
  }

  async get(address: string, request: Request, signal: AbortSignal): Promise<Outcome> {
    const url = readTarget(address)
    if (typeof url === 'string') return { kind: 'refused', refusal: url, redirected: false }
    try {
      return await beforeDeadline(signal, DEADLINE_MS, (limit) =>
        this.#follow(url, request, REDIRECTS, limit),
      )
    } catch (cause) {
      if (!(cause instanceof DeadlinePassed)) throw cause
      return { kind: 'failed', mishap: 'timeout' }
    }
  }

  /** The certificate of a host by name, valid or not; undefined when it shows none, or may not be asked. */
  async certificate(host: string, signal: AbortSignal): Promise<Certificate | undefined> {
    const { policy, wire } = this.#options
    const url = readTarget(`https://${host}/`)
    if (typeof url === 'string' || refuseTarget(url, policy) !== undefined) return undefined
    const entry = this.#budget.enter(registrableDomain(hostOf(url)) ?? hostOf(url))
    if (entry.kind === 'refused') return undefined
    try {
      return await showCertificate(url, policy, wire, signal)
    } finally {
      entry.leave()
    }
  }

  async #follow(first: URL, request: Request, most: number, signal: AbortSignal): Promise<Outcome> {
    const redirects: Redirect[] = []
    let url = first
    for (;;) {
      const redirected = redirects.length > 0
      const refusal = refuseTarget(url, this.#options.policy)
      if (refusal !== undefined) return { kind: 'refused', refusal, redirected }
      if (request.robots === 'honour') {
        const verdict = await this.#rulesFor(url, signal)
        if ('mishap' in verdict) return verdict
        if (!permits(verdict, url)) return { kind: 'refused', refusal: 'robots', redirected }
      }
      const answer = await this.#ask(url, request, signal)
      switch (answer.kind) {
        case 'answered':
          return { kind: 'answered', reply: { ...answer, url, redirects } }
        case 'refused':
          return { kind: 'refused', refusal: 'address', redirected }
        case 'failed':
          return answer
        case 'moved': {
          const { status, to } = answer
          if (redirects.length === most || !URL.canParse(to, url.href))
            return { kind: 'failed', mishap: 'redirects' }
          url = new URL(to, url)
          redirects.push({ status, to: url.href })
        }
      }
    }
  }

  async #ask(url: URL, { accept, measure }: Request, signal: AbortSignal): Promise<Hop | Failed> {
    const host = hostOf(url)
    const entry = this.#budget.enter(registrableDomain(host) ?? host)
    if (entry.kind === 'refused') return { kind: 'failed', mishap: 'limited', retryAfter: entry.retryAfter }
    const { policy, wire, userAgent } = this.#options
    try {
      return await hop(url, { headers: { accept, 'user-agent': userAgent }, measure, policy, wire }, signal)
    } finally {
      entry.leave()
    }
  }

  async #rulesFor({ origin }: URL, signal: AbortSignal): Promise<Verdict> {
    const now = this.#now().getTime()
    const kept = this.#robots.get(origin)
    if (kept !== undefined && kept.until > now) return kept.verdict
    const verdict = this.#readRules(origin, signal)
    this.#robots.set(origin, { until: now + ROBOTS_KEPT_MS, verdict })
    for (const oldest of this.#robots.keys()) {
      if (this.#robots.size <= ROBOTS_KEPT) break
      this.#robots.delete(oldest)
    }
    // Concurrent callers share the failure; later ones ask again.
    if ('mishap' in (await verdict)) this.#robots.delete(origin)
    return verdict
  }

  /** RFC 9309 §2.3.1: a file that is not there permits all, one that cannot be read now permits nothing. */
  async #readRules(origin: string, signal: AbortSignal): Promise<Verdict> {
    const request = { accept: 'text/plain, */*;q=0.5', measure: ROBOTS, robots: 'ignore' } as const
    const outcome = await this.#follow(new URL('/robots.txt', origin), request, ROBOTS_REDIRECTS, signal)
    if (outcome.kind === 'refused') return OPEN
    if (outcome.kind === 'failed') return outcome.mishap === 'redirects' ? OPEN : outcome
    const { status, body } = outcome.reply
    if (status >= 500 || status === 429) return { kind: 'failed', mishap: 'robots' }
    if (status === 401 || status === 403) return CLOSED
    if (status < 200 || status >= 300) return OPEN
    return readRobots(new TextDecoder().decode(body), this.#options.agent)
  }
}
