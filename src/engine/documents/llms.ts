import { type Catalog, type Operation, type Parameter, type Route, routeKey } from '../catalog/catalog.ts'
import type { Price } from '../catalog/price/price.ts'
import { ruleNote, spellPrice } from '../catalog/price/text.ts'
import { chaptersOf, listedRoutes, type ListedTool, previewsOf } from './listing.ts'
import { defineDocument, type Facts, operationPath, placedDocuments } from './registry.ts'
import { toolPayment, listedServers, serverPagePath, toolAnchor } from './servers.ts'
import { readMarkdown, type TemplateContext } from './template.ts'
import { CHARGED_FIRST, chargingOf, howToPay, SANDBOX, sentence, useWhen } from './wording.ts'

const print = readMarkdown('llms.txt.hbs')

/** Link relations of documents with more about the routes. */
const READ_ON: ReadonlySet<string> = new Set(['service-desc', 'service-doc'])

/** The guide for language models (llmstxt.org, version 2): lists what can be called now, each paid path once. */
export const llms = defineDocument('llms', (catalog, facts) => {
  const { name, description, contact } = catalog.service
  const routes = listedRoutes(catalog).filter(({ operation }) => facts.available(operation))
  return print({
    name,
    sandbox: facts.sandbox ? SANDBOX : '',
    description: sentence(description),
    steps: [...howToPay(catalog, facts), ...toolPayment(facts)],
    charging: chargingOf(routes),
    details: detailsOf(catalog, facts, routes),
    sections: [...sections(catalog, facts, routes), ...companions(catalog, facts, routes)],
    documents: placedDocuments(catalog, facts.baseUrl)
      .filter(({ name: other, rel = '' }) => READ_ON.has(rel) && other !== 'llms')
      .map(({ title, url }) => ({ title, url })),
    contact: contact.email ?? contact.url ?? '',
  })
})

/** Address of the full description of a route: one example stands for all. */
function detailsOf(catalog: Catalog, { baseUrl }: Facts, routes: readonly Route[]): string {
  const [first] = routes.filter(({ full }) => full === undefined)
  const path = first && operationPath(catalog, first)
  if (first === undefined || path === undefined) return ''
  return `${nameOf(first)} is described in full at ${baseUrl}${path}.md; every endpoint has such a page.`
}

function sections(catalog: Catalog, facts: Facts, routes: readonly Route[]): TemplateContext[] {
  const previews = previewsOf(routes)
  return chaptersOf(catalog, routes).map((chapter) => ({
    title: chapter.title,
    entries: chapter.routes.map((route) => entry(route, previews.get(route.operation), facts)),
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
        entries: tools.map((listed) =>
          toolEntry(
            listed,
            sold.get(listed.operation),
            page === undefined ? undefined : facts.baseUrl + page,
          ),
        ),
      }
    })
}

/**
 * The link of a tool leads to its description, since an MCP endpoint shows nothing to readers. A tool that is a
 * route too is described there.
 */
function toolEntry(listed: ListedTool, route: Route | undefined, page: string | undefined): TemplateContext {
  const { operation, tool, url, parameters } = listed
  return {
    name: tool.name,
    url: page === undefined ? `${url}/server-card` : `${page}#${toolAnchor(tool.name)}`,
    ...(route === undefined
      ? words(operation, operation.summary, operation.price)
      : { price: '', summary: `As ${nameOf(route)}.`, useWhen: '' }),
    request: '',
    parameters: route === undefined ? brief(parameters) : '',
    hasUsualSample: false,
    preview: '',
    previewParameters: '',
  }
}

function entry(route: Route, sample: Route | undefined, { baseUrl }: Facts): TemplateContext {
  return {
    name: nameOf(route),
    url: baseUrl + route.path,
    ...words(route.operation, route.summary, route.kind === 'paid' ? route.operation.price : undefined),
    request: requestOf(route.operation),
    parameters: brief(route.parameters),
    ...preview(route, sample, baseUrl),
  }
}

function nameOf(route: Route): string {
  return route.kind === 'paid' ? route.operation.id : routeKey(route)
}

function words(operation: Operation, summary: string, price: Price | undefined): TemplateContext {
  const { settle, useWhen: when, response } = operation
  const first = price !== undefined && settle === 'upfront' ? ` ${sentence(CHARGED_FIRST)}` : ''
  return {
    price: price === undefined ? 'free' : `$${spellPrice(price)}${ruleNote(price)}`,
    summary: sentence(summary) + (response.stream ? ` Streams ${response.mediaType}.` : '') + first,
    useWhen: when === undefined ? '' : useWhen(when),
  }
}

/**
 * How to get a free sample. Most samples are at the usual path without further parameters, which the legend states
 * once; only the others are listed.
 */
function preview(route: Route, sample: Route | undefined, baseUrl: string): TemplateContext {
  if (sample === undefined) return { hasUsualSample: false, preview: '', previewParameters: '' }
  const known = new Set(route.parameters.map(({ name }) => name))
  const hasUsualSample =
    sample.path === route.path.replace(/^\/paid\//, '/sample/') &&
    sample.parameters.every(({ name }) => known.has(name))
  return {
    hasUsualSample,
    preview: hasUsualSample ? '' : baseUrl + sample.path,
    previewParameters: brief(sample.parameters),
  }
}

/** The method and body, unless it is a plain GET: `POST, application/json body.` */
function requestOf({ method, body }: Operation): string {
  if (method === 'GET') return ''
  return body === undefined ? `${method}.` : `${method}, ${body.mediaType} body.`
}

/** Parameters as in a query: `country=US`, with a star after required ones. */
function brief(parameters: readonly Parameter[]): string {
  return parameters
    .map(({ name, required, default: value }) => {
      if (required) return `${name}*`
      return value === undefined || value === '' ? name : `${name}=${value}`
    })
    .join(', ')
}
