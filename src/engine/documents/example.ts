import { type Catalog, examplePath, type Parameter, type Route } from '../catalog/catalog.ts'
import { bodyExample } from '../catalog/body.ts'
import { PROXY } from '../catalog/check-context.ts'
import { compact, isJsonObject, type Json, type JsonObject } from '../json.ts'
import { formatPrice } from '../money.ts'
import { lastChange } from './listing.ts'

/** Whether an answer is passed on as it came, without the envelope. */
export function isVerbatim({ operation }: Route): boolean {
  return operation.handler === PROXY
}

/** An answer of this route as a buyer receives it; undefined when the catalog shows none. */
export function exampleAnswer(catalog: Catalog, route: Route): Json | undefined {
  const { example } = route.operation
  if (isVerbatim(route) || !isJsonObject(example)) return example
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
function previewMembers({ full, operation: { price } }: Route): JsonObject {
  if (full === undefined || price === undefined) return {}
  return { preview: true, full: { path: full, price: { amount: formatPrice(price), currency: 'USD' } } }
}

function source({ sources }: Catalog, name: string): JsonObject {
  const known = sources[name]
  return compact({ name: known?.title ?? name, url: known?.url })
}

/** An address of the route that answers: what is required by its examples, or else the first thing that can be given. */
export function exampleUrl(baseUrl: string, route: Route): string {
  const query = route.parameters.filter((parameter) => parameter.in === 'query')
  const required = query.filter((parameter) => parameter.required)
  const given = required.length === 0 ? query.filter(isOpen).slice(0, 1) : required
  const search = given.map((parameter) => `${parameter.name}=${encode(exampleOf(parameter))}`).join('&')
  return quotable(baseUrl + examplePath(route) + (search === '' ? '' : `?${search}`))
}

/** A command that asks for what `exampleUrl` names, with the body of the catalog's example. */
export function curlOf(baseUrl: string, route: Route, flags = ''): string {
  const { method, body } = route.operation
  const parts = ['curl', flags, method === 'GET' ? '' : `-X ${method}`, `'${exampleUrl(baseUrl, route)}'`]
  if (body !== undefined) {
    const example = bodyExample(body, route.parameters)
    const data = body.kind === 'json' && example !== undefined ? shellText(JSON.stringify(example)) : '@body'
    parts.push(`-H 'Content-Type: ${body.mediaType}'`, `--data-binary ${data}`)
  }
  return parts.filter((part) => part !== '').join(' ')
}

function shellText(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** Between single quotes, in a shell and in JavaScript. */
export function quotable(url: string): string {
  return url.replaceAll("'", '%27')
}

/** Whether it has nothing but an example to start from. */
function isOpen({ default: value, example }: Parameter): boolean {
  return example !== undefined && (value === undefined || value === '')
}

function exampleOf({ example, default: value }: Parameter): string {
  return String(example ?? value ?? '')
}

/** Commas, colons and slashes stay readable: a query takes them as they are. */
function encode(value: string): string {
  return encodeURIComponent(value).replace(/%2C|%3A|%2F/g, decodeURIComponent)
}
