import { type Catalog, examplePath, type Parameter, type Route } from '../catalog/catalog.ts'
import { bodyExample, kindOf } from '../catalog/body.ts'
import { PROXY } from '../catalog/check-context.ts'
import { highestOf } from '../catalog/price/price.ts'
import { compact, isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { toMicros, type Micros } from '../base/money.ts'
import { priceMembers } from '../catalog/price/text.ts'
import { payingClient } from './wording.ts'
import { lastChange } from './listing.ts'

/** Whether an answer is passed on as it came, without the envelope, which no list or single value has. */
export function isVerbatim({ operation: { handler, response, example, responseSchema } }: Route): boolean {
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
function previewMembers({ full, operation: { price } }: Route): JsonObject {
  if (full === undefined || price === undefined) return {}
  return { preview: true, full: { path: full, price: { ...priceMembers(price), currency: 'USD' } } }
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
  const { method, body, response } = route.operation
  const parts = [
    'curl',
    response.stream ? '-N' : '',
    flags,
    method === 'GET' ? '' : `-X ${method}`,
    `'${exampleUrl(baseUrl, route)}'`,
  ]
  if (body !== undefined) {
    const text = bodyText(route)
    const data = text === undefined ? '@body' : `'${text.replaceAll("'", "'\\''")}'`
    parts.push(`-H 'Content-Type: ${body.mediaType}'`, `--data-binary ${data}`)
  }
  return parts.filter((part) => part !== '').join(' ')
}

/** A program that pays for the same request. */
export function clientOf(baseUrl: string, route: Route): string {
  const text = bodyText(route)
  const body =
    text === undefined ? "await (await import('node:fs/promises')).readFile('body')" : JSON.stringify(text)
  return `const url = '${exampleUrl(baseUrl, route)}'\n${clientFor(route, `body: ${body}`)}`
}

/** The spending limit of example programs: the highest price of a call. */
export function capOf({ operation: { price } }: Route): Micros {
  return price === undefined ? toMicros(0n) : highestOf(price)
}

/** Eight lines that pay for a request to `url`; `body` is the member of its options that holds what is sent. */
export function clientFor(route: Route, body: string): string {
  const { method, body: sent, response } = route.operation
  const options = [
    `method: '${method}'`,
    ...(sent === undefined ? [] : [`headers: { 'Content-Type': '${sent.mediaType}' }`, body]),
  ]
  const call = method === 'GET' ? 'pay(url)' : `pay(url, { ${options.join(', ')} })`
  const kind = response.mediaType === undefined ? 'json' : kindOf(response.mediaType)
  const read = kind === 'json' || kind === 'text' ? kind : 'arrayBuffer'
  return payingClient(capOf(route)).replace('pay(url)).json', () => `${call}).${read}`)
}

const PYTHON_CLIENT = [
  '# pip install "x402[requests,evm]"',
  'import os',
  'from eth_account import Account',
  'from x402 import max_amount, x402ClientSync',
  'from x402.http.clients import x402_requests',
  'from x402.mechanisms.evm import EthAccountSigner',
  'from x402.mechanisms.evm.exact import ExactEvmScheme',
  "signer = EthAccountSigner(Account.from_key(os.environ['PAYER_PRIVATE_KEY']))",
  "client = x402ClientSync().register('eip155:*', ExactEvmScheme(signer))",
]

/** The same with the Python client of x402. */
export function pythonOf(baseUrl: string, route: Route): string {
  const { method, body } = route.operation
  const text = bodyText(route)
  const data = text === undefined ? "open('body', 'rb').read()" : `${JSON.stringify(text)}.encode()`
  const sent = body === undefined ? '' : `, data=${data}, headers={'Content-Type': '${body.mediaType}'}`
  const call = `request('${method}', '${exampleUrl(baseUrl, route)}'${sent})`
  // In millionths of a dollar.
  const cap = `client.register_policy(max_amount(${capOf(route)}))`
  return [...PYTHON_CLIENT, cap, `print(x402_requests(client).${call}.text)`].join('\n')
}

/** The example of a body as it is sent; undefined where there is none. */
export function bodyText({ operation: { body }, parameters }: Route): string | undefined {
  const example = body === undefined ? undefined : bodyExample(body, parameters)
  if (example === undefined) return undefined
  if (body?.kind === 'json') return JSON.stringify(example)
  if (body?.kind === 'text' && typeof example === 'string') return example
  if (body?.kind !== 'form' || !isJsonObject(example)) return undefined
  const pairs = Object.entries(example).map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ])
  return new URLSearchParams(pairs).toString()
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
