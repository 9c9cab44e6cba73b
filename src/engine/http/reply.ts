import type { Context } from 'koa'
import type { ValidationError } from '../catalog/validation-error.ts'
import { ERRORS, type Charged, type ErrorCode, type Failure } from '../errors.ts'
import { isJsonObject, type Json, type JsonObject } from '../json.ts'
import type { StoredAnswer } from '../ledger/payment-record.ts'
import type { Micros } from '../money.ts'
import { problemMembers } from '../purchase/problem.ts'

/** What a line says besides method, status and time; kept in `ctx.state`. */
export interface Notes {
  readonly place?: string
  readonly price?: Micros | undefined
  readonly code?: ErrorCode | undefined
  readonly cached?: boolean | undefined
  /** The calls inside the request have lines of their own. */
  readonly logged?: boolean
}

export function note(ctx: Context, notes: Notes): void {
  Object.assign(ctx.state, notes)
}

/** What is sent for one request. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Names of request headers that the answer depends on. */
  readonly vary?: string
  /** Why it is no answer. */
  readonly code?: ErrorCode
  /** Whether the answer came from the cache, where it says so. */
  readonly cached?: boolean
}

export function respond(ctx: Context, { status, headers, body, vary, code, cached }: Reply): void {
  note(ctx, { code, cached })
  ctx.status = status
  ctx.set(headers)
  if (vary !== undefined) {
    // Parses the names on both sides, which takes time.
    if (ctx.response.get('Vary')) ctx.vary(vary)
    else ctx.set('Vary', vary)
  }
  ctx.body = body
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
  }
}

/** A failure of the work: its own status and words, never anything of an unknown error. */
export function failed(failure: Failure, charged: Charged): Reply {
  const { code, detail, extra, retryAfter } = failure
  const headers =
    retryAfter === undefined ? {} : { 'Retry-After': String(Math.max(1, Math.ceil(retryAfter))) }
  return problem(code, detail, { charged, extra, headers })
}

/** 422 in the shape of the specification's HTTPValidationError. */
export function invalid(errors: readonly ValidationError[], charged: Charged = 'no'): Reply {
  return {
    status: 422,
    headers: { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store' },
    body: JSON.stringify({ detail: errors, charged }),
    code: 'parameters_invalid',
  }
}

/** An answer in the form it is stored in. */
export function ok(stored: StoredAnswer, headers: Readonly<Record<string, string>>): Reply {
  if (stored.kind === 'text')
    return { status: 200, headers: { 'Content-Type': stored.type, ...headers }, body: stored.text }
  const { cached }: { readonly cached?: Json } = isJsonObject(stored.value) ? stored.value : {}
  return {
    status: 200,
    headers: { 'Content-Type': JSON_TYPE, ...headers },
    body: JSON.stringify(stored.value),
    ...(typeof cached === 'boolean' ? { cached } : {}),
  }
}
