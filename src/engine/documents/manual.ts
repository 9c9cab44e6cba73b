import type { Catalog, Route } from '../catalog/catalog.ts'
import { highestOfAll } from '../catalog/price/price.ts'
import { sentence } from '../base/words.ts'
import { curlOf, javascriptForAny, toolProgram } from './example-programs.ts'
import { chaptersOf, listedRoutes, previewsOf } from './listed-operations.ts'
import { listedServers } from './mcp-servers.ts'
import { howToPayTools, payingClients, serverManual } from './mcp-server-page.ts'
import { chargingOfAll, viewRoute } from './operation-view.ts'
import { howToPay, moneyNotice } from './payment-guide.ts'
import { defineDocument, type Facts, placedDocuments } from './registry.ts'
import { readMarkdown, type TemplateContext, webAddress } from './template.ts'

/** What a person or a model has to know to use the service, but for its routes, before it is set as a page or as Markdown. */
export function manualOf(catalog: Catalog, facts: Facts): TemplateContext {
  const routes = listedRoutes(catalog)
  const documents = placedDocuments(catalog, facts.baseUrl)
  const servers = listedServers(catalog, facts)
  const cap = highestOfAll(
    routes.map(({ kind, operation }) => (kind === 'paid' ? operation.price : undefined)),
  )
  return {
    name: catalog.service.name,
    description: sentence(catalog.service.description),
    base: facts.baseUrl,
    sells: routes.some(({ kind }) => kind === 'paid'),
    steps: howToPay(catalog, facts),
    charging: chargingOfAll(routes),
    client: cap !== undefined && facts.protocols.includes('x402') ? javascriptForAny(cap) : '',
    errors: documents.find(({ name }) => name === 'docs-errors')?.paths[0] ?? '',
    servers: servers.map((server) => serverManual(catalog, facts, server)),
    toolSteps: howToPayTools(catalog, facts),
    toolClients: payingClients(facts),
    toolProgram: toolProgram(
      servers.flatMap(({ tools }) => tools.map(({ operation }) => operation.price)),
      facts.protocols,
    ),
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

/** All documentation of one route and of its sample. */
export function manualRoute(
  catalog: Catalog,
  facts: Facts,
  route: Route,
  preview: Route | undefined,
): TemplateContext {
  const paid = route.kind === 'paid'
  return {
    view: viewRoute(catalog, facts, route),
    method: route.operation.method,
    path: route.path,
    offerCommand: paid ? curlOf(facts.baseUrl, route, '-i') : '',
    command: paid ? '' : curlOf(facts.baseUrl, route),
    previews: preview === undefined ? [] : [manualPreview(catalog, facts, route, preview)],
  }
}

function manualPreview(catalog: Catalog, facts: Facts, route: Route, preview: Route): TemplateContext {
  const own = JSON.stringify(preview.parameters) !== JSON.stringify(route.parameters)
  const { parameters } = viewRoute(catalog, facts, preview)
  return {
    path: preview.path,
    command: curlOf(facts.baseUrl, preview),
    takes: own
      ? preview.parameters.length === 0
        ? 'It takes no parameters.'
        : 'It takes these parameters:'
      : 'It takes the same parameters.',
    parameters: own ? parameters : [],
  }
}

const printMarkdown = readMarkdown('docs.md.hbs')

/** The manual in Markdown, with all of every route: for readers who load it whole. */
export const docsMarkdown = defineDocument('docs-md', (catalog, facts) => {
  const routes = listedRoutes(catalog)
  const previews = previewsOf(routes)
  return printMarkdown({
    notice: moneyNotice(catalog, facts),
    ...manualOf(catalog, facts),
    chapters: chaptersOf(catalog, routes).map((chapter) => ({
      title: chapter.title,
      routes: chapter.routes.map((route) =>
        manualRoute(catalog, facts, route, previews.get(route.operation)),
      ),
    })),
  })
})
