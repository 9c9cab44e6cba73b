import type { Catalog, Operation, Parameter, Route, RouteKind, Tool } from '../catalog/catalog.ts'
import { isJsonObject, type JsonObject } from '../base/json.ts'
import type { Facts } from './registry.ts'

const ORDER: readonly RouteKind[] = ['paid', 'sample', 'free']

/** Every served route in the order for readers: paid routes, their samples, the rest. */
export function listedRoutes({ routes }: Catalog): Route[] {
  return ORDER.flatMap((kind) => routes.filter((route) => route.kind === kind && !route.operation.planned))
}

/** Number of routes of each kind. */
export function countKinds(routes: readonly Route[]): Record<RouteKind, number> {
  const count = (kind: RouteKind): number => routes.filter((route) => route.kind === kind).length
  return { paid: count('paid'), sample: count('sample'), free: count('free') }
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

/** Every served tool, in the order of the catalog. */
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

/** The entries of one category. */
interface Shelf<T> {
  /** Undefined: without a category. */
  readonly id: string | undefined
  readonly title: string
  readonly entries: readonly T[]
}

/** Groups entries by category, in the order of their first entry. */
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

/** The x402 offers of the first paid route, whose networks, assets and payee are those of all. */
export function usualOffers(catalog: Catalog, { paymentRequired }: Facts): JsonObject[] {
  const paid = listedRoutes(catalog).find(({ kind }) => kind === 'paid')
  const accepts = paid === undefined ? undefined : paymentRequired(paid)?.accepts
  return Array.isArray(accepts) ? accepts.filter(isJsonObject) : []
}

/** Date for a catalog that states none: documents carry no clock. */
const UNDATED = '2026-01-01'

/** Time of the catalog's last change. */
export function lastChange({ service }: Catalog): string {
  return `${service.updated ?? UNDATED}T00:00:00.000Z`
}

/** Routes that are shown under one heading. */
interface Chapter {
  readonly title: string
  /** Contains a dot, which no route name does. */
  readonly anchor: string
  readonly routes: readonly Route[]
}

/** Paid routes by category in the order of their first route, then free routes that are not samples. */
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
