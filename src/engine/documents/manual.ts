import type { Catalog, Route } from '../catalog/catalog.ts'
import { chaptersOf, previewsOf } from './chapters.ts'
import { CLIENT } from './client.ts'
import { placedDocuments } from './directory.ts'
import type { Facts } from './document.ts'
import { listedRoutes } from './listing.ts'
import { manualRoute } from './manual-route.ts'
import { listedServers } from './servers/listing.ts'
import { serverManual } from './servers/manual.ts'
import { howToPayTools, payingClients, TOOL_CLIENT } from './servers/payment.ts'
import type { TemplateContext } from './text.ts'
import { webAddress } from './web-address.ts'
import { chargingOf, howToPay, sentence } from './wording.ts'

/** What a person or a model has to know to use the service, before it is set as a page or as Markdown. */
export function manualOf(catalog: Catalog, facts: Facts): TemplateContext {
  const routes = listedRoutes(catalog)
  const paid = routes.filter(({ kind }) => kind === 'paid')
  const previews = previewsOf(routes)
  const documents = placedDocuments(catalog, facts.baseUrl)
  return {
    name: catalog.service.name,
    description: sentence(catalog.service.description),
    base: facts.baseUrl,
    sells: paid.length > 0,
    steps: howToPay(catalog, facts),
    charging: chargingOf(routes),
    client: facts.protocols.includes('x402') ? CLIENT : '',
    errors: documents.find(({ name }) => name === 'docs-errors')?.paths[0] ?? '',
    chapters: chaptersOf(catalog, routes).map((chapter) => ({
      title: chapter.title,
      anchor: chapter.anchor,
      routes: chapter.routes.map((route) => manualRoute(catalog, facts, route, previews.get(route.path))),
    })),
    servers: listedServers(catalog, facts).map((server) => serverManual(catalog, server)),
    toolSteps: howToPayTools(catalog, facts),
    toolClients: payingClients(facts),
    toolProgram: facts.protocols.includes('x402') ? TOOL_CLIENT : '',
    sources: sourcesOf(catalog, routes),
    documents: documents.map(({ title, summary, paths, url }) => ({
      title,
      summary,
      path: paths[0] ?? '/',
      url,
    })),
  }
}

/** The outside sources of what is listed: who they are, and on which terms. */
function sourcesOf({ sources }: Catalog, routes: readonly Route[]): TemplateContext[] {
  const used = new Set(routes.flatMap(({ operation }) => operation.sources))
  return Object.entries(sources)
    .filter(([name]) => used.has(name))
    .map(([, { title, url, licence, terms, attribution }]) => ({
      title,
      url: webAddress(url),
      licence: licence === undefined ? '' : sentence(licence),
      terms: webAddress(terms),
      attribution: attribution === undefined ? '' : sentence(attribution),
    }))
}
