import type { Catalog, Operation, Route } from '../catalog/catalog.ts'
import { highestOfAll } from '../catalog/price/price.ts'
import { priceTable, spellRule } from '../catalog/price/text.ts'
import { type ErrorCode, ERRORS } from '../base/errors.ts'
import { curlOf, exampleAnswer } from './example.ts'
import { chaptersOf, listedRoutes, previewsOf, priceTag } from './listing.ts'
import { parameterRows } from './parameters.ts'
import { defineDocument, type Facts, placedDocuments } from './registry.ts'
import { howToPayTools, payingClients, payingToolClient, serverManual, listedServers } from './servers.ts'
import { readMarkdown, type TemplateContext, webAddress } from './template.ts'
import {
  charging,
  chargingOf,
  freshness,
  howToPay,
  isUpfront,
  payingClient,
  SANDBOX,
  sentence,
  spellDuration,
  useWhen,
} from './wording.ts'

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
    charging: chargingOf(routes),
    client: cap !== undefined && facts.protocols.includes('x402') ? payingClient(cap) : '',
    errors: documents.find(({ name }) => name === 'docs-errors')?.paths[0] ?? '',
    servers: servers.map((server) => serverManual(catalog, server)),
    toolSteps: howToPayTools(catalog, facts),
    toolClients: payingClients(facts),
    toolProgram: payingToolClient(
      servers.flatMap(({ tools }) => tools),
      facts,
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
  const { operation } = route
  const paid = route.kind === 'paid'
  const example = exampleAnswer(catalog, route)
  return {
    method: operation.method,
    path: route.path,
    price: priceTag(route),
    ...computedPrice(route),
    summary: sentence(route.summary),
    useWhen: operation.useWhen === undefined ? '' : useWhen(operation.useWhen),
    description: operation.description === undefined ? '' : sentence(operation.description),
    unavailable: facts.available(operation) ? '' : 'Not available now: answers 503, which is not charged.',
    parameters: parameterRows(route),
    offerCommand: paid ? curlOf(facts.baseUrl, route, '-i') : '',
    command: paid ? '' : curlOf(facts.baseUrl, route),
    previews: preview === undefined ? [] : [manualPreview(facts, route, preview)],
    example: example === undefined ? '' : JSON.stringify(example, undefined, 2),
    freshness: freshness(route),
    limit: `${formOf(operation)} within ${spellDuration(operation.timeout)}.`,
    charging: isUpfront(route) ? charging(route) : '',
    sources: attributions(catalog, route),
    errors: errorsOf(route).map((code) => ({ code, status: String(ERRORS[code].status) })),
  }
}

/** What is sent and what comes back, where it is no JSON. */
function formOf({ body, response }: Operation): string {
  const takes =
    body === undefined || body.form === 'properties'
      ? ''
      : `The body is ${body.mediaType}, up to ${body.maxSize.toLocaleString('en-US')} bytes. `
  return `${takes}Answers${response.mediaType === undefined ? '' : ` with ${response.mediaType}`}`
}

/** The rule in words, and a table of calls; empty where every call costs the same. */
function computedPrice({ kind, operation: { price } }: Route): TemplateContext {
  if (kind !== 'paid' || typeof price !== 'object') return { rule: '', prices: [] }
  return { rule: spellRule(price.rule), prices: priceTable(price) }
}

function manualPreview({ baseUrl }: Facts, route: Route, preview: Route): TemplateContext {
  const own = JSON.stringify(preview.parameters) !== JSON.stringify(route.parameters)
  return {
    path: preview.path,
    command: curlOf(baseUrl, preview),
    takes: own
      ? preview.parameters.length === 0
        ? 'It takes no parameters.'
        : 'It takes these parameters:'
      : 'It takes the same parameters.',
    parameters: own ? parameterRows(preview) : [],
  }
}

/** Where its data comes from, in the words the sources ask for. */
function attributions({ sources }: Catalog, { operation }: Route): string[] {
  const words = operation.sources.map((name) => sources[name]?.attribution ?? sources[name]?.title ?? name)
  return [...new Set(words.map(sentence))]
}

/** The failures a caller of this route is likeliest to meet. */
function errorsOf({ kind, parameters, operation }: Route): ErrorCode[] {
  return [
    ...(kind === 'paid' ? (['payment_required'] as const) : []),
    ...(parameters.length === 0 ? [] : (['parameters_invalid'] as const)),
    ...(operation.sources.length === 0
      ? []
      : (['source_error', 'source_limited', 'source_timeout'] as const)),
    'handler_timeout',
  ]
}

const printMarkdown = readMarkdown('docs.md.hbs')

/** The manual in Markdown, with all of every route: for readers who load it whole. */
export const docsMarkdown = defineDocument('docs-md', (catalog, facts) => {
  const routes = listedRoutes(catalog)
  const previews = previewsOf(routes)
  return printMarkdown({
    sandbox: facts.sandbox ? SANDBOX : '',
    ...manualOf(catalog, facts),
    chapters: chaptersOf(catalog, routes).map((chapter) => ({
      title: chapter.title,
      routes: chapter.routes.map((route) =>
        manualRoute(catalog, facts, route, previews.get(route.operation)),
      ),
    })),
  })
})
