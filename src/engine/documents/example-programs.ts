import { examplePath, type Parameter, type Route } from '../catalog/catalog.ts'
import { bodyExample, kindOf } from '../catalog/body.ts'
import { highestOf, highestOfAll, type Price } from '../catalog/price/price.ts'
import { isJsonObject } from '../base/json.ts'
import { formatShort, toMicros, type Micros } from '../base/money.ts'

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
    const data = text === undefined ? '@body' : quoteForShell(text)
    parts.push(`-H 'Content-Type: ${body.mediaType}'`, `--data-binary ${data}`)
  }
  return parts.filter((part) => part !== '').join(' ')
}

/** The highest price of a call: what example programs spend at most. */
export function capOf({ operation: { price } }: Route): Micros {
  return price === undefined ? toMicros(0n) : highestOf(price)
}

/** A program that pays for the same request. */
export function javascriptOf(baseUrl: string, route: Route): string {
  const text = bodyText(route)
  const body =
    text === undefined ? "await (await import('node:fs/promises')).readFile('body')" : JSON.stringify(text)
  return javascriptFor(route, exampleUrl(baseUrl, route), `body: ${body}`)
}

/** A program that pays for a request to this address; `body` is the member of its options that holds what is sent. */
export function javascriptFor(route: Route, url: string, body: string): string {
  const { method, body: sent, response } = route.operation
  const options = [
    `method: '${method}'`,
    ...(sent === undefined ? [] : [`headers: { 'Content-Type': '${sent.mediaType}' }`, body]),
  ]
  const call = method === 'GET' ? 'pay(url)' : `pay(url, { ${options.join(', ')} })`
  const kind = response.mediaType === undefined ? 'json' : kindOf(response.mediaType)
  const reader = kind === 'json' || kind === 'text' ? kind : 'arrayBuffer'
  const scheme = route.operation.meter === undefined ? EXACT : UPTO
  return payingFetch({ cap: capOf(route), scheme, setUp: [`const url = '${url}'`], call, reader })
}

/** A program that pays for GET of `url`, at most `cap`. */
export function javascriptForAny(cap: Micros): string {
  return payingFetch({ cap, scheme: EXACT, setUp: [], call: 'pay(url)', reader: 'json' })
}

/** A scheme of the x402 SDK. */
interface ClientScheme {
  readonly name: string
  readonly from: string
}

const EXACT: ClientScheme = { name: 'ExactEvmScheme', from: '@x402/evm/exact/client' }
/** For prices that follow the work. */
const UPTO: ClientScheme = { name: 'UptoEvmScheme', from: '@x402/evm/upto/client' }

function importOf({ name, from }: ClientScheme): string {
  return `import { ${name} } from '${from}'`
}

const ACCOUNTS = "import { privateKeyToAccount } from 'viem/accounts'"
const ACCOUNT = 'const account = privateKeyToAccount(process.env.PAYER_PRIVATE_KEY)'

/** A wallet of this name that pays at most `cap` for a call. */
function wallet(name: string, cap: Micros, scheme: ClientScheme): string[] {
  return [
    `const ${name} = new x402Client().register('eip155:*', new ${scheme.name}(account))`,
    `${name}.setSpendControls({ maxAmountPerPayment: '$${formatShort(cap)}' })`,
  ]
}

interface PayingFetch {
  readonly cap: Micros
  readonly scheme: ClientScheme
  /** What `call` refers to. */
  readonly setUp: readonly string[]
  readonly call: string
  readonly reader: 'json' | 'text' | 'arrayBuffer'
}

/** A program that makes a call with `pay` and prints its answer. */
function payingFetch({ cap, scheme, setUp, call, reader }: PayingFetch): string {
  return [
    "import { wrapFetchWithPayment, x402Client } from '@x402/fetch'",
    importOf(scheme),
    ACCOUNTS,
    ...setUp,
    ACCOUNT,
    ...wallet('client', cap, scheme),
    'const pay = wrapFetchWithPayment(fetch, client)',
    `console.log(await (await ${call}).${reader}())`,
  ].join('\n')
}

/** A command that pays for the same request, at most the highest price of a call. */
export function payCommandOf(baseUrl: string, route: Route): string {
  const { method, body } = route.operation
  const text = bodyText(route)
  const parts = [
    'npx ratecard-buyer pay',
    method === (body === undefined ? 'GET' : 'POST') ? '' : `-X ${method}`,
    `'${exampleUrl(baseUrl, route)}'`,
    ...(body === undefined
      ? []
      : [`-d ${text === undefined ? '@body' : quoteForShell(text)}`, `-H 'Content-Type: ${body.mediaType}'`]),
    `--max ${formatShort(capOf(route))}`,
  ]
  return parts.filter((part) => part !== '').join(' ')
}

function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/**
 * A program that pays for one tool call over x402, at most the highest of these prices. The caller prepends its own
 * `url` (a URL object) and `call`. Empty if there is nothing to pay for.
 */
export function toolProgram(prices: readonly (Price | undefined)[], protocols: readonly string[]): string {
  const cap = highestOfAll(prices)
  if (cap === undefined || !protocols.includes('x402')) return ''
  return [
    "import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'",
    "import { x402Client } from '@x402/core/client'",
    importOf(EXACT),
    ACCOUNTS,
    ACCOUNT,
    ...wallet('wallet', cap, EXACT),
    "const client = new Client({ name: 'buyer', version: '1.0.0' })",
    'await client.connect(new StreamableHTTPClientTransport(url))',
    'const { structuredContent: offer } = await client.callTool(call)',
    'const payment = await wallet.createPaymentPayload(offer)',
    "console.log(await client.callTool({ ...call, _meta: { 'x402/payment': payment } }))",
  ].join('\n')
}

/** The same as `javascriptOf` with the Python client of x402. */
export function pythonOf(baseUrl: string, route: Route): string {
  const { method, body } = route.operation
  const text = bodyText(route)
  const data = text === undefined ? "open('body', 'rb').read()" : `${JSON.stringify(text)}.encode()`
  const sent = body === undefined ? '' : `, data=${data}, headers={'Content-Type': '${body.mediaType}'}`
  return [
    '# pip install "x402[requests,evm]"',
    'import os',
    'from eth_account import Account',
    'from x402 import max_amount, x402ClientSync',
    'from x402.http.clients import x402_requests',
    'from x402.mechanisms.evm import EthAccountSigner',
    'from x402.mechanisms.evm.exact import ExactEvmScheme',
    "signer = EthAccountSigner(Account.from_key(os.environ['PAYER_PRIVATE_KEY']))",
    "client = x402ClientSync().register('eip155:*', ExactEvmScheme(signer))",
    // In millionths of a dollar.
    `client.register_policy(max_amount(${capOf(route)}))`,
    `print(x402_requests(client).request('${method}', '${exampleUrl(baseUrl, route)}'${sent}).text)`,
  ].join('\n')
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
