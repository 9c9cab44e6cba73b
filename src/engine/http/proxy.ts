import { fillPath, templatesOf, type Upstream } from '../catalog/catalog.ts'
import { Failure } from '../errors.ts'
import type { Argument, Arguments, UntypedHandler } from '../handler.ts'

export interface ProxySettings {
  readonly fetcher: typeof fetch
  /** Value of the environment variable a catalog names. */
  readonly secret: (name: string) => string | undefined
}

/** As much as an answer may have. */
const LARGEST_BYTES = 1_000_000

/**
 * Sells an API that exists already: parameters fill the upstream's path, the rest travels in its query, its answer is
 * passed on as it is. Nothing of the buyer's request but the declared parameters reaches the upstream.
 */
export function createProxy(upstream: Upstream, { fetcher, secret }: ProxySettings): UntypedHandler {
  return async (args, { signal }) => {
    const response = await call(
      fetcher,
      addressOf(upstream, args),
      credentialHeaders(upstream, secret),
      signal,
    )
    refuseFailure(response)
    const { essence, charset } = mediaType(response)
    const isJson = /^application\/(?:[\w.+-]+\+)?json$/.test(essence)
    // A page is made for eyes: as an answer to a program it is a log-in form or an error that calls itself a success.
    if (!isJson && (!essence.startsWith('text/') || essence === 'text/html')) {
      void response.body?.cancel().catch(() => undefined)
      throw new Failure('source_error', 'the upstream answered with something that is neither JSON nor text')
    }
    const text = decode(await readBytes(response), charset)
    if (text === '') throw new Failure('source_error', 'the upstream answered with nothing')
    return { content: { type: `${essence}; charset=utf-8`, text: isJson ? asJson(text) : text } }
  }
}

function addressOf({ url }: Upstream, args: Arguments): URL {
  const filled = fillPath(url, (name) => spell(args[name] ?? ''))
  // Dots need no encoding, and as a whole segment they would climb to paths that are not for sale.
  if (/\/\.{1,2}(?:[/?#]|$)/.test(filled))
    throw new Failure('not_found', 'the upstream has nothing under these parameters')
  const address = new URL(filled)
  for (const [key, value] of new URL(url).searchParams) {
    const [name] = templatesOf(value)
    // What the buyer has left out is not asked for as an empty text.
    if (name !== undefined && value === `{${name}}` && args[name] === undefined)
      address.searchParams.delete(key)
  }
  const inPath = templatesOf(url)
  for (const [name, value] of Object.entries(args)) {
    if (value !== undefined && !inPath.includes(name)) address.searchParams.set(name, spell(value))
  }
  return address
}

function spell(value: Argument): string {
  if (Array.isArray(value)) return value.join(',')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function credentialHeaders(
  { credential }: Upstream,
  secret: ProxySettings['secret'],
): Record<string, string> {
  const headers = { accept: 'application/json, text/*;q=0.5' }
  if (credential === undefined) return headers
  const value = secret(credential.env)
  if (value === undefined)
    throw new Failure('not_configured', 'the operator has not set the key of this upstream')
  return { ...headers, [credential.header]: `${credential.prefix}${value}` }
}

async function call(
  fetcher: typeof fetch,
  url: URL,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<Response> {
  try {
    return await fetcher(url, { headers, signal, redirect: 'manual' })
  } catch (cause) {
    throw new Failure('source_error', 'the upstream cannot be reached', { cause })
  }
}

function refuseFailure(response: Response): void {
  const { status } = response
  if (status >= 200 && status < 300) return
  void response.body?.cancel().catch(() => undefined)
  if (status === 404 || status === 410)
    throw new Failure('not_found', 'the upstream has nothing under these parameters')
  if (status === 429)
    throw new Failure('source_limited', 'the upstream is limiting us', { retryAfter: retryAfter(response) })
  if (status === 400 || status === 422)
    throw new Failure('source_error', 'the upstream refuses these parameters')
  throw new Failure('source_error', `the upstream answered with status ${status}`)
}

function retryAfter(response: Response): number {
  const seconds = Number(response.headers.get('retry-after'))
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 3600) : 30
}

/** RFC 9110 §8.3: without parameters, in lower case; nothing when the upstream does not say. */
function mediaType(response: Response): { readonly essence: string; readonly charset: string } {
  const [essence = '', ...parameters] = (response.headers.get('content-type') ?? '').toLowerCase().split(';')
  const charset = parameters.map((each) => /^\s*charset="?([^"\s]+)/.exec(each)?.[1]).find(Boolean)
  return { essence: essence.trim(), charset: charset ?? 'utf-8' }
}

function decode(bytes: Uint8Array, charset: string): string {
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch (cause) {
    throw new Failure('source_error', 'the upstream answered in an unknown character set', { cause })
  }
}

async function readBytes(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of response.body ?? []) {
      size += chunk.byteLength
      if (size > LARGEST_BYTES) break
      chunks.push(chunk)
    }
  } catch (cause) {
    throw new Failure('source_error', 'the upstream broke off its answer', { cause })
  }
  if (size > LARGEST_BYTES)
    throw new Failure('answer_too_large', 'the answer of the upstream is larger than 1 MB')
  return Buffer.concat(chunks)
}

function asJson(text: string): string {
  try {
    JSON.parse(text)
    return text
  } catch (cause) {
    throw new Failure('source_error', 'the upstream calls its answer JSON, and it is not', { cause })
  }
}
