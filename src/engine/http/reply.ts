import type { Readable } from 'node:stream'
import type { Context } from 'koa'
import type { ValidationError } from '../catalog/validation-error.ts'
import {
  ERRORS,
  loggedDetail,
  NOT_CHARGED,
  type ChargeMembers,
  type Charged,
  type ErrorCode,
  type Failure,
} from '../base/errors.ts'
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import type { AnswerHead, StoredAnswer } from '../ledger/payment-record.ts'
import type { Micros } from '../base/money.ts'
import type { SaleRequest } from '../base/access-record.ts'
import { upstreamCauseOf, type UpstreamCause } from '../base/upstream-cause.ts'
import { hasContent } from '../base/success-status.ts'
import { problemMembers } from '../purchase/problem.ts'

/** What a line says besides method, status and time; kept in `ctx.state`. */
export interface Notes {
  readonly place?: string
  readonly price?: Micros | undefined
  readonly code?: ErrorCode | undefined
  readonly detail?: string | undefined
  readonly cause?: UpstreamCause | undefined
  readonly cached?: boolean | undefined
  /** Name of the API key. */
  readonly customer?: string
  readonly sale?: SaleRequest
  /** The calls inside the request have lines of their own. */
  readonly logged?: boolean
  /** The answer is that of the site, whatever its status. */
  readonly passed?: boolean
}

export function note(ctx: Context, notes: Notes): void {
  Object.assign(ctx.state, notes)
}

/** What is sent for one request. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
  /** Instead of a body: sent piece by piece. */
  readonly stream?: Readable
  /** Names of request headers that the answer depends on. */
  readonly vary?: string
  /** Code of the error, when it is no answer. */
  readonly code?: ErrorCode
  /** The error in a sentence, for the log. */
  readonly detail?: string
  /** Why an upstream has failed, for the log. */
  readonly cause?: UpstreamCause
  /** Whether the answer came from the cache, where it says so. */
  readonly cached?: boolean
}

export function respond(
  ctx: Context,
  { status, headers, body, stream, vary, code, detail, cause, cached }: Reply,
): void {
  const { response, res } = ctx
  note(ctx, { code, detail, cause, cached })
  response.status = status
  setHeaders(ctx, headers)
  if (vary !== undefined) {
    // Setting it again parses the names on both sides, which takes time.
    if (res.hasHeader('Vary')) response.vary(vary)
    else setHeaders(ctx, { Vary: vary })
  }
  response.body = stream ?? body
  // The buyer learns that the stream has begun, and middleware that would buffer its chunks leaves it alone.
  if (stream !== undefined && ctx.method !== 'HEAD') ctx.flushHeaders()
}

/** Does what `ctx.set` does without its two copies of each header: a 402 has many headers, and is asked for most. */
export function setHeaders({ res }: Context, headers: Readonly<Record<string, string>>): void {
  if (res.headersSent) return
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
}

export const JSON_TYPE = 'application/json; charset=utf-8'
export const PROBLEM_TYPE = 'application/problem+json'

export interface ProblemOptions {
  readonly charged: Charged
  readonly headers?: Readonly<Record<string, string>>
  readonly extra?: JsonObject
}

/** RFC 9457 problem with the service's own members: what happened, what was charged, what to do. */
export function problem(code: ErrorCode, detail: string, options: ProblemOptions): Reply {
  const { status } = ERRORS[code]
  const body = { ...problemMembers(code, detail, options.charged), ...options.extra }
  return {
    status,
    headers: { 'Content-Type': PROBLEM_TYPE, 'Cache-Control': 'no-store', ...options.headers },
    body: JSON.stringify(body),
    code,
    detail,
  }
}

/** A failure of the handler with its own status and message; nothing of an unknown error. */
export function failed(failure: Failure, { charged, ...refund }: ChargeMembers = NOT_CHARGED): Reply {
  const { code, detail, extra, retryAfter } = failure
  const headers =
    retryAfter === undefined ? {} : { 'Retry-After': String(Math.max(1, Math.ceil(retryAfter))) }
  const reply = problem(code, detail, { charged, extra: { ...extra, ...refund }, headers })
  const cause = upstreamCauseOf(failure)
  return { ...reply, detail: loggedDetail(failure), ...(cause === undefined ? {} : { cause }) }
}

/** 422 in the shape of the specification's HTTPValidationError, with what every error says. */
export function invalid(errors: readonly ValidationError[], charge = NOT_CHARGED): Reply {
  const code = 'parameters_invalid'
  const { hint, retryable } = ERRORS[code]
  return {
    status: 422,
    headers: { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store' },
    body: JSON.stringify({ detail: errors, code, hint, ...charge, retryable }),
    code,
  }
}

/** The content is unknown: a browser must neither guess its type nor run it as a page of this service. */
export const INERT = { 'X-Content-Type-Options': 'nosniff', 'Content-Security-Policy': 'sandbox' }

/** A stored answer, or a stream that is being stored. */
export function ok(
  stored: StoredAnswer | (AnswerHead & { readonly kind: 'stream'; readonly body: Readable }),
  headers: Readonly<Record<string, string>>,
): Reply {
  const { status = 200 } = stored
  if (!hasContent(status)) {
    const own = stored.kind === 'json' ? {} : stored.headers
    return { status, headers: { ...own, ...headers }, body: '' }
  }
  if (stored.kind === 'stream')
    return {
      status,
      // nginx and similar proxies buffer responses unless told otherwise.
      headers: {
        'Content-Type': stored.type,
        'X-Accel-Buffering': 'no',
        ...INERT,
        ...stored.headers,
        ...headers,
      },
      body: '',
      stream: stored.body,
    }
  if (stored.kind === 'text')
    return {
      status,
      headers: { 'Content-Type': stored.type, ...stored.headers, ...headers },
      body: stored.text,
    }
  if (stored.kind === 'bytes')
    return {
      status,
      headers: { 'Content-Type': stored.type, ...INERT, ...stored.headers, ...headers },
      body: Buffer.from(stored.bytes),
    }
  const { cached }: { readonly cached?: Json } = isJsonObject(stored.value) ? stored.value : {}
  return {
    status,
    headers: { 'Content-Type': JSON_TYPE, ...headers },
    body: JSON.stringify(stored.value),
    ...(typeof cached === 'boolean' ? { cached } : {}),
  }
}
