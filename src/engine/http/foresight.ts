import { ERRORS, type ValidationError } from '../errors.ts'
import type { Route } from '../catalog/catalog.ts'
import { asciiJson, compact, type Json, type JsonObject } from '../json.ts'
import { digestArguments } from './digest.ts'
import type { RawParameters, Validator } from './parameters.ts'
import { UNREADY, type Readiness } from './readiness.ts'

/** What a 402 says of the request itself. */
export interface Foresight {
  /** Operation and arguments as a digest: what a payment can be bound to; `none` when the arguments are not valid. */
  readonly scope: string
  /** `{status, code, detail}` as JSON when the request would fail even if it were paid for. */
  readonly wouldFail: string | undefined
}

interface Asked {
  readonly served: { readonly route: Route; readonly validate: Validator; readonly readiness: Readiness }
  readonly parameters: RawParameters
  /** Absolute URL of the concrete path. */
  readonly resource: string
}

/** Bounds what is kept, whatever is asked. */
const KEPT = 1_000
const LONGEST = 256

/**
 * The foresight of every request, each worked out once: before they pay, crawlers and buyers ask what others have asked,
 * and within one revision the answer is the same. The oldest is forgotten first.
 */
export class Foresights {
  readonly #known = new Map<string, Foresight>()

  of(asked: Asked): Foresight {
    const key = `${asked.resource}?${asked.parameters.query}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const foreseen = foresee(asked)
    if (key.length > LONGEST) return foreseen
    for (const oldest of this.#known.keys()) {
      if (this.#known.size < KEPT) break
      this.#known.delete(oldest)
    }
    this.#known.set(key, foreseen)
    return foreseen
  }
}

function foresee({ served: { route, validate, readiness }, parameters }: Asked): Foresight {
  const validated = validate(parameters)
  const scope =
    validated.kind === 'valid' ? scopeOf(route, digestArguments(route.operation, validated.args)) : 'none'
  const unready = UNREADY[readiness]
  if (unready !== undefined) {
    return { scope, wouldFail: asciiJson({ status: ERRORS[unready.code].status, ...unready }) }
  }
  if (validated.kind === 'valid') return { scope, wouldFail: undefined }
  const detail: Json = validated.errors.map(asJson)
  return { scope, wouldFail: asciiJson({ status: 422, code: 'parameters_invalid', detail }) }
}

function asJson({ loc, msg, type, input, ctx }: ValidationError): JsonObject {
  return compact({ type, loc: [...loc], msg, input: input ?? null, ctx })
}

/** What a payment can be bound to: one operation with its arguments, however they were spelled. */
export function scopeOf({ operation }: Route, digest: string): string {
  return `${operation.id}:${digest}`
}
