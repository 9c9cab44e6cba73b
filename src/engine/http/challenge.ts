import { ERRORS, type ErrorCode, type ValidationError } from '../errors.ts'
import type { Route } from '../catalog/catalog.ts'
import { compact, type JsonObject } from '../json.ts'
import { digestArguments } from './execute.ts'
import type { Validated } from './parameters.ts'
import { problem, type Reply } from './reply.ts'
import { UNREADY, type Readiness } from './readiness.ts'
import type { RouteRequest } from './request.ts'
import type { WouldFail } from './unpaid.ts'

/** The 402 of a request: what it costs, and what would become of it. */
export function challenge(
  request: RouteRequest,
  code: ErrorCode,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  const { unpaid } = request.served
  if (unpaid === undefined) return problem(code, detail, { charged: 'no', headers })
  const { route, validate, readiness } = request.served
  const validated = validate(request.parameters)
  const scope =
    validated.kind === 'valid' ? scopeOf(route, digestArguments(route.operation, validated.args)) : 'none'
  const wouldFail = foresee(readiness, validated)
  return unpaid({ resource: request.resource, scope, code, detail, wouldFail, headers })
}

function foresee(readiness: Readiness, validated: Validated): WouldFail | undefined {
  const unready = UNREADY[readiness]
  if (unready !== undefined) return { status: ERRORS[unready.code].status, ...unready }
  if (validated.kind === 'valid') return undefined
  return { status: 422, code: 'parameters_invalid', detail: validated.errors.map(asJson) }
}

function asJson({ loc, msg, type, input, ctx }: ValidationError): JsonObject {
  return compact({ type, loc: [...loc], msg, input: input ?? null, ctx })
}

/** What a payment can be bound to: one operation with its arguments, however they were spelled. */
export function scopeOf({ operation }: Route, digest: string): string {
  return `${operation.id}:${digest}`
}
