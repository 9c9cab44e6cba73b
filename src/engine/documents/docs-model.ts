import type { Catalog, Route } from '../catalog/catalog.ts'
import { type ErrorCode, ERRORS } from '../errors.ts'
import { curlOf, exampleAnswer, exampleUrl } from './example.ts'
import { chaptersOf, listedRoutes, previewsOf, priceOf } from './listing.ts'
import { definePage, frameOf, readPage } from './page.ts'
import { parameterRow } from './parameters.ts'
import { defineDocument, type Facts, placedDocuments } from './registry.ts'
import { howToPayTools, payingClients, serverManual, TOOL_CLIENT, listedServers } from './servers.ts'
import { readMarkdown, type TemplateContext, webAddress } from './template.ts'
import {
  charging,
  chargingOf,
  CLIENT,
  freshness,
  howToPay,
  isUpfront,
  SANDBOX,
  sentence,
  spellDuration,
  useWhen,
} from './copy.ts'

/** What a person or a model has to know to use the service, before it is set as a page or as Markdown. */
function manualOf(catalog: Catalog, facts: Facts): TemplateContext {
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
      routes: chapter.routes.map((route) =>
        manualRoute(catalog, facts, route, previews.get(route.operation)),
      ),
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

/** All there is to say of one route, and of the sample that shows it. */
function manualRoute(
  catalog: Catalog,
  facts: Facts,
  route: Route,
  preview: Route | undefined,
): TemplateContext {
  const { operation } = route
  const url = exampleUrl(facts.baseUrl, route)
  const paid = route.kind === 'paid'
  const example = exampleAnswer(catalog, route)
  return {
    anchor: route.name,
    method: operation.method,
    path: route.path,
    price: priceOf(route) ?? '',
    summary: sentence(route.summary),
    useWhen: operation.useWhen === undefined ? '' : useWhen(operation.useWhen),
    description: operation.description === undefined ? '' : sentence(operation.description),
    unavailable: facts.available(operation) ? '' : 'Not available now: answers 503, which is not charged.',
    parameters: route.parameters.map(parameterRow),
    offerCommand: paid ? curlOf(facts.baseUrl, route, '-i') : '',
    command: paid ? '' : curlOf(facts.baseUrl, route),
    program:
      paid && operation.method === 'GET' && facts.protocols.includes('x402')
        ? `const url = '${url}'\n${CLIENT}`
        : '',
    previews: preview === undefined ? [] : [manualPreview(facts, route, preview)],
    example: example === undefined ? '' : JSON.stringify(example, undefined, 2),
    freshness: freshness(route),
    limit: `Answers within ${spellDuration(operation.timeout)}.`,
    charging: isUpfront(route) ? charging(route) : '',
    sources: attributions(catalog, route),
    errors: errorsOf(route).map((code) => ({ code, status: String(ERRORS[code].status) })),
  }
}

function manualPreview({ baseUrl }: Facts, route: Route, preview: Route): TemplateContext {
  const own = JSON.stringify(preview.parameters) !== JSON.stringify(route.parameters)
  return {
    anchor: preview.name,
    method: preview.operation.method,
    path: preview.path,
    command: curlOf(baseUrl, preview),
    takes: own
      ? preview.parameters.length === 0
        ? 'It takes no parameters.'
        : 'It takes these parameters:'
      : 'It takes the same parameters.',
    parameters: own ? preview.parameters.map(parameterRow) : [],
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

const printPage = readPage('docs.html.hbs')

/** The manual as a page. */
export const docs = definePage('docs', (catalog, facts) =>
  printPage({ page: frameOf(catalog, facts, 'docs'), ...manualOf(catalog, facts) }),
)

const printMarkdown = readMarkdown('docs.md.hbs')

/** The manual in Markdown: the same content, for readers who pay by the character. */
export const docsMarkdown = defineDocument('docs-md', (catalog, facts) =>
  printMarkdown({ sandbox: facts.sandbox ? SANDBOX : '', ...manualOf(catalog, facts) }),
)

const printErrors = readPage('docs-errors.html.hbs')

/** Every failure by its code: where the `type` of a problem leads. */
export const docsErrors = definePage('docs-errors', (catalog, facts) =>
  printErrors({
    page: frameOf(catalog, facts, 'docs-errors'),
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
