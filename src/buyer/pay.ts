import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { UsageError } from '../command-line/usage-error.ts'
import type { Flags } from '../engine/service-definition.ts'
import type { BuyerCall } from './buyer-command.ts'
import type { BuyerRuntime } from './buyer-runtime.ts'
import { depositOf } from './channels/channels.ts'
import { amountOf, protocolsOf } from './flags.ts'
import { writeFault } from './pay/answer-file.ts'
import { exchange, type PurchaseRequest } from './pay/exchange.ts'
import { Steps } from './pay/steps.ts'
import type { HttpCall } from './http-call.ts'
import { sandboxUrl } from './sandbox-file.ts'

/** Exit code for an answer that was printed because its file could not be written. */
const NOT_SAVED = 1

/** Pays for one HTTP call and shows the whole exchange. */
export async function pay(call: BuyerCall, runtime: BuyerRuntime): Promise<number> {
  const order = orderOf(call)
  const file = call.flags.text('output')
  const fault = file === undefined ? undefined : writeFault(file)
  if (fault !== undefined)
    throw new UsageError(`--output names a file that cannot be written: ${file}: ${fault}. Nothing was paid`)
  const steps = new Steps(call, runtime.now)
  const bill = await exchange({ env: call.env, runtime, steps }, order)
  return steps.finish(bill) === 'shown' ? bill.exit : NOT_SAVED
}

function orderOf({ positionals, flags, env }: BuyerCall): PurchaseRequest {
  const [target] = positionals
  if (target === undefined)
    throw new UsageError('missing argument: the URL to pay for, or a path of the sandbox on this machine')
  const base = target.startsWith('/')
    ? (sandboxUrl(env.dataDir) ?? env.baseUrl ?? `http://localhost:${env.port}`)
    : undefined
  const url = URL.canParse(target, base) ? new URL(target, base) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new UsageError(`${target} is neither a URL (http://… or https://…) nor a path (/…)`)
  return {
    call: httpCallOf(url, flags),
    max: amountOf(flags, 'max'),
    protocols: protocolsOf(flags),
    deposit: depositOf(amountOf(flags, 'deposit')),
    failing: flags.given('anyway') ? 'sign' : 'refuse',
  }
}

/** What curl would send for the same options, except that the content type is detected. */
function httpCallOf(url: URL, flags: Flags): HttpCall {
  const data = flags.text('data')
  const body = data === undefined ? undefined : bodyOf(data)
  const method = (flags.text('method') ?? (data === undefined ? 'GET' : 'POST')).toUpperCase()
  if (!METHODS.has(method)) throw new UsageError(`--method takes one of ${[...METHODS].join(', ')}`)
  if (method === 'GET' && data !== undefined) throw new UsageError('--method GET takes no --data')
  const headers: Record<string, string> = body === undefined ? {} : { 'content-type': mediaTypeOf(body) }
  for (const line of flags.all('header')) {
    const [, name, value] = /^([!#$%&'*+.^`|~\w-]+): *(.*)$/.exec(line) ?? []
    if (name === undefined || value === undefined)
      throw new UsageError(`--header takes "Name: value"; not "${line}"`)
    headers[name.toLowerCase()] = value
  }
  return { url, method, headers, body }
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])

function bodyOf(data: string): Uint8Array<ArrayBuffer> {
  if (!data.startsWith('@')) return Uint8Array.from(Buffer.from(data))
  try {
    return Uint8Array.from(readFileSync(data.slice(1)))
  } catch {
    throw new UsageError(`--data names a file that cannot be read: ${data}`)
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
