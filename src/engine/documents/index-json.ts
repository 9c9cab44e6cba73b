import type { Catalog, Route } from '../catalog/catalog.ts'
import type { Price } from '../catalog/price/price.ts'
import { priceMembers } from '../catalog/price/text.ts'
import { compact, type JsonObject } from '../base/json.ts'
import { byCategory, countKinds, listedRoutes, type ListedTool, listedTools } from './listing.ts'
import { argumentLine, formIn, parameterLine } from './parameters.ts'
import { defineDocument, type Facts, placedDocuments, printJson } from './registry.ts'
import { listedServers, serverPagePath } from './servers.ts'
import { linkHeader } from './well-known.ts'
import { CHARGED_FIRST, chargingOf, howToPay, isUpfront, SANDBOX } from './wording.ts'

/** The free index at `/`: small enough to read completely, and sufficient to call everything. */
export const index = defineDocument(
  'index',
  (catalog, facts) => printJson(contents(catalog, facts)),
  (catalog) => ({ Link: linkHeader(catalog) }),
)

function contents(catalog: Catalog, facts: Facts): JsonObject {
  const { name, version, description, contact } = catalog.service
  const routes = listedRoutes(catalog)
  return compact({
    name,
    version,
    description,
    sandbox: facts.sandbox,
    notice: facts.sandbox ? SANDBOX : undefined,
    base_url: facts.baseUrl,
    documents: links(catalog, facts),
    contact: Object.keys(contact).length === 0 ? undefined : compact({ ...contact }),
    payment: {
      currency: 'USD',
      protocols: facts.protocols,
      how_to_pay: howToPay(catalog, facts),
      charging: chargingOf(routes),
    },
    counts: countKinds(routes),
    routes: routes.map((route) => entry(route, facts)),
    mcp_servers: servers(catalog, facts),
  })
}

/** MCP servers with their tools; undefined when there are none. */
function servers(catalog: Catalog, facts: Facts): JsonObject[] | undefined {
  const served = listedServers(catalog, facts).map(({ name, title, description, url, tools }) => {
    const page = serverPagePath(catalog, name)
    const docs = page === undefined ? undefined : facts.baseUrl + page
    return compact({ name, title, description, url, docs, tools: tools.map(toolEntry) })
  })
  return served.length === 0 ? undefined : served
}

function toolEntry(listed: ListedTool): JsonObject {
  const { operation, tool, parameters } = listed
  return compact({
    name: tool.name,
    price: money(operation.price),
    charging: operation.settle === 'upfront' ? CHARGED_FIRST : undefined,
    summary: operation.summary,
    parameters: Object.fromEntries(parameters.map((each) => [each.name, argumentLine(each)])),
  })
}

function links(catalog: Catalog, { baseUrl }: Facts): JsonObject {
  return Object.fromEntries(placedDocuments(catalog, baseUrl).map(({ name, url }) => [name, url]))
}

function entry(route: Route, facts: Facts): JsonObject {
  return compact({
    method: route.operation.method,
    path: route.path,
    kind: route.kind,
    price: routeMoney(route),
    charging: isUpfront(route) ? CHARGED_FIRST : undefined,
    summary: route.summary,
    category: route.operation.category,
    parameters: Object.fromEntries(
      route.parameters.map((parameter) => [
        parameter.name,
        formIn(route, parameter) === 'json' ? argumentLine(parameter) : parameterLine(parameter),
      ]),
    ),
    sample: route.sample,
    full: route.full,
    available: facts.available(route.operation),
  })
}

/** Paid operations and samples by category, without empty categories. */
export const categories = defineDocument('categories', (catalog, facts) => {
  const entries = [...listedRoutes(catalog), ...listedTools(catalog, facts)]
  return printJson({
    service: catalog.service.name,
    updated: catalog.service.updated ?? null,
    categories: byCategory(catalog, entries).map((shelf) => {
      const routes = shelf.entries.filter((each) => 'kind' in each)
      const tools = shelf.entries.filter((each) => 'tool' in each)
      return {
        id: shelf.id ?? 'other',
        title: shelf.title,
        counts: { ...countKinds(routes), tools: tools.length },
        routes: routes.map((route) => row(route, facts)),
        tools: tools.map(({ tool, url: server, operation: { price, summary } }) =>
          compact({ name: tool.name, server, price: money(price), summary }),
        ),
      }
    }),
  })
})

function row(route: Route, { available }: Facts): JsonObject {
  return compact({
    method: route.operation.method,
    path: route.path,
    kind: route.kind,
    price: routeMoney(route),
    summary: route.summary,
    available: available(route.operation),
  })
}

function routeMoney({ kind, operation }: Route): JsonObject | undefined {
  return kind === 'paid' ? money(operation.price) : undefined
}

function money(price: Price | undefined): JsonObject | undefined {
  return price === undefined ? undefined : { currency: 'USD', ...priceMembers(price) }
}
