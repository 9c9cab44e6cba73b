import type { Upstream } from '../catalog/catalog.ts'
import { Failure } from '../errors.ts'
import type { UntypedHandler } from '../handler.ts'
import type { Json, JsonObject } from '../json.ts'
import { authorize, buildRequest, concealer, type Secret, type UpstreamRequest } from './upstream-request.ts'

export interface ProxySettings {
  readonly fetcher: typeof fetch
  readonly secret: Secret
  /** Called with what only the operator can change: an address or a key that the upstream does not accept. */
  readonly report: (fault: Failure) => void
}

/** As much as an answer may have. */
const LARGEST_BYTES = 1_000_000
const MOST_REDIRECTS = 5

/**
 * Sells an API that exists already: parameters fill the upstream's path, query and headers, its answer is passed on as it
 * is. A run again for the same payment has the same `Idempotency-Key`.
 */
export function createProxy(upstream: Upstream, settings: ProxySettings): UntypedHandler {
  const { secret, report } = settings
  const misconfigured = (detail: string): Failure => {
    report(new Failure('upstream_misconfigured', `${new URL(upstream.url).host} ${detail}`))
    return new Failure('upstream_misconfigured', `the upstream ${detail}; the operator is told`)
  }
  return async (args, { signal, payment, now }) => {
    const request = buildRequest(upstream, args)
    if (payment !== undefined) request.headers.set('idempotency-key', payment.id)
    let response: Response | undefined
    for (let hop = 0; hop <= MOST_REDIRECTS; hop += 1) {
      authorize(request, upstream, secret)
      response = await send(settings.fetcher, request, signal)
      const target = targetOf(response, request.url)
      if (target === undefined) break
      discard(response)
      if (!isWithin(target, request.url)) throw misconfigured('sends its callers to another host')
      request.url.href = target.href
    }
    if (response === undefined || targetOf(response, request.url) !== undefined)
      throw misconfigured('sends its callers in a circle')
    const { status } = response
    if (status >= 200 && status < 300) return readAnswer(response)
    if (OURS.has(status)) {
      discard(response)
      throw misconfigured(`does not accept our calls: it answers with status ${status}`)
    }
    if (status < 400 || status >= 500 || PASSING.has(status)) {
      discard(response)
      throw unavailable(response, now())
    }
    throw await rejection(response, concealer(upstream, secret))
  }
}

async function send(
  fetcher: typeof fetch,
  { url, headers }: UpstreamRequest,
  signal: AbortSignal,
): Promise<Response> {
  try {
    return await fetcher(url, { headers, signal, redirect: 'manual' })
  } catch (cause) {
    throw new Failure('source_error', 'the upstream cannot be reached', { cause })
  }
}

/** Where a redirect leads; undefined for every other answer. */
function targetOf({ status, headers }: Response, from: URL): URL | undefined {
  const location = headers.get('location')
  if (![301, 302, 303, 307, 308].includes(status) || location === null) return undefined
  return URL.canParse(location, from.href) ? new URL(location, from) : undefined
}

/** The same host, and never from https to http: the credential goes there too. */
function isWithin(target: URL, from: URL): boolean {
  return target.host === from.host && (target.protocol === from.protocol || target.protocol === 'https:')
}

/** What the operator has to change: the key, what it may do, or the address. */
const OURS: ReadonlySet<number> = new Set([401, 402, 403, 405, 407])
/** What may be over when the same is asked again. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429])

function unavailable({ status, headers }: Response, now: Date): Failure {
  const retryAfter = secondsOf(headers.get('retry-after'), now)
  if (status === 429)
    return new Failure('source_limited', 'the upstream is limiting us', { retryAfter: retryAfter ?? 30 })
  const detail = `the upstream answered with status ${status}`
  return new Failure('source_error', detail, retryAfter === undefined ? {} : { retryAfter })
}

const LONGEST_WAIT = 3_600

/** RFC 9110 §10.2.3: seconds, or a date. */
function secondsOf(text: string | null, now: Date): number | undefined {
  if (text === null || text.trim() === '') return undefined
  const seconds = /^\s*\d+\s*$/.test(text) ? Number(text) : (Date.parse(text) - now.getTime()) / 1_000
  return seconds > 0 ? Math.min(Math.ceil(seconds), LONGEST_WAIT) : undefined
}

