import { ERRORS, type Charged, type ErrorCode, type Failure } from '../errors.ts'
import type { ValidationError } from '../catalog/validation-error.ts'
import { compact, isJsonObject, type Json, type JsonObject } from '../json.ts'
import type { StoredAnswer } from '../ledger/payment-record.ts'
import { problemMembers } from '../purchase/request.ts'

/** What a call of a tool is answered, as a value; `status` is what HTTP would have said. */
export interface ToolReply {
  readonly status: number
  readonly result: JsonObject
  /** Why it is no answer. */
  readonly code?: ErrorCode
}

/** An answer in the form it is stored in. */
export function answered(stored: StoredAnswer, meta: JsonObject): ToolReply {
  return { status: 200, result: withMeta({ ...contentOf(stored) }, meta) }
}

function contentOf(stored: StoredAnswer): JsonObject {
  if (stored.kind === 'json') return told(stored.value)
  if (stored.kind === 'bytes') {
    const [mimeType = '', data] = [stored.type.split(';')[0], Buffer.from(stored.bytes).toString('base64')]
    const type = ['image', 'audio'].find((each) => mimeType.startsWith(`${each}/`))
    if (type !== undefined) return { content: [{ type, data, mimeType }] }
    const resource = { uri: `data:${mimeType}`, mimeType, blob: data }
    return { content: [{ type: 'resource', resource }] }
  }
  const value = parseJson(stored.text)
  return value === undefined ? { content: [{ type: 'text', text: stored.text }] } : told(value)
}

/** Older revisions know objects only. */
function told(value: Json): JsonObject {
  const structuredContent = isJsonObject(value) ? value : { items: value }
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent }
}

function parseJson(text: string): JsonObject | readonly Json[] | undefined {
  try {
    const value: Json = JSON.parse(text)
    return Array.isArray(value) || isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
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
  return { ...refused(status, { ...problemMembers(code, detail, charged), ...extra }, meta), code }
}

/** A failure of the work. */
export function failed(
  { code, detail, extra, retryAfter }: Failure,
  charged: Charged,
  meta: JsonObject,
): ToolReply {
  const seconds = retryAfter === undefined ? undefined : Math.max(1, Math.ceil(retryAfter))
  return problem(code, detail, { charged, extra: compact({ ...extra, retry_after: seconds }), meta })
}

/** The 422 of HTTP. */
export function invalid(
  errors: readonly ValidationError[],
  charged: Charged = 'no',
  meta: JsonObject = {},
): ToolReply {
  const detail = errors.map(({ loc, ctx, ...error }) => compact({ ...error, loc: [...loc], ctx }))
  return { ...refused(422, { detail, charged }, meta), code: 'parameters_invalid' }
}

/** Byte for byte the same in both places: clients read either. */
export function refused(status: number, structuredContent: JsonObject, meta: JsonObject): ToolReply {
  const content = [{ type: 'text', text: JSON.stringify(structuredContent) }]
  return { status, result: withMeta({ isError: true, structuredContent, content }, meta) }
}

function withMeta(result: JsonObject, meta: JsonObject): JsonObject {
  return Object.keys(meta).length === 0 ? result : { ...result, _meta: meta }
}
