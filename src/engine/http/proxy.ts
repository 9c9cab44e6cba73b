import { isJsonMedia } from '../catalog/body.ts'
import { Failure } from '../base/errors.ts'
import { UpstreamFault } from '../base/upstream-cause.ts'
import { hasContent, isSuccessStatus, type SuccessStatus } from '../base/success-status.ts'
import type { StreamAnswer, UntypedCheck, UntypedHandler, VerbatimAnswer } from '../handler.ts'
import { parseJson, type Json, type JsonObject } from '../base/json.ts'
import { readMediaType, type MediaType } from './body-reader.ts'
import { CredentialRefused } from '../purchase/exempt-caller.ts'
import type { CallerCredential } from './caller-credential.ts'
import {
  authorize,
  buildRequest,
  conceal,
  type Proxied,
  secretsOf,
  type Secret,
  type UpstreamRequest,
} from './upstream-request.ts'

export interface ProxySettings {
  readonly fetcher: typeof fetch
  readonly secret: Secret
  /** Called with what only the operator can change: an address or a key that the upstream does not accept. */
  readonly report: (fault: Failure) => void
}

interface AnswerHead {
  readonly status: SuccessStatus
  readonly headers: Readonly<Record<string, string>>
}

const MOST_REDIRECTS = 5

/** As whom an upstream is asked, and what it is said to refuse them. */
interface Requester {
  readonly sign: (request: UpstreamRequest) => void
  readonly conceal: (text: string) => string
  /** Statuses that only the operator can do something about. */
  readonly ours: ReadonlySet<number>
  /** What a refusal of this requester is; undefined: a status like any other. */
  readonly refusal: (response: Response) => Promise<Error | undefined>
}

/** The operator: a status that refuses the key, what it may do, or the address is for the operator to correct. */
function operatorOf({ upstream }: Proxied, { secret }: ProxySettings): Requester {
  return {
    sign: (request) => authorize(request, upstream, secret),
    conceal: (text) => conceal(text, secretsOf(upstream, secret)),
    ours: new Set([401, 402, 403, 405, 407]),
    refusal: async () => undefined,
  }
}

/** A caller with a credential of their own: what it may do, and what it costs, is between them and the upstream. */
function callerOf(credential: CallerCredential, { response: wanted }: Proxied): Requester {
  return {
    sign: (request) => credential.sign(request),
    conceal: (text) => credential.conceal(text),
    ours: new Set([405, 407]),
    refusal: async (response) => {
      if (response.status === 403) return forbiddance(response, wanted, credential)
      if (response.status !== 401) return undefined
      discard(response)
      return new CredentialRefused()
    },
  }
}

/**
 * Sells an API that exists already: parameters fill the upstream's path, query and headers, body and answer are passed
 * on as they are. A repeated run for the same payment sends the same `Idempotency-Key`.
 */
export function createProxy(operation: Proxied, settings: ProxySettings): UntypedHandler {
  return proxyFor(operatorOf(operation, settings), operation, settings)
}

/** The same for a caller, with their credential instead of ours. */
export function createCallerProxy(
  operation: Proxied,
  settings: ProxySettings,
  credential: CallerCredential,
): UntypedHandler {
  return proxyFor(callerOf(credential, operation), operation, settings)
}

function proxyFor(requester: Requester, operation: Proxied, settings: ProxySettings): UntypedHandler {
  const { upstream } = operation
  const { report } = settings
  const misconfigured = (detail: string): Failure => {
    report(new Failure('upstream_misconfigured', `${new URL(upstream.url).host} ${detail}`))
    return new Failure('upstream_misconfigured', `the upstream ${detail}; the operator has been notified`)
  }
  return async (args, { signal, payment, now }) => {
    let request = buildRequest(operation, args)
    if (payment !== undefined) request.headers.set('idempotency-key', payment.id)
    for (let hop = 0; hop <= MOST_REDIRECTS; hop += 1) {
      requester.sign(request)
      const response = await send(settings.fetcher, request, signal)
      const target = targetOf(response, request.url)
      if (target === undefined) {
        const { status } = response
        if (status >= 200 && status < 300)
          return operation.response.stream
            ? streamOf(response, request.url, operation)
            : readAnswer(response, request.url, operation)
        const refusal = await requester.refusal(response)
        if (refusal !== undefined) throw refusal
        if (requester.ours.has(status)) {
          discard(response)
          throw misconfigured(`does not accept our calls: it answers with status ${status}`)
        }
        if (status >= 400 && status < 500 && !PASSING.has(status))
          throw await rejection(response, requester.conceal)
        discard(response)
        throw unavailable(response, now())
      }
      discard(response)
      if (!isWithin(target, request.url)) throw misconfigured('redirects to another host')
      request = redirected(request, target, response.status)
    }
    throw misconfigured('redirects in a loop')
  }
}

