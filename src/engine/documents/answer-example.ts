import type { Catalog, Route } from '../catalog/catalog.ts'
import { PROXY } from '../catalog/check-context.ts'
import { priceMembers } from '../catalog/price/text.ts'
import { compact, isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { lastChange } from './listed-operations.ts'

/** Whether an answer is passed on as it came, without the envelope, which no list or single value has. */
export function isVerbatim({
  operation: { handler, response, example, responseSchema },
}: Pick<Route, 'operation'>): boolean {
  if (handler === PROXY || response.stream) return true
  return (
    (example !== undefined && !isJsonObject(example)) || (responseSchema?.['type'] ?? 'object') !== 'object'
  )
}

/** An answer of this route as a buyer receives it; undefined when the catalog shows none. */
export function exampleAnswer(catalog: Catalog, route: Route): Json | undefined {
  const { example } = route.operation
  if (!isJsonObject(example) || isVerbatim(route)) return example
  return { ...envelope(catalog, route), ...example, ...previewMembers(route) }
}

function envelope(catalog: Catalog, route: Route): JsonObject {
  const { cache, sources } = route.operation
  return {
    endpoint: route.path,
    source: sources.length === 0 ? [{ name: 'computed' }] : sources.map((name) => source(catalog, name)),
    fetched_at: lastChange(catalog),
    cached: false,
    cache_ttl_seconds: Math.round((cache?.ttl ?? 0) / 1000),
    warnings: [],
  }
}

/** Whether a preview is cut is known only once it is made: `truncated` is not shown. */
function previewMembers({ full, operation: { price, meter } }: Route): JsonObject {
  if (full === undefined || price === undefined) return {}
  return { preview: true, full: { path: full, price: { ...priceMembers(price, meter), currency: 'USD' } } }
}

function source({ sources }: Catalog, name: string): JsonObject {
  const known = sources[name]
  return compact({ name: known?.title ?? name, url: known?.url })
}
