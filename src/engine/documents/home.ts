import type { Catalog, Route } from '../catalog/catalog.ts'
import { placedDocuments } from './directory.ts'
import type { Facts } from './document.ts'
import { exampleUrl } from './example.ts'
import { chaptersOf, listedRoutes, previewsOf, priceOf, toolPrice } from './listing.ts'
import { frameOf, readPage } from './page.ts'
import { listedServers, serverPagePath } from './servers/server.ts'
import type { TemplateContext } from './template.ts'
import { sentence } from './wording.ts'

const print = readPage('home.html.hbs')

/** The index for people: what there is, for how much, and where to read on. */
export function renderHome(catalog: Catalog, facts: Facts): string {
  const { name, description } = catalog.service
  const routes = listedRoutes(catalog)
  const previews = previewsOf(routes)
  const documents = placedDocuments(catalog, facts.baseUrl)
  const manual = documents.find((document) => document.name === 'docs')?.paths[0] ?? ''
  const free = routes.find(({ kind }) => kind !== 'paid')
  const paid = routes.find(({ kind }) => kind === 'paid')
  return print({
    page: frameOf(catalog, facts, 'index'),
    name,
    description: sentence(description),
    manual,
    chapters: chaptersOf(catalog, routes).map((chapter) => ({
      title: chapter.title,
      rows: chapter.routes.map((route) => priceRow(route, previews.get(route.path), manual)),
    })),
    servers: serversOf(catalog, facts),
    trial: free === undefined ? '' : `curl '${exampleUrl(facts.baseUrl, free)}'`,
    offer: paid === undefined ? '' : `curl -i '${exampleUrl(facts.baseUrl, paid)}'`,
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