/** Rejects arguments with which no request can be made, before they are paid for. */
export function createProxyCheck(operation: Proxied): UntypedCheck {
  return async (args) => {
    buildRequest(operation, args)
  }
}

async function send(
  fetcher: typeof fetch,
  { url, ...request }: UpstreamRequest,
  signal: AbortSignal,
): Promise<Response> {
  try {
    const { body = null, ...rest } = request
    return await fetcher(url, { ...rest, body, signal, redirect: 'manual' })
  } catch (cause) {
    throw new Failure('source_error', 'the upstream cannot be reached', { cause })
  }
}

/** Fetch Standard, HTTP-redirect fetch: 303 is read by GET, and so are 301 and 302 of a POST. */
function redirected(request: UpstreamRequest, url: URL, status: number): UpstreamRequest {
  const isRead = (status === 303 && request.method !== 'GET') || (status < 303 && request.method === 'POST')
  if (!isRead) return { ...request, url }
  request.headers.delete('content-type')
  return { ...request, url, method: 'GET', body: undefined }
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

/** Statuses that may be temporary: the same request may succeed later. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429])

function unavailable({ status, headers }: Response, now: Date): Failure {
  const retryAfter = secondsOf(headers.get('retry-after'), now)
  if (status === 429)
    return new Failure('source_limited', 'the upstream is limiting us', { retryAfter: retryAfter ?? 30 })
  const detail = `the upstream answered with status ${status}`
  const cause = new UpstreamFault('status', detail)
  return new Failure('source_error', detail, { cause, ...(retryAfter === undefined ? {} : { retryAfter }) })
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

/** The upstream knows the caller, and does not let them do this. Over HTTP its answer is passed on as it is. */
export class UpstreamForbidden extends Failure {
  readonly answer: {
    readonly type: string
    readonly headers: Readonly<Record<string, string>>
    readonly bytes: Uint8Array
  }

  constructor(answer: UpstreamForbidden['answer'], body: Json | undefined) {
    super('upstream_forbidden', 'the upstream does not allow this call with the credential of this request', {
      extra: { upstream: { status: 403, ...(body === undefined ? {} : { body }) } },
    })
    this.answer = answer
  }
}

async function forbiddance(
  response: Response,
  { headers, maxSize }: Proxied['response'],
  credential: CallerCredential,
): Promise<UpstreamForbidden> {
  const { bytes } = await readBytes(response, maxSize)
  const shown = bodyOf(response, bytes.subarray(0, SHOWN_BYTES), (text) => credential.conceal(text))
  const type = response.headers.get('content-type') ?? ''
  return new UpstreamForbidden(
    { type, headers: Object.fromEntries(listedOf(response, headers)), bytes },
    shown,
  )
}

function bodyOf(response: Response, bytes: Uint8Array, conceal: (text: string) => string): Json | undefined {
  const { essence, charset } = mediaType(response)
  if (bytes.length === 0 || (!isJsonMedia(essence) && !isPlainText(essence))) return undefined
  const text = conceal(decode(bytes, charset) ?? '')
  try {
    return isJsonMedia(essence) ? JSON.parse(text) : text
  } catch {
    return text
  }
}

/** The bytes of the upstream as they come. */
function streamOf(response: Response, asked: URL, { response: wanted }: Proxied): StreamAnswer {
  requireWanted(response, wanted.mediaType)
  const type = response.headers.get('content-type') ?? ''
  return { content: { ...headOf(response, asked, wanted), type, stream: chunksOf(response) } }
}

/** The bytes of the upstream under its media type; text is given as text where that changes no byte. */
async function readAnswer(
  response: Response,
  asked: URL,
  { method, response: wanted }: Proxied,
): Promise<VerbatimAnswer> {
  const type = response.headers.get('content-type') ?? ''
  const { essence, charset } = mediaType(response)
  const { bytes, isWhole } = await readBytes(response, wanted.maxSize)
  if (!isWhole) {
    const detail = `the answer of the upstream is larger than ${wanted.maxSize} bytes`
    throw new Failure('answer_too_large', detail)
  }
  const head = headOf(response, asked, wanted)
  if (bytes.length === 0) {
    // 204 and 205 have no content; another GET without content is an answer that got lost. So is an encoded one of which
    // nothing could be decoded: fetch ignores that compressed bytes are incomplete.
    const isLost = method === 'GET' || isEncoded(response)
    if (hasContent(head.status) && isLost) throw broken('body', 'the upstream answered with nothing')
    return { content: { ...head, type: type || 'text/plain; charset=utf-8', text: '' } }
  }
  requireWanted(response, wanted.mediaType)
  const text = isJsonMedia(essence) || essence.startsWith('text/') ? decode(bytes, charset) : undefined
  if (isJsonMedia(essence) && text !== undefined) requireJson(text)
  if (text === undefined || !Buffer.from(text).equals(bytes)) return { content: { ...head, type, bytes } }
  return { content: { ...head, type, text } }
}

/**
 * Throws unless the answer has the media type that the catalog promises, or without a promise any type but that of a
 * web page: a page in answer to a program is a log-in form, or an error with a status of success.
 */
function requireWanted(response: Response, promised: string | undefined): void {
  const { essence } = mediaType(response)
  const isWanted =
    promised === undefined
      ? essence !== '' && !/^(?:text\/html|application\/xhtml\+xml)$/.test(essence)
      : essence === promised || (isJsonMedia(essence) && isJsonMedia(promised))
  if (isWanted) return
  discard(response)
  throw broken('type', `the upstream answered with ${essence || 'no media type'}`)
}

/** Headers of the connection to the upstream, and those that say how its bytes were sent, are not the buyer's. */
const NOT_PASSED =
  /^(?:connection|content-(?:encoding|length|type)|keep-alive|proxy-.*|set-cookie|te|trailer|transfer-encoding|upgrade)$/i

/** The status of the upstream, and the headers that the catalog lists. */
function headOf(response: Response, asked: URL, { headers: listed }: Proxied['response']): AnswerHead {
  const status = isSuccessStatus(response.status) ? response.status : 200
  const headers = listedOf(response, listed)
  const location = status === 201 || status === 202 ? locationOf(response, asked) : undefined
  if (location !== undefined && !listed.some((name) => name.toLowerCase() === 'location'))
    headers.push(['Location', location])
  return { status, headers: Object.fromEntries(headers) }
}

function listedOf({ headers }: Response, listed: readonly string[]): [string, string][] {
  return listed.flatMap((name): [string, string][] => {
    const value = NOT_PASSED.test(name) ? null : headers.get(name)
    return value === null ? [] : [[name, value]]
  })
}

/**
 * Where the upstream has created something. Its own host, which may be an internal one, is left out: a reference
 * without a host is relative to this service.
 */
function locationOf({ headers }: Response, asked: URL): string | undefined {
  const location = headers.get('location')
  if (location === null || !URL.canParse(location, asked.href)) return undefined
  const target = new URL(location, asked)
  return target.host === asked.host ? `${target.pathname}${target.search}${target.hash}` : target.href
}

function mediaType({ headers }: Response): MediaType {
  return readMediaType(headers.get('content-type') ?? '')
}

function isPlainText(essence: string): boolean {
  return essence.startsWith('text/') && essence !== 'text/html'
}

/** Undefined: no character set of this name is known. */
function decode(bytes: Uint8Array, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

interface ReadBytes {
  readonly bytes: Uint8Array
  /** Whether these are all bytes of the answer. */
  readonly isWhole: boolean
}

async function readBytes(response: Response, most: number): Promise<ReadBytes> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunksOf(response)) {
    size += chunk.byteLength
    chunks.push(chunk)
    if (size > most) break
  }
  return { bytes: Buffer.concat(chunks).subarray(0, most), isWhole: size <= most }
}

async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array, void> {
  try {
    yield* body ?? []
  } catch (cause) {
    throw broken('body', 'the upstream broke off its answer', cause)
  }
}

function discard(response: Response): void {
  void response.body?.cancel().catch(() => undefined)
}

function isEncoded({ headers }: Response): boolean {
  return headers.has('content-encoding') && headers.get('content-length') !== '0'
}

function requireJson(text: string): void {
  if (parseJson(text.replace(/^\ufeff/, '')) === undefined)
    throw broken('body', 'the upstream calls its answer JSON, and it is not')
}

/** The failure of an upstream whose answer cannot be used. */
function broken(kind: 'body' | 'type', detail: string, cause?: unknown): Failure {
  return new Failure('source_error', detail, { cause: new UpstreamFault(kind, detail, { cause }) })
}
