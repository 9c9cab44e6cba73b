import type { Catalog, Operation, Parameter, Route } from '../catalog/catalog.ts'
import { defineDocument, type Facts } from './document.ts'
import { exampleUrl } from './example-url.ts'
import { exampleAnswer } from './example.ts'
import { byCategory, listedRoutes, priceOf, toolPrice, type ListedTool } from './listing.ts'
import { parameterLine } from './parameter-line.ts'
import { readMarkdown } from './markdown.ts'
import { argumentLine } from './servers/argument.ts'
import { listedServers } from './servers/listing.ts'
import { toolPayment } from './servers/payment.ts'
import type { TemplateContext } from './text.ts'
import {
  CHARGED_FIRST,
  charging,
  chargingOf,
  freshness,
  howToPay,
  isUpfront,
  SANDBOX,
  sentence,
  unspokenRules,
  useWhen,
} from './wording.ts'

const print = readMarkdown('llms-full.txt.hbs')

/** The guide with everything: of each endpoint its parameters, a request and an answer. */
export const llmsFull = defineDocument('llms-full', (catalog, facts) => {
  const { name, description, contact } = catalog.service
  const routes = listedRoutes(catalog).filter(({ operation }) => facts.available(operation))
  const shelves = byCategory(catalog, routes).map(({ title, entries }) => ({
    title,
    entries: entries.map((route) => routeEntry(catalog, facts, route)),
  }))
  return print({
    name,
    sandbox: facts.sandbox ? SANDBOX : '',
    description: sentence(description),
    steps: [...howToPay(catalog, facts), ...toolPayment(facts)],
    charging: chargingOf(routes),
    sections: [...shelves, ...companions(catalog, facts)],
    contact: contact.email ?? contact.url ?? '',
  }).replace(/\n+$/, '\n')
})

function routeEntry(catalog: Catalog, { baseUrl }: Facts, route: Route): TemplateContext {
  const { full } = route
  // What a preview leaves out is known only once it is made.
  const answer = full === undefined ? exampleAnswer(catalog, route) : undefined
  return {
    name: `GET ${route.path} (${price(priceOf(route))})`,
    paragraphs: [
      ...(full === undefined
        ? about(route.operation, route.summary)
        : [`Free preview of ${full}: it may show less.`]),
      ...(route.sample === undefined ? [] : [`Free preview: ${route.sample}`]),
      [freshness(route), ...(isUpfront(route) ? [charging(route)] : [])].join(' '),
    ],
    parameters: route.parameters.map((each) => parameterEntry(each, parameterLine(each))),
    request: `GET ${exampleUrl(baseUrl, route)}`,
    answer: answer === undefined ? '' : JSON.stringify(answer, undefined, 2),
  }
}

/** Tools of the companion servers that are served. */
function companions(catalog: Catalog, facts: Facts): TemplateContext[] {
  return listedServers(catalog, facts)
    .filter(({ tools }) => tools.length > 0)
    .map(({ title, tools }) => ({ title: `${title} (MCP)`, entries: tools.map(toolEntry) }))
}

function toolEntry(listed: ListedTool): TemplateContext {
  const { operation, tool, url, parameters } = listed
  return {
    name: `${tool.name} (${price(toolPrice(listed))})`,
    paragraphs: [
      ...about(operation, operation.summary),
      ...(operation.price !== undefined && operation.settle === 'upfront' ? [sentence(CHARGED_FIRST)] : []),
      `A tool of the MCP server at ${url}`,
    ],
    parameters: parameters.map((each) => parameterEntry(each, argumentLine(each))),
    request: '',
    answer: '',
  }
}

function price(amount: string | undefined): string {
  return amount === undefined ? 'free' : `$${amount}`
}

function about({ useWhen: when, description }: Operation, summary: string): string[] {
  const texts = [summary, ...(when === undefined ? [] : [useWhen(when)]), description ?? '']
  return texts.filter((text) => text !== '').map(sentence)
}

function parameterEntry(parameter: Parameter, line: string): TemplateContext {
  const { name, description } = parameter
  // That it is a list stands in its line.
  const rules = unspokenRules({ ...parameter, list: undefined })
  const words = [...(description === undefined ? [] : [sentence(description)]), ...rules]
  return { name, rules: line, description: words.join(' ') }
}
