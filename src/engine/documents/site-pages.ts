import type { Catalog, Route } from '../catalog/catalog.ts'
import { ERRORS } from '../base/errors.ts'
import { formatShort } from '../base/money.ts'
import { countOf, sentence, spellDuration } from '../base/words.ts'
import { manualOf } from './manual.ts'
import { curlOf } from './example-programs.ts'
import { chaptersOf, listedRoutes, listedTools, previewsOf } from './listed-operations.ts'
import { listedServers, serverPagePath } from './mcp-servers.ts'
import { searchWords } from './search-words.ts'
import { guideOf } from './site-guide.ts'
import { isUpfront, viewRoute, viewTool } from './operation-view.ts'
import { definePage, frame, frameOf, readPage } from './page-frame.ts'
import { type Facts, placedDocuments } from './registry.ts'
import { type TemplateContext, webAddress } from './template.ts'

const printHome = readPage('home.html.hbs')

/** The home page for people: what is sold and for how much, with links. */
export function renderHome(catalog: Catalog, facts: Facts): string {
  const { name, description } = catalog.service
  const routes = listedRoutes(catalog)
  const documents = placedDocuments(catalog, facts.baseUrl)
  const manual = documents.find((document) => document.name === 'docs')?.paths[0] ?? ''
  const free = routes.find(({ kind }) => kind !== 'paid')
  const paid = routes.find(({ kind }) => kind === 'paid')
  return printHome({
    page: frameOf(catalog, facts, 'index'),
    name,
    description: sentence(description),
    manual,
    pitch: pitchOf(routes),
    first: firstSample(catalog, facts, routes),
    chapters: priceList(catalog, facts),
    servers: serversOf(catalog, facts),
    trial: free === undefined ? '' : curlOf(facts.baseUrl, free),
    offer: paid === undefined ? '' : curlOf(facts.baseUrl, paid, '-i'),
    documents: documents
      .filter((document) => document.name !== 'index')
      .map(({ title, paths }) => ({ title, path: paths[0] ?? '/' })),
  })
}

/** What the shop is like, in a line or two each. */
function pitchOf(routes: readonly Route[]): TemplateContext[] {
  const prices = routes.flatMap(({ kind, operation: { price } }) =>
    kind !== 'paid' || price === undefined ? [] : [typeof price === 'bigint' ? price : price.lowest],
  )
  const lowest = prices.toSorted((a, b) => (a < b ? -1 : 1))[0]
  if (lowest === undefined) return []
  const samples = routes.filter(({ kind }) => kind === 'sample').length
  const hasUpfront = routes.some(isUpfront)
  return [
    {
      what: `From $${formatShort(lowest)} a call.`,
      how: `${countOf(prices.length, 'endpoint')}, each with its own price.`,
    },
    { what: 'No account, no key.', how: 'A wallet signs each payment.' },
    ...(hasUpfront ? [] : [{ what: 'You pay for answers.', how: 'A 200 is charged, an error is not.' }]),
    ...(samples === 0
      ? []
      : [{ what: 'Look first.', how: `${countOf(samples, 'free sample')} without a payment.` }]),
  ]
}

/** The page of the first route with a free sample, where it can be run. */
function firstSample(catalog: Catalog, facts: Facts, routes: readonly Route[]): string {
  const previews = previewsOf(routes)
  const route = routes.find(({ kind, operation }) => kind === 'paid' && previews.has(operation))
  const page = route === undefined ? '' : viewRoute(catalog, facts, route).page
  return page && `${page}#call`
}

function serversOf(catalog: Catalog, facts: Facts): TemplateContext[] {
  return listedServers(catalog, facts)
    .filter(({ tools }) => tools.length > 0)
    .map(({ name, title, tools }) => ({
      title,
      place: serverPagePath(catalog, name) ?? '',
      rows: tools.map((listed) => ({ view: viewTool(catalog, facts, listed) })),
    }))
}

/** The price list in sections, one row for each route. */
function priceList(catalog: Catalog, facts: Facts): TemplateContext[] {
  const routes = listedRoutes(catalog)
  const previews = previewsOf(routes)
  return chaptersOf(catalog, routes).map((chapter) => ({
    title: chapter.title,
    anchor: chapter.anchor,
    rows: chapter.routes.map((route) => {
      const view = viewRoute(catalog, facts, route)
      const { page } = view
      return {
        view,
        words: searchWords(catalog, route, view),
        preview: previews.has(route.operation) && page !== '' ? `${page}#call` : '',
      }
    }),
  }))
}

const printDocs = readPage('docs.html.hbs')

/** How to pay, with links to all descriptions. */
export const docs = definePage('docs', (catalog, facts) =>
  printDocs({
    page: frameOf(catalog, facts, 'docs'),
    ...manualOf(catalog, facts),
    chapters: priceList(catalog, facts),
    // The list of this page has a search of its own.
    guide: { ...guideOf(catalog, facts), search: '' },
  }),
)

const printErrors = readPage('docs-errors.html.hbs')

/** Every error by its code: the target of a problem's `type`. */
export const docsErrors = definePage('docs-errors', (catalog, facts) =>
  printErrors({
    page: frameOf(catalog, facts, 'docs-errors'),
    guide: guideOf(catalog, facts),
    errors: Object.entries(ERRORS).map(([code, { status, title, hint, charged, retryable }]) => ({
      code,
      status: String(status),
      title,
      hint,
      charged: charged.join(', '),
      retryable: retryable ? 'yes' : 'no',
    })),
  }),
)

const printNotFound = readPage('not-found.html.hbs')

/** The page for an unknown address. */
export function renderNotFound(catalog: Catalog, facts: Facts): string {
  const description = 'There is nothing at this address.'
  return printNotFound({
    page: frame(catalog, facts, { title: 'Page not found', description, url: '', style: '' }),
  })
}

const printPrivacy = readPage('privacy.html.hbs')

/** What is stored about callers, for how long, and who else receives it; figures from the catalog. */
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

/** One row for each cached operation, by its first route. */
function cachedRows(routes: readonly Route[]): TemplateContext[] {
  return oneRouteEach(routes).flatMap(({ path, operation: { cache } }) => {
    if (cache === undefined) return []
    const { ttl, staleIfError } = cache
    return [{ path, fresh: spellDuration(ttl), longest: spellDuration(ttl + staleIfError) }]
  })
}

/** Which sources are asked by which routes: arguments may be sent on to them. */
function sourceRows({ sources }: Catalog, routes: readonly Route[]): TemplateContext[] {
  return Object.entries(sources).flatMap(([name, { title, url, terms }]) => {
    const asking = oneRouteEach(routes).filter(({ operation }) => operation.sources.includes(name))
    if (asking.length === 0) return []
    return [{ title, url: webAddress(url), terms: webAddress(terms), paths: asking.map(({ path }) => path) }]
  })
}

function oneRouteEach(routes: readonly Route[]): Route[] {
  const first = new Map(routes.toReversed().map((route) => [route.operation, route]))
  return routes.filter((route) => first.get(route.operation) === route)
}
