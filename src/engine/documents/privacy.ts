import type { Catalog, Route } from '../catalog/catalog.ts'
import { listedRoutes, listedTools } from './listing.ts'
import { definePage, frameOf, readPage } from './page.ts'
import { type TemplateContext, webAddress } from './template.ts'
import { spellDuration } from './wording.ts'

const print = readPage('privacy.html.hbs')

/** What is kept of those who call, for how long, and who else gets to know: figures from the catalog. */
export const privacy = definePage('privacy', (catalog, facts) => {
  const { service, payments } = catalog
  const routes = listedRoutes(catalog)
  return print({
    page: frameOf(catalog, facts, 'privacy'),
    sells: routes.some(({ kind }) => kind === 'paid'),
    redeliver: spellDuration(payments.redeliver),
    remembering: listedTools(catalog, facts)
      .filter(({ tool }) => tool.requires === 'payer')
      .map(({ tool: { name } }) => ({ name })),
    cached: cachedRows(routes),
    sources: sourceRows(catalog, routes),
    email: service.contact.email ?? '',
    contactUrl: webAddress(service.contact.url),
  })
})

/** One row for each operation whose answers are shared for a while, by its first face. */
function cachedRows(routes: readonly Route[]): TemplateContext[] {
  return firstFaces(routes).flatMap(({ path, operation: { cache } }) => {
    if (cache === undefined) return []
    const { ttl, staleIfError } = cache
    return [{ path, fresh: spellDuration(ttl), longest: spellDuration(ttl + staleIfError) }]
  })
}

/** Who is asked for what: whatever a caller sends to these paths may be sent on. */
function sourceRows({ sources }: Catalog, routes: readonly Route[]): TemplateContext[] {
  return Object.entries(sources).flatMap(([name, { title, url, terms }]) => {
    const asking = firstFaces(routes).filter(({ operation }) => operation.sources.includes(name))
    if (asking.length === 0) return []
    return [{ title, url: webAddress(url), terms: webAddress(terms), paths: asking.map(({ path }) => path) }]
  })
}

function firstFaces(routes: readonly Route[]): Route[] {
  const faces = new Map(routes.toReversed().map((route) => [route.operation, route]))
  return routes.filter((route) => faces.get(route.operation) === route)
}
