import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { parsePrice, systemRuntime } from '../engine/internal.ts'
import type { Call, Flags } from './command.ts'
import { Steps } from './pay/result.ts'
import { exchange, PROTOCOLS, type HttpCall, type PurchaseRequest } from './pay/exchange.ts'
import { sandboxUrl } from './pay/wallet.ts'

export async function pay(call: Call): Promise<number> {
  const order = orderOf(call)
  if (typeof order === 'string') {
    call.terminal.err(`ratecard pay: ${order}`)
    return 64
  }
  const steps = new Steps(call, systemRuntime.now)
  const bill = await exchange(call.env, order, steps)
  steps.finish(bill)
  return bill.exit
}

function orderOf({ positionals, flags, env }: Call): PurchaseRequest | string {
  const [target] = positionals
  if (target === undefined)
    return 'missing argument: the URL to pay for, or a path of the sandbox on this machine'
  const wanted = flags.text('protocol')
  const protocols = PROTOCOLS.filter(({ name }) => wanted === undefined || wanted === name)
  if (protocols.length === 0) return `--protocol takes ${PROTOCOLS.map(({ name }) => name).join(' or ')}`
  const base = target.startsWith('/')
    ? (sandboxUrl(env.dataDir) ?? env.baseUrl ?? `http://localhost:${env.port}`)
    : undefined
  const url = URL.canParse(target, base) ? new URL(target, base) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    return `${target} is neither a URL (http://… or https://…) nor a path (/…)`
  const call = httpCallOf(url, flags)
  if (typeof call === 'string') return call
  const text = flags.text('max')
  const max = text === undefined ? undefined : parsePrice(text)
  if (max?.kind === 'fault') return '--max takes USD with at most six decimals, such as 0.01'
  return { call, max: max?.value, protocols }
}

/** What curl would send for the same options, except that the content type is detected. A string is an error message. */
function httpCallOf(url: URL, flags: Flags): HttpCall | string {
  const data = flags.text('data')
  const body =
    data?.startsWith('@') === true ? readBody(data.slice(1)) : Uint8Array.from(Buffer.from(data ?? ''))
  if (body === undefined) return `--data names a file that cannot be read: ${data}`
  const method = (flags.text('method') ?? (data === undefined ? 'GET' : 'POST')).toUpperCase()
  if (!METHODS.has(method)) return `--method takes one of ${[...METHODS].join(', ')}`
  if (method === 'GET' && data !== undefined) return '--method GET takes no --data'
  const headers: Record<string, string> = data === undefined ? {} : { 'content-type': mediaTypeOf(body) }
  for (const line of flags.all('header')) {
    const [, name, value] = /^([!#$%&'*+.^`|~\w-]+): *(.*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) return `--header takes "Name: value"; not "${line}"`
    headers[name.toLowerCase()] = value
  }
  return { url, method, headers, body: data === undefined ? undefined : body }
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])

function readBody(file: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(readFileSync(file))
  } catch {
    return undefined
  }
}

function mediaTypeOf(body: Uint8Array): string {
  if (!isUtf8(body)) return 'application/octet-stream'
  const text = Buffer.from(body).toString()
  try {
    JSON.parse(text)
    return 'application/json'
  } catch {
    return /^[^=&\s]+=[^\s]*$/.test(text) ? 'application/x-www-form-urlencoded' : 'text/plain'
  }
}
