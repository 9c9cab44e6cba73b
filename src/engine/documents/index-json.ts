import { usesTestNetworks, type Catalog, type Operation, type Route } from '../catalog/catalog.ts'
import { priceMembers } from '../catalog/price/text.ts'
import { compact, type Json, type JsonObject } from '../base/json.ts'
import { byCategory, countKinds, listedRoutes, type ListedTool, listedTools } from './listed-operations.ts'
import { listedServers, serverPagePath } from './mcp-servers.ts'
import { CHARGED_FIRST, chargingOfAll, type OperationView, viewRoute, viewTool } from './operation-view.ts'
import { howToPay, moneyNotice } from './payment-guide.ts'
import { defineDocument, type Facts, placedDocuments, printJson } from './registry.ts'
import { linkHeader } from './well-known.ts'

/** The free index at `/`: small enough to read completely, and sufficient to call everything. */
export const index = defineDocument(
  'index',
  (catalog, facts) => printJson(contents(catalog, facts)),
  (catalog, { baseUrl }) => ({ Link: linkHeader(catalog, baseUrl) }),
)

function contents(catalog: Catalog, facts: Facts): JsonObject {
  const { name, version, description, contact } = catalog.service
  const routes = listedRoutes(catalog)
  const notice = moneyNotice(catalog, facts)
  return compact({
    name,
    version,
    description,
    sandbox: facts.sandbox,
    testnet: usesTestNetworks(catalog.payments) ? true : undefined,
    notice: notice === '' ? undefined : notice,
    base_url: facts.baseUrl,
    documents: links(catalog, facts),
    contact: Object.keys(contact).length === 0 ? undefined : compact({ ...contact }),
    payment: {
      currency: 'USD',
      protocols: facts.protocols,
      how_to_pay: howToPay(catalog, facts),
      charging: chargingOfAll(routes),
    },
    counts: countKinds(routes),
    routes: routes.map((route) => entry(catalog, facts, route)),
    mcp_servers: servers(catalog, facts),
  })
}

/** MCP servers with their tools; undefined when there are none. */
function servers(catalog: Catalog, facts: Facts): JsonObject[] | undefined {
  const served = listedServers(catalog, facts).map(({ name, title, description, url, tools }) => {
    const page = serverPagePath(catalog, name)
    const docs = page === undefined ? undefined : facts.baseUrl + page
    return compact({
      name,
      title,
      description,
      url,
      docs,
      tools: tools.map((tool) => toolEntry(catalog, facts, tool)),
    })
  })
  return served.length === 0 ? undefined : served
}

function toolEntry(catalog: Catalog, facts: Facts, listed: ListedTool): JsonObject {
  const { operation, tool } = listed
  const words = wordsOf(viewTool(catalog, facts, listed))
  return compact({ name: tool.name, price: money(operation), ...words })
}

/** What an entry says of its operation. */
function wordsOf(view: OperationView): Readonly<Record<string, Json | undefined>> {
  return {
    title: view.title,
    charging: view.chargedFirst === '' ? undefined : CHARGED_FIRST,
    summary: view.summary,
    deprecated: view.deprecation === '' ? undefined : true,
    parameters: Object.fromEntries(view.parameters.map(({ name, line }) => [name, line])),
  }
}

function links(catalog: Catalog, { baseUrl }: Facts): JsonObject {
  return Object.fromEntries(placedDocuments(catalog, baseUrl).map(({ name, url }) => [name, url]))
}

function entry(catalog: Catalog, facts: Facts, route: Route): JsonObject {
  return compact({
    method: route.operation.method,
    path: route.path,
    kind: route.kind,
    price: routeMoney(route),
    ...wordsOf(viewRoute(catalog, facts, route)),
    category: route.operation.category,
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
        routes: routes.map((route) => row(catalog, facts, route)),
        tools: tools.map((listed) => toolRow(catalog, facts, listed)),
      }
    }),
  })
})

function row(catalog: Catalog, facts: Facts, route: Route): JsonObject {
  const { title, summary, deprecation } = viewRoute(catalog, facts, route)
  return compact({
    method: route.operation.method,
    path: route.path,
    kind: route.kind,
    title,
    price: routeMoney(route),
    summary,
    deprecated: deprecation === '' ? undefined : true,
    available: facts.available(route.operation),
  })
}

function toolRow(catalog: Catalog, facts: Facts, listed: ListedTool): JsonObject {
  const { name, title, summary, deprecation } = viewTool(catalog, facts, listed)
  return compact({
    name,
    title,
    server: listed.url,
    price: money(listed.operation),
    summary,
    deprecated: deprecation === '' ? undefined : true,
  })
}

function routeMoney({ kind, operation }: Route): JsonObject | undefined {
  return kind === 'paid' ? money(operation) : undefined
}

function money({ price, meter }: Operation): JsonObject | undefined {
  return price === undefined ? undefined : { currency: 'USD', ...priceMembers(price, meter) }
}
