import type { Catalog, Route } from '../catalog/catalog.ts'
import { compact, type JsonObject } from '../json.ts'
import { defineDocument, type Facts, printJson } from './document.ts'
import { byCategory, countKinds, listedRoutes, listedTools, priceOf, toolPrice } from './listing.ts'

/** What is sold and shown, by category: only categories that hold something. */
export const categories = defineDocument('categories', (catalog, facts) => {
  const routes = listedRoutes(catalog)
  const entries = [...routes.map((route) => ({ ...route, route })), ...listedTools(catalog, facts)]
  return printJson({
    service: catalog.service.name,
    updated: catalog.service.updated ?? null,
    categories: byCategory(catalog, entries).map(({ id, title }) => shelf(catalog, facts, { id, title })),
  })
})

function shelf(
  catalog: Catalog,
  facts: Facts,
  { id, title }: { readonly id: string | undefined; readonly title: string },
): JsonObject {
  const routes = listedRoutes(catalog).filter(({ operation }) => operation.category === id)
  const tools = listedTools(catalog, facts).filter(({ operation }) => operation.category === id)
  return {
    id: id ?? 'other',
    title,
    counts: { ...countKinds(routes), tools: tools.length },
    routes: routes.map((route) => row(route, facts)),
    tools: tools.map((each) =>
      compact({
        name: each.tool.name,
        server: each.url,
        price: money(toolPrice(each)),
        summary: each.operation.summary,
      }),
    ),
  }
}

function row(route: Route, { available }: Facts): JsonObject {
  return compact({
    method: 'GET',
    path: route.path,
    kind: route.kind,
    price: money(priceOf(route)),
    summary: route.summary,
    available: available(route.operation),
  })
}

function money(amount: string | undefined): JsonObject | undefined {
  return amount === undefined ? undefined : { currency: 'USD', amount }
}
