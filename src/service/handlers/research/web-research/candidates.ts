import type { SearchHit } from '../../../sources/search-engine.ts'
import { registrableDomain } from '../../../sources/public-suffix.ts'
import { hostOf, readTarget } from '../../../sources/egress/target.ts'

const MOST_OF_ONE_SITE = 2
/** Tell nothing of the page: who has sent the reader, and from which campaign. */
const TRACKING = /^(?:utm_\w+|gclid|fbclid|msclkid)$/i

/** The pages worth reading, best first: each once, and no site more than twice. */
export function candidatesOf(hits: readonly SearchHit[]): SearchHit[] {
  const seen = new Set<string>()
  const taken = new Map<string, number>()
  return hits.flatMap((hit) => {
    const url = readTarget(hit.url)
    if (typeof url === 'string') return []
    const page = identityOf(url)
    const host = hostOf(url)
    const site = registrableDomain(host) ?? host
    const before = taken.get(site) ?? 0
    if (seen.has(page) || before === MOST_OF_ONE_SITE) return []
    seen.add(page)
    taken.set(site, before + 1)
    return [{ ...hit, url: url.href }]
  })
}

/** The same for all addresses of one page: fragments, tracking, `www.`, a final slash and the scheme make no other one. */
export function identityOf(url: URL): string {
  const query = Array.from(url.searchParams).filter(([name]) => !TRACKING.test(name))
  const path = url.pathname.replace(/\/+$/, '')
  return `${hostOf(url).replace(/^www\./, '')}${path}?${new URLSearchParams(query).toString()}`
}
