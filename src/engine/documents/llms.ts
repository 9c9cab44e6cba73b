import type { Catalog, Parameter, Route } from '../catalog/catalog.ts'
import { placedDocuments } from './directory.ts'
import { defineDocument, type Facts } from './document.ts'
import { listedRoutes, priceOf } from './listing.ts'
import { readTemplate, type TemplateContext } from './text.ts'
import { CHARGED_FIRST, chargingOf, howToPay, isUpfront, SANDBOX, sentence, useWhen } from './wording.ts'

const print = readTemplate('llms.txt.hbs')

/** The guide for language models (llmstxt.org, version 2): only what can be called now, each paid path once. */
export const llms = defineDocument('llms', (catalog, facts) => {
  const { name, description, contact } = catalog.service
  const routes = listedRoutes(catalog).filter(({ operation }) => facts.available(operation))
  return print({
    name,
    sandbox: facts.sandbox ? SANDBOX : '',
    description: sentence(description),
    steps: howToPay(catalog, facts),
    charging: chargingOf(routes),
    sections: sections(catalog, facts, routes),
    documents: placedDocuments(catalog, facts.baseUrl)
      .filter((document) => document.name !== 'llms')
      .map(({ title, url }) => ({ title, url })),
    contact: contact.email ?? contact.url ?? '',
  })
})

/** Paid routes by category, in the order categories appear, and the free ones last. */
function sections({ categories }: Catalog, facts: Facts, routes: readonly Route[]): TemplateContext[] {
  const paid = routes.filter(({ kind }) => kind === 'paid')
  const previews = routes.filter(({ kind }) => kind === 'sample')
  const names = [...new Set(paid.map(({ operation }) => operation.category))]
  const sold = names.map((name) => ({
    title: name === undefined ? 'Paid endpoints' : (categories[name] ?? name),
    entries: paid.filter(({ operation }) => operation.category === name),
  }))
  const free = { title: 'Free endpoints', entries: routes.filter(({ kind }) => kind === 'free') }
  return [...sold, free]
    .filter(({ entries }) => entries.length > 0)
    .map(({ title, entries }) => ({ title, entries: entries.map((route) => entry(route, previews, facts)) }))
}

function entry(route: Route, previews: readonly Route[], { baseUrl }: Facts): TemplateContext {
  const { operation } = route
  const price = priceOf(route)
  return {
    name: route.kind === 'paid' ? operation.id : route.path,
    url: baseUrl + route.path,
    price: price === undefined ? 'free' : `$${price}`,
    summary: sentence(route.summary) + (isUpfront(route) ? ` ${sentence(CHARGED_FIRST)}` : ''),
    useWhen: operation.useWhen === undefined ? '' : useWhen(operation.useWhen),
    parameters: brief(route.parameters),
    ...preview(route, previews, baseUrl),
  }
}

/**
 * How to see an answer for nothing. Most samples stand at the twin path and take nothing the paid route does not
 * take: the legend says that once, only the others are spelt out.
 */
function preview(route: Route, previews: readonly Route[], baseUrl: string): TemplateContext {
  const sample = previews.find(({ full }) => full === route.path)
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
