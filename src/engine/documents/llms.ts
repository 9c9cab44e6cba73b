import { type Catalog, type Operation, type Parameter, type Route, routeKey } from '../catalog/catalog.ts'
import { byCategory, listedRoutes, type ListedTool, priceOf, toolPrice } from './listing.ts'
import { defineDocument, type Facts, placedDocuments } from './registry.ts'
import { toolPayment, listedServers, serverPagePath, toolAnchor } from './servers.ts'
import { readMarkdown, type TemplateContext } from './template.ts'
import { CHARGED_FIRST, chargingOf, howToPay, SANDBOX, sentence, useWhen } from './copy.ts'

const print = readMarkdown('llms.txt.hbs')

/** The guide for language models (llmstxt.org, version 2): only what can be called now, each paid path once. */
export const llms = defineDocument('llms', (catalog, facts) => {
  const { name, description, contact } = catalog.service
  const routes = listedRoutes(catalog).filter(({ operation }) => facts.available(operation))
  return print({
    name,
    sandbox: facts.sandbox ? SANDBOX : '',
    description: sentence(description),
    steps: [...howToPay(catalog, facts), ...toolPayment(facts)],
    charging: chargingOf(routes),
    sections: [...sections(catalog, facts, routes), ...companions(catalog, facts)],
    documents: placedDocuments(catalog, facts.baseUrl)
      .filter(({ name: other, rel }) => rel !== undefined && other !== 'llms')
      .map(({ title, url }) => ({ title, url })),
    contact: contact.email ?? contact.url ?? '',
  })
})

/** Paid routes by category, in the order categories appear, and the free ones last. */
function sections(catalog: Catalog, facts: Facts, routes: readonly Route[]): TemplateContext[] {
  const paid = routes.filter(({ kind }) => kind === 'paid')
  const previews = routes.filter(({ kind }) => kind === 'sample')
  const sold = byCategory(catalog, paid).map(({ id, title, entries }) => ({
    title: id === undefined ? 'Paid endpoints' : title,
    entries,
  }))
  const free = { title: 'Free endpoints', entries: routes.filter(({ kind }) => kind === 'free') }
  return [...sold, free]
    .filter(({ entries }) => entries.length > 0)
    .map(({ title, entries }) => ({ title, entries: entries.map((route) => entry(route, previews, facts)) }))
}

/** Tools of companion servers: one section each, under the address of the server. */
function companions(catalog: Catalog, facts: Facts): TemplateContext[] {
  return listedServers(catalog, facts)
    .filter(({ tools }) => tools.length > 0)
    .map(({ name, title, url, tools }) => {
      const page = serverPagePath(catalog, name)
      return {
        title: `${title} (MCP at ${url})`,
        entries: tools.map((listed) =>
          toolEntry(listed, page === undefined ? undefined : facts.baseUrl + page),
        ),
      }
    })
}

/** An endpoint of MCP shows nothing to who only reads: the link leads to what is written of the tool. */
function toolEntry(listed: ListedTool, page: string | undefined): TemplateContext {
  const { operation, tool, url, parameters } = listed
  return {
    name: tool.name,
    url: page === undefined ? `${url}/server-card` : `${page}#${toolAnchor(tool.name)}`,
    ...words(operation, operation.summary, toolPrice(listed)),
    parameters: brief(parameters),
    twin: false,
    preview: '',
    previewParameters: '',
  }
}

function entry(route: Route, previews: readonly Route[], { baseUrl }: Facts): TemplateContext {
  return {
    name: route.kind === 'paid' ? route.operation.id : routeKey(route),
    url: baseUrl + route.path,
    ...words(route.operation, route.summary, priceOf(route)),
    parameters: brief(route.parameters),
    ...preview(route, previews, baseUrl),
  }
}

function words(operation: Operation, summary: string, price: string | undefined): TemplateContext {
  const { settle, useWhen: when } = operation
  const first = price !== undefined && settle === 'upfront' ? ` ${sentence(CHARGED_FIRST)}` : ''
  return {
    price: price === undefined ? 'free' : `$${price}`,
    summary: sentence(summary) + first,
    useWhen: when === undefined ? '' : useWhen(when),
  }
}

/**
 * How to see an answer for nothing. Most samples stand at the twin path and take nothing the paid route does not
 * take: the legend says that once, only the others are spelt out.
 */
function preview(route: Route, previews: readonly Route[], baseUrl: string): TemplateContext {
  const sample = previews.find(({ operation }) => operation === route.operation && route.full === undefined)
  if (sample === undefined) return { twin: false, preview: '', previewParameters: '' }
  const known = new Set(route.parameters.map(({ name }) => name))
  const twin =
    sample.path === route.path.replace(/^\/paid\//, '/sample/') &&
    sample.parameters.every(({ name }) => known.has(name))
  return {
    twin,
    preview: twin ? '' : baseUrl + sample.path,
    previewParameters: brief(sample.parameters),
  }
}

/** As in a query: `country=US`, with a star after what is required. */
function brief(parameters: readonly Parameter[]): string {
  return parameters
    .map(({ name, required, default: value }) => {
      if (required) return `${name}*`
      return value === undefined || value === '' ? name : `${name}=${value}`
    })
    .join(', ')
}
