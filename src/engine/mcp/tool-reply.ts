import { isUtf8 } from 'node:buffer'
import {
  ERRORS,
  loggedDetail,
  NOT_CHARGED,
  type ChargeMembers,
  type Charged,
  type ErrorCode,
  type Failure,
} from '../base/errors.ts'
import { upstreamCauseOf, type UpstreamCause } from '../base/upstream-cause.ts'
import { isJsonMedia } from '../catalog/body.ts'
import type { ValidationError } from '../catalog/validation-error.ts'
import { compact, isJsonObject, type Json, type JsonObject, parseJson } from '../base/json.ts'
import type { StoredAnswer } from '../ledger/payment-record.ts'
import { type OpenStream, type StreamedAnswer } from '../purchase/request.ts'
import { problemMembers } from '../purchase/problem.ts'

/** The answer to a tool call as a value; `status` is the status over HTTP. */
export interface ToolReply {
  readonly status: number
  readonly result: JsonObject
  /** Why it is no answer. */
  readonly code?: ErrorCode
  /** The same in a sentence, for the log. */
  readonly detail?: string
  /** Why an upstream has failed, for the log. */
  readonly cause?: UpstreamCause
}

/** The link to an answer that is too large for a message. */
export interface AnswerLink {
  readonly uri: string
  /** RFC 3339. */
  readonly until: string
  /** Whether the client supports links, which exist since revision 2025-06-18. */
  readonly isKnown: boolean
}

/** Largest file in a message. JSON is always included, because `structuredContent` is promised. */
const EMBEDDED_BYTES = 1_000_000

/** A stored answer; `link` for a purchased one. */
export function answered(
  stored: StoredAnswer | OpenStream | StreamedAnswer,
  meta: JsonObject,
  link?: AnswerLink,
): ToolReply {
  if (stored.kind === 'stream') throw new TypeError('the answer of a tool has one piece')
  const size = fileSize(stored)
  const content = size > EMBEDDED_BYTES && link !== undefined ? linkTo(stored, size, link) : contentOf(stored)
  return { status: 200, result: withMeta(content, meta) }
}

function fileSize(stored: StoredAnswer): number {
  if (stored.kind === 'bytes') return stored.bytes.length
  return stored.kind === 'json' || isJsonMedia(essenceOf(stored)) ? 0 : Buffer.byteLength(stored.text)
}

/** The media type without its parameters. */
function essenceOf(stored: StoredAnswer): string {
  const [essence = ''] = stored.kind === 'json' ? ['application/json'] : stored.type.split(';')
  return essence
}

function linkTo(stored: StoredAnswer, size: number, { uri, until, isKnown }: AnswerLink): JsonObject {
  const mimeType = essenceOf(stored)
  const text = `The answer is a file of ${size} bytes (${mimeType}). It is paid for: fetch it with GET, without a payment, until ${until}: ${uri}`
  const resource = { type: 'resource_link', uri, name: 'answer', mimeType, size }
  return { content: [{ type: 'text', text }, ...(isKnown ? [resource] : [])] }
}

function contentOf(stored: StoredAnswer): JsonObject {
  if (stored.kind === 'json') {
    const text = JSON.stringify(stored.value)
    return isJsonObject(stored.value) ? structured(text, stored.value) : wrapped(text, stored.value)
  }
  if (stored.kind === 'bytes') {
    const bytes = Buffer.from(stored.bytes)
    const [mimeType, data] = [essenceOf(stored), bytes.toString('base64')]
    if (mimeType === 'application/x-ndjson' || (mimeType.startsWith('text/') && isUtf8(bytes)))
      return { content: [{ type: 'text', text: bytes.toString() }] }
    const type = ['image', 'audio'].find((each) => mimeType.startsWith(`${each}/`))
    if (type !== undefined) return { content: [{ type, data, mimeType }] }
    const resource = { uri: `data:${mimeType}`, mimeType, blob: data }
    return { content: [{ type: 'resource', resource }] }
  }
  const value = isJsonMedia(essenceOf(stored)) ? parseJson(stored.text) : undefined
  if (value === undefined) return { content: [{ type: 'text', text: stored.text }] }
  return isJsonObject(value) ? structured(stored.text, value) : wrapped(stored.text, value)
}

/** Numbers stay in the text as they were written. */
function structured(text: string, structuredContent: JsonObject): JsonObject {
  return { content: [{ type: 'text', text }], structuredContent }
}

/** A list, or a single value: `structuredContent` is an object in every revision before 2026-07-28. */
function wrapped(text: string, value: Json): JsonObject {
  const member = Array.isArray(value) ? 'items' : 'value'
  return structured(`{"${member}":${text}}`, { [member]: value })
}

export interface ProblemOptions {
  readonly charged: Charged
  readonly extra?: JsonObject
  readonly meta?: JsonObject
}

/** The problem of HTTP as a result: models read it and correct their call. */
export function problem(
  code: ErrorCode,
  detail: string,
  { charged, extra, meta = {} }: ProblemOptions,
): ToolReply {
  const { status } = ERRORS[code]
  return { ...refused(status, { ...problemMembers(code, detail, charged), ...extra }, meta), code, detail }
}

/** A failure of the work. */
export function failed(
  failure: Failure,
  { charged, ...refund }: ChargeMembers = NOT_CHARGED,
  meta: JsonObject = {},
): ToolReply {
  const { code, detail, extra, retryAfter } = failure
  const seconds = retryAfter === undefined ? undefined : Math.max(1, Math.ceil(retryAfter))
  const reply = problem(code, detail, {
    charged,
    extra: compact({ ...extra, ...refund, retry_after: seconds }),
    meta,
  })
  const cause = upstreamCauseOf(failure)
  return { ...reply, detail: loggedDetail(failure), ...(cause === undefined ? {} : { cause }) }
}

/** The 422 of HTTP. */
export function invalid(
  errors: readonly ValidationError[],
  charge = NOT_CHARGED,
  meta: JsonObject = {},
): ToolReply {
  const detail = errors.map(({ loc, ctx, ...error }) => compact({ ...error, loc: [...loc], ctx }))
  const code = 'parameters_invalid'
  const { hint, retryable } = ERRORS[code]
  return { ...refused(422, { detail, code, hint, ...charge, retryable }, meta), code }
}

/** Byte for byte the same in both places: clients read either. */
export function refused(status: number, structuredContent: JsonObject, meta: JsonObject): ToolReply {
  const content = [{ type: 'text', text: JSON.stringify(structuredContent) }]
  return { status, result: withMeta({ isError: true, structuredContent, content }, meta) }
}

function withMeta(result: JsonObject, meta: JsonObject): JsonObject {
  return Object.keys(meta).length === 0 ? result : { ...result, _meta: meta }
}