/** As much of what an upstream says about a rejected request as a buyer is shown. */
const SHOWN_BYTES = 8_000

/** A request that stays wrong until the buyer changes it, with what the upstream says about it. */
async function rejection(response: Response, conceal: (text: string) => string): Promise<Failure> {
  const { status } = response
  const shown = await readBytes(response, SHOWN_BYTES).catch(() => undefined)
  const body = shown === undefined ? undefined : bodyOf(response, shown.bytes, conceal)
  const upstream: JsonObject = {
    status,
    ...(body === undefined ? {} : { body }),
    ...(shown?.isWhole === false ? { truncated: true } : {}),
  }
  return status === 404 || status === 410
    ? new Failure('not_found', 'the upstream has nothing under these parameters', { extra: { upstream } })
    : new Failure('upstream_rejected', `the upstream rejects this request with status ${status}`, {
        extra: { upstream },
      })
}

function bodyOf(response: Response, bytes: Uint8Array, conceal: (text: string) => string): Json | undefined {
  const { essence, charset } = mediaType(response)
  if (bytes.length === 0 || (!isJson(essence) && !isPlainText(essence))) return undefined
  const text = conceal(decode(bytes, charset) ?? '')
  try {
    return isJson(essence) ? JSON.parse(text) : text
  } catch {
    return text
  }
}

async function readAnswer(response: Response): Promise<{ content: { type: string; text: string } }> {
  const { essence, charset } = mediaType(response)
  // A page is made for eyes: as an answer to a program it is a log-in form or an error that calls itself a success.
  if (!isJson(essence) && !isPlainText(essence)) {
    discard(response)
    throw new Failure('source_error', 'the upstream answered with something that is neither JSON nor text')
  }
  const { bytes, isWhole } = await readBytes(response, LARGEST_BYTES)
  if (!isWhole) throw new Failure('answer_too_large', 'the answer of the upstream is larger than 1 MB')
  const text = decode(bytes, charset)
  if (text === undefined)
    throw new Failure('source_error', 'the upstream answered in an unknown character set')
  if (text === '') throw new Failure('source_error', 'the upstream answered with nothing')
  return { content: { type: `${essence}; charset=utf-8`, text: isJson(essence) ? asJson(text) : text } }
}

/** RFC 9110 §8.3: without parameters, in lower case; nothing when the upstream does not say. */
function mediaType(response: Response): { readonly essence: string; readonly charset: string } {
  const [essence = '', ...parameters] = (response.headers.get('content-type') ?? '').toLowerCase().split(';')
  const charset = parameters.map((each) => /^\s*charset="?([^"\s]+)/.exec(each)?.[1]).find(Boolean)
  return { essence: essence.trim(), charset: charset ?? 'utf-8' }
}

function isJson(essence: string): boolean {
  return /^application\/(?:[\w.+-]+\+)?json$/.test(essence)
}

function isPlainText(essence: string): boolean {
  return essence.startsWith('text/') && essence !== 'text/html'
}

/** Undefined: no character set of this name is known. */
function decode(bytes: Uint8Array, charset: string): string | undefined {
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return undefined
  }
}

interface ReadBytes {
  readonly bytes: Uint8Array
  /** Whether there was no more. */
  readonly isWhole: boolean
}

async function readBytes(response: Response, most: number): Promise<ReadBytes> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of response.body ?? []) {
      size += chunk.byteLength
      chunks.push(chunk)
      if (size > most) break
    }
  } catch (cause) {
    throw new Failure('source_error', 'the upstream broke off its answer', { cause })
  }
  return { bytes: Buffer.concat(chunks).subarray(0, most), isWhole: size <= most }
}

function discard(response: Response): void {
  void response.body?.cancel().catch(() => undefined)
}

function asJson(text: string): string {
  try {
    JSON.parse(text)
    return text
  } catch (cause) {
    throw new Failure('source_error', 'the upstream calls its answer JSON, and it is not', { cause })
  }
}
