import { ERRORS } from '../errors.ts'
import type { ValidationError } from '../catalog/validation-error.ts'
import { examplePath, type Route } from '../catalog/catalog.ts'
import { asciiJson, compact, type Json, type JsonObject } from '../json.ts'
import { digestArguments, scopeOf } from '../purchase/execution.ts'
import type { RawParameters, Validated, Validator } from '../catalog/validator.ts'
import { UNREADY, type Readiness } from '../purchase/execution.ts'

/** What a 402 says of the request itself. */
export interface Foresight {
  /** Operation and arguments as a digest: what a payment can be bound to; `none` when the arguments are not valid. */
  readonly scope: string
  /** `{status, code, detail}` as JSON when the request would fail even if it were paid for. */
  readonly wouldFail: string | undefined
  /** Query parameters that the route does not have, as JSON; undefined when there are none. */
  readonly ignored: string | undefined
  /** Absolute URL of what is offered. */
  readonly resource: string
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
  readonly #baseUrl: string
  readonly #known = new Map<string, Foresight>()

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl
  }

  of(asked: Asked): Foresight {
    const key = `${asked.resource}?${asked.parameters.query}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const toPublicError = foresee(asked, this.#baseUrl)
    if (key.length > LONGEST) return toPublicError
    for (const oldest of this.#known.keys()) {
      if (this.#known.size < KEPT) break
      this.#known.delete(oldest)
    }
    this.#known.set(key, toPublicError)
    return toPublicError
  }
}

function foresee(asked: Asked, baseUrl: string): Foresight {
  const { route, validate, readiness } = asked.served
  const validated = validate(asked.parameters)
  const resource = resourceOf(asked, validated, baseUrl)
  const scope =
    validated.kind === 'valid'
      ? scopeOf(route.operation, digestArguments(route.operation, validated.args))
      : 'none'
  const ignored = ignoredOf(validated)
  const unready = UNREADY[readiness]
  if (unready !== undefined) {
    return {
      scope,
      resource,
      ignored,
      wouldFail: asciiJson({ status: ERRORS[unready.code].status, ...unready }),
    }
  }
  if (validated.kind === 'valid') return { scope, resource, ignored, wouldFail: undefined }
  const detail: Json = validated.errors.map(asJson)
  return {
    scope,
    resource,
    ignored,
    wouldFail: asciiJson({ status: 422, code: 'parameters_invalid', detail }),
  }
}

/**
 * The path that was asked for; where its values cannot be, as when a prober asks for the template itself, the catalog's
 * example, for an index that lists what it met would send buyers to a path that never answers.
 */
function resourceOf({ resource, served: { route } }: Asked, validated: Validated, baseUrl: string): string {
  const misread =
    validated.kind === 'invalid' && validated.errors.some(({ loc: [where] }) => where === 'path')
  return misread ? baseUrl + examplePath(route) : resource
}

function ignoredOf(validated: Validated): string | undefined {
  if (validated.kind === 'invalid' || validated.ignored === undefined) return undefined
  const ignored = validated.ignored.map(({ name, suggestion }) => compact({ name, did_you_mean: suggestion }))
  return asciiJson(ignored)
}

function asJson({ loc, msg, type, input, ctx }: ValidationError): JsonObject {
  return compact({ type, loc: [...loc], msg, input: input ?? null, ctx })
}
