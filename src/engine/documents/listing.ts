import type { Catalog, Operation, Parameter, Route, RouteKind, Tool } from '../catalog/catalog.ts'
import { isJsonObject, type JsonObject } from '../json.ts'
import { formatPrice } from '../money.ts'
import type { Facts } from './registry.ts'

const ORDER: readonly RouteKind[] = ['paid', 'sample', 'free']

/** Every route that is served, in the order readers need them: what is sold, its previews, the rest. */
export function listedRoutes({ routes }: Catalog): Route[] {
  return ORDER.flatMap((kind) => routes.filter((route) => route.kind === kind && !route.operation.planned))
}

/** How many routes of each kind there are among these. */
export function countKinds(routes: readonly Route[]): Record<RouteKind, number> {
  const count = (kind: RouteKind): number => routes.filter((route) => route.kind === kind).length
  return { paid: count('paid'), sample: count('sample'), free: count('free') }
}

/** The price as every document spells it, six decimals of USD; undefined for what costs nothing. */
export function priceOf({ kind, operation }: Route): string | undefined {
  return kind !== 'paid' || operation.price === undefined ? undefined : formatPrice(operation.price)
}

/** A tool that can be called now. */
export interface ListedTool {
  readonly operation: Operation
  readonly tool: Tool
  /** Address of its MCP server. */
  readonly url: string
  /** The route that does the same over HTTP. */
  readonly route: Route | undefined
  readonly parameters: readonly Parameter[]
}

/** Every tool of a companion server that is served, in the order of the catalog. */
export function listedTools({ operations, routes }: Catalog, { mcpServers, available }: Facts): ListedTool[] {
  return operations.flatMap((operation) => {
    const { tool, planned } = operation
    const url = tool === undefined ? undefined : mcpServers.get(tool.server)
    if (tool === undefined || url === undefined || planned || !available(operation)) return []
    const route = routes.find((each) => each.operation === operation && each.full === undefined)
    return [{ operation, tool, url, route, parameters: route?.parameters ?? operation.parameters }]
  })
}

/** Whether an operation can be called now, over HTTP or as a tool. */
export function isCallable(operation: Operation, catalog: Catalog, facts: Facts): boolean {
  if (operation.planned || !facts.available(operation)) return false
  const { tool } = operation
  if (tool !== undefined && facts.mcpServers.has(tool.server)) return true
  return catalog.routes.some((route) => route.operation === operation)
}

/** The price of a tool as documents spell it. */
export function toolPrice({ operation: { price } }: ListedTool): string | undefined {
  return price === undefined ? undefined : formatPrice(price)
}

/** One category with what stands under it. */
interface Shelf<T> {
  /** Undefined: of no category. */
  readonly id: string | undefined
  readonly title: string
  readonly entries: readonly T[]
}

/** Things by category, in the order in which they first appear. */
export function byCategory<T extends { readonly operation: Operation }>(
  { categories }: Catalog,
  entries: readonly T[],
): Shelf<T>[] {
  const ids = [...new Set(entries.map(({ operation }) => operation.category))]
  return ids.map((id) => ({
    id,
    title: id === undefined ? 'Other' : (categories[id] ?? id),
    entries: entries.filter(({ operation }) => operation.category === id),
  }))
}

/** The x402 offers of the first thing sold: the same networks, assets and payee stand in all of them. */
export function usualOffers(catalog: Catalog, { paymentRequired }: Facts): JsonObject[] {
  const paid = listedRoutes(catalog).find(({ kind }) => kind === 'paid')
  const accepts = paid === undefined ? undefined : paymentRequired(paid)?.accepts
  return Array.isArray(accepts) ? accepts.filter(isJsonObject) : []
}

/** Stands where a catalog names no date: documents carry no clock. */
const UNDATED = '2026-01-01'

/** When the catalog last changed, as an instant. */
export function lastChange({ service }: Catalog): string {
  return `${service.updated ?? UNDATED}T00:00:00.000Z`
}

/** Routes that are shown together. */
interface Chapter {
  readonly title: string
  /** Holds a dot, which no name of a route does. */
  readonly anchor: string
  readonly routes: readonly Route[]
}

/** Paid routes by category, in the order categories appear, and what is free and no preview of them last. */
export function chaptersOf(catalog: Catalog, routes: readonly Route[]): Chapter[] {
  const paid = routes.filter(({ kind }) => kind === 'paid')
  const free = routes.filter(({ kind, full }) => kind !== 'paid' && full === undefined)
  const sold = byCategory(catalog, paid).map(({ id, title, entries }) => ({
    title: id === undefined ? 'Paid endpoints' : title,
    anchor: `category.${id ?? ''}`,
    routes: entries,
  }))
  return free.length === 0 ? sold : [...sold, { title: 'Free endpoints', anchor: 'docs.free', routes: free }]
}

/** The free preview of each operation that has one. */
export function previewsOf(routes: readonly Route[]): ReadonlyMap<Operation, Route> {
  return new Map(routes.flatMap((route) => (route.full === undefined ? [] : [[route.operation, route]])))
}
