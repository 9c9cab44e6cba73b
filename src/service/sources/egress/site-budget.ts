import { TokenBucket, type Rate } from '../token-bucket.ts'

export type RequestBudget =
  | { readonly kind: 'granted'; readonly leave: () => void }
  | { readonly kind: 'refused'; readonly retryAfter: number }

interface Site {
  readonly bucket: TokenBucket
  open: number
}

export interface SiteTerms extends Rate {
  /** Calls under way at the same time. */
  readonly atOnce: number
}

/** Limits of a site that a caller names. */
const CALLERS: SiteTerms = { perSecond: 0.5, burst: 30, atOnce: 8 }
const SITES = 10_000

/** Limits requests to one site on behalf of callers, so that nobody is flooded through this service. */
export class SiteBudget {
  readonly #now: () => Date
  readonly #terms: SiteTerms
  readonly #sites = new Map<string, Site>()

  constructor(now: () => Date, terms = CALLERS) {
    this.#now = now
    this.#terms = terms
  }

  /** `site` is the registered name, so that a thousand subdomains are one; `leave` belongs to the end of the call. */
  enter(site: string): RequestBudget {
    const known = this.#sites.get(site) ?? { bucket: new TokenBucket(this.#terms, this.#now), open: 0 }
    this.#sites.delete(site)
    this.#sites.set(site, known)
    this.#forgetOldest()
    if (known.open >= this.#terms.atOnce) return { kind: 'refused', retryAfter: 2 }
    const ticket = known.bucket.take(0)
    if (ticket.kind === 'refused') return { kind: 'refused', retryAfter: Math.ceil(ticket.waitMs / 1000) }
    known.open += 1
    return {
      kind: 'granted',
      leave: () => {
        known.open -= 1
      },
    }
  }

  #forgetOldest(): void {
    for (const site of this.#sites.keys()) {
      if (this.#sites.size <= SITES) return
      this.#sites.delete(site)
    }
  }
}
