import { fillPath, templatesOf, type Upstream } from '../catalog/catalog.ts'
import { Failure } from '../errors.ts'
import type { Arguments, UntypedHandler } from '../handler.ts'

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
    const text = await readText(response)
    const type = response.headers.get('content-type') ?? 'application/octet-stream'
    if (/^application\/(?:[\w.+-]+\+)?json/i.test(type)) return { content: { type, text: asJson(text) } }
    if (/^text\//i.test(type)) return { content: { type, text } }
    throw new Failure('source_error', 'the upstream answered with something that is neither JSON nor text')
  }
}

function addressOf({ url }: Upstream, args: Arguments): URL {
  const spell = (name: string): string => String(args[name] ?? '')
  const address = new URL(fillPath(url, spell))
  const inPath = templatesOf(url)
  for (const [name, value] of Object.entries(args)) {
    if (value !== undefined && !inPath.includes(name)) address.searchParams.set(name, String(value))
  }
  return address
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
  void response.body?.cancel()
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

async function readText(response: Response): Promise<string> {
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
  return Buffer.concat(chunks).toString('utf8')
}

function asJson(text: string): string {
  try {
    JSON.parse(text)
    return text
  } catch (cause) {
    throw new Failure('source_error', 'the upstream calls its answer JSON, and it is not', { cause })
  }
}
