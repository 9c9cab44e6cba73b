import type { Catalog, Route } from '../catalog/catalog.ts'
import { curlOf } from './example.ts'
import { chaptersOf, listedRoutes, listedTools, previewsOf, priceOf, toolPrice } from './listing.ts'
import { definePage, frameOf, readPage } from './page.ts'
import { type Facts, placedDocuments } from './registry.ts'
import { listedServers, serverPagePath } from './servers.ts'
import { type TemplateContext, webAddress } from './template.ts'
import { sentence, spellDuration } from './copy.ts'

const printHome = readPage('home.html.hbs')

/** The index for people: what is sold, for how much, and where to read on. */
export function renderHome(catalog: Catalog, facts: Facts): string {
  const { name, description } = catalog.service
  const routes = listedRoutes(catalog)
  const previews = previewsOf(routes)
  const documents = placedDocuments(catalog, facts.baseUrl)
  const manual = documents.find((document) => document.name === 'docs')?.paths[0] ?? ''
  const free = routes.find(({ kind }) => kind !== 'paid')
  const paid = routes.find(({ kind }) => kind === 'paid')
  return printHome({
    page: frameOf(catalog, facts, 'index'),
    name,
    description: sentence(description),
    manual,
    chapters: chaptersOf(catalog, routes).map((chapter) => ({
      title: chapter.title,
      rows: chapter.routes.map((route) => priceRow(route, previews.get(route.operation), manual)),
    })),
    servers: serversOf(catalog, facts),
    trial: free === undefined ? '' : curlOf(facts.baseUrl, free),
    offer: paid === undefined ? '' : curlOf(facts.baseUrl, paid, '-i'),
    documents: documents
      .filter((document) => document.name !== 'index')
      .map(({ title, summary, paths }) => ({ title, summary, path: paths[0] ?? '/' })),
  })
}

function serversOf(catalog: Catalog, facts: Facts): TemplateContext[] {
  return listedServers(catalog, facts)
    .filter(({ tools }) => tools.length > 0)
    .map(({ name, title, tools }) => ({
      title,
      place: serverPagePath(catalog, name) ?? '',
      rows: tools.map((listed) => ({
        name: listed.tool.name,
        summary: sentence(listed.operation.summary),
        price: toolPrice(listed) ?? 'free',
      })),
    }))
}

function priceRow(route: Route, preview: Route | undefined, manual: string): TemplateContext {
  return {
    path: route.path,
    href: manual === '' ? '' : `${manual}#${route.name}`,
    summary: sentence(route.summary),
    price: priceOf(route) ?? 'free',
    preview: preview === undefined || manual === '' ? '' : `${manual}#${preview.name}`,
  }
}

const printPrivacy = readPage('privacy.html.hbs')

/** What is kept of those who call, for how long, and who else gets to know: figures from the catalog. */
export const privacy = definePage('privacy', (catalog, facts) => {
  const { service, payments } = catalog
  const routes = listedRoutes(catalog)
  return printPrivacy({
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

/** One row for each operation whose answers are shared for a while, by its first route. */
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
  const first = new Map(routes.toReversed().map((route) => [route.operation, route]))
  return routes.filter((route) => first.get(route.operation) === route)
}
