import { usualSamplePath } from '../catalog/route-path.ts'
import type { Catalog, Route } from '../catalog/catalog.ts'
import { joinSentences, sentence } from '../base/words.ts'
import { chaptersOf, listedRoutes, type ListedTool, previewsOf } from './listed-operations.ts'
import { listedServers, serverPagePath, toolAnchor } from './mcp-servers.ts'
import { toolPayment } from './mcp-server-page.ts'
import { chargingOfAll, type OperationView, viewRoute, viewTool } from './operation-view.ts'
import { howToPay, moneyNotice } from './payment-guide.ts'
import { defineDocument, type Facts, placedDocuments } from './registry.ts'
import { readMarkdown, type TemplateContext } from './template.ts'

const print = readMarkdown('llms.txt.hbs')

/** Link relations of documents with more about the routes. */
const READ_ON: ReadonlySet<string> = new Set(['service-desc', 'service-doc'])

/** The guide for language models (llmstxt.org, version 2): lists what can be called now, each paid path once. */
export const llms = defineDocument('llms', (catalog, facts) => {
  const { name, description, contact } = catalog.service
  const routes = listedRoutes(catalog).filter(({ operation }) => facts.available(operation))
  return print({
    name,
    notice: moneyNotice(catalog, facts),
    description: sentence(description),
    steps: [...howToPay(catalog, facts), ...toolPayment(facts)],
    charging: chargingOfAll(routes),
    details: detailsOf(catalog, facts, routes),
    sections: [...sections(catalog, facts, routes), ...companions(catalog, facts, routes)],
    documents: placedDocuments(catalog, facts.baseUrl)
      .filter(({ name: other, rel = '' }) => READ_ON.has(rel) && other !== 'llms')
      .map(({ title, url }) => ({ title, url })),
    contact: contact.email ?? contact.url ?? '',
  })
})

/** Address of the full description of a route: one example stands for all. */
function detailsOf(catalog: Catalog, facts: Facts, routes: readonly Route[]): string {
  const first = routes.find(({ full }) => full === undefined)
  const { title = '', page = '' } = first === undefined ? {} : viewRoute(catalog, facts, first)
  return page === ''
    ? ''
    : `${title} is described in full at ${facts.baseUrl}${page}.md; every endpoint has such a page.`
}

function sections(catalog: Catalog, facts: Facts, routes: readonly Route[]): TemplateContext[] {
  const previews = previewsOf(routes)
  return chaptersOf(catalog, routes).map((chapter) => ({
    title: chapter.title,
    entries: chapter.routes.map((route) => ({
      ...routeEntry(catalog, facts, route),
      ...preview(catalog, facts, route, previews.get(route.operation)),
    })),
  }))
}

/** The tools of MCP servers, in one section for each server. */
function companions(catalog: Catalog, facts: Facts, routes: readonly Route[]): TemplateContext[] {
  const sold = new Map(
    routes.flatMap((route) => (route.full === undefined ? [[route.operation, route]] : [])),
  )
  return listedServers(catalog, facts)
    .filter(({ tools }) => tools.length > 0)
    .map(({ name, title, url, tools }) => {
      const page = serverPagePath(catalog, name)
      return {
        title: `${title} (MCP at ${url})`,
        entries: tools.map((listed) => ({
          ...toolEntry(
            catalog,
            facts,
            listed,
            sold.get(listed.operation),
            page === undefined ? undefined : facts.baseUrl + page,
          ),
          ...NO_PREVIEW,
        })),
      }
    })
}

/**
 * The link of a tool leads to its description, since an MCP endpoint shows nothing to readers. A tool that is a
 * route too is described there.
 */
function toolEntry(
  catalog: Catalog,
  facts: Facts,
  listed: ListedTool,
  route: Route | undefined,
  page: string | undefined,
): TemplateContext {
  const { tool, url } = listed
  const link = page === undefined ? `${url}/server-card` : `${page}#${toolAnchor(tool.name)}`
  if (route === undefined) return entry(tool.name, viewTool(catalog, facts, listed), link)
  const { title } = viewRoute(catalog, facts, route)
  return { name: tool.name, url: link, price: '', words: `As ${title}.`, parameters: '' }
}

function routeEntry(catalog: Catalog, facts: Facts, route: Route): TemplateContext {
  const view = viewRoute(catalog, facts, route)
  return entry(view.title, view, facts.baseUrl + route.path)
}

function entry(name: string, view: OperationView, url: string): TemplateContext {
  const { price, rule, request, promise, streaming, chargedFirst, deprecation, useWhen } = view
  return {
    name,
    url,
    price: price === '' ? 'free' : price + (rule === '' ? '' : ` (${rule})`),
    words: joinSentences(request, promise, streaming, chargedFirst, deprecation, useWhen),
    parameters: view.parameters.map(({ brief }) => brief).join(', '),
  }
}

const NO_PREVIEW = { hasUsualSample: false, preview: '', previewParameters: '' }

/**
 * How to get a free sample. Most samples are at the usual path without further parameters, which the legend states
 * once; only the others are listed.
 */
function preview(catalog: Catalog, facts: Facts, route: Route, sample: Route | undefined): TemplateContext {
  if (sample === undefined) return NO_PREVIEW
  const known = new Set(route.parameters.map(({ name }) => name))
  const hasUsualSample =
    sample.path === usualSamplePath(route.path) && sample.parameters.every(({ name }) => known.has(name))
  return {
    hasUsualSample,
    preview: hasUsualSample ? '' : facts.baseUrl + sample.path,
    previewParameters: viewRoute(catalog, facts, sample)
      .parameters.map(({ brief }) => brief)
      .join(', '),
  }
}
