import type { ErrorObject } from 'ajv/dist/2020.js'
import type { Json, JsonObject } from '../base/json.ts'
import type { List, Parameter, Scalar } from './catalog.ts'
import { NO_SEPARATORS } from './input-schema.ts'
import { didYouMean } from './issue.ts'

/** One item of the 422 body, in the format of `HTTPValidationError`. */
export interface ValidationError {
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly type: string
  /** The value that was sent; null when there was none. */
  readonly input?: string | null
  readonly ctx?: JsonObject
}

/** How much of a name that nobody has declared is looked at. */
export const LONGEST_NAME = 64

/** Describes an error of the schema of a whole body. */
export function describeBody({ keyword, params, instancePath, message }: ErrorObject): ValidationError {
  const missing: unknown = params['missingProperty']
  const steps = instancePath
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step))
  const loc = ['body', ...steps]
  if (keyword === 'required')
    return { type: 'missing', loc: [...loc, String(missing)], msg: 'Field required', input: null }
  return { type: 'value_error', loc, msg: message ?? 'not allowed', ctx: { error: {} } }
}

/** Where the values of a call come from. */
export interface Origin {
  /** First element of the location of an error; absent: that of the parameter. */
  readonly place?: string
  /** Whether values of this parameter have their type already, so that texts are not parsed. */
  readonly isTyped: (parameter: Parameter | undefined) => boolean
}

type Said = Pick<ValidationError, 'type' | 'msg' | 'ctx'>

/** Describes an error of JSON Schema as an item of the 422 body. */
export function describe(
  parameters: readonly Parameter[],
  given: JsonObject,
  error: ErrorObject,
  { place: origin, isTyped }: Origin,
): ValidationError {
  const { keyword, params, instancePath } = error
  const [, within = '', index] = instancePath.split('/')
  const name = String(params['missingProperty'] ?? params['additionalProperty'] ?? within)
  const parameter = parameters.find((each) => each.name === name)
  const typed = isTyped(parameter)
  const place = origin ?? parameter?.in ?? 'query'
  const loc = typed && index !== undefined ? [place, name, Number(index)] : [place, name]
  if (keyword === 'required') return { type: 'missing', loc, msg: 'Field required', input: null }
  if (parameter === undefined) {
    const names = parameters.map((each) => each.name)
    const guess = didYouMean(name.slice(0, LONGEST_NAME), names)
    return { type: 'extra_forbidden', loc, msg: `Extra inputs are not permitted${guess}` }
  }
  const said = say(parameter, error, typed)
  const silent = typed && said.ctx === undefined
  return { ...said, loc, ...(silent ? {} : { input: inputOf(given[name]) }) }
}

function inputOf(value: Json | undefined): string | null {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null
}

function say(parameter: Parameter, error: ErrorObject, typed: boolean): Said {
  const { keyword, params } = error
  const { name, list, format } = parameter
  const limit = Number(params['limit'])
  if (list !== undefined && !typed) return valueError(`${name} ${listRule(parameter, list, error)}`)
  switch (keyword) {
    case 'type':
      return typeError(String(params['type']), typed)
    case 'minimum':
      return bound('greater_than_equal', `greater than or equal to ${limit}`, { ge: limit })
    case 'maximum':
      return bound('less_than_equal', `less than or equal to ${limit}`, { le: limit })
    case 'exclusiveMinimum':
      return bound('greater_than', `greater than ${limit}`, { gt: limit })
    case 'minLength':
      return {
        type: 'string_too_short',
        msg: `String should have at least ${count(limit, 'character')}`,
        ctx: { min_length: limit },
      }
    case 'maxLength':
      return {
        type: 'string_too_long',
        msg: `String should have at most ${count(limit, 'character')}`,
        ctx: { max_length: limit },
      }
    case 'minItems':
      return { type: 'too_short', msg: `List should have at least ${count(limit, 'item')}` }
    case 'maxItems':
      return { type: 'too_long', msg: `List should have at most ${count(limit, 'item')}` }
    case 'enum':
      return bound('enum', quoted(parameter.enum ?? []), { expected: quoted(parameter.enum ?? []) })
    case 'pattern': {
      if (format === 'country') return valueError(`${name} must be an ISO 3166-1 alpha-2 code`)
      if (list !== undefined) return valueError(`each item of ${name} must be a value ${NO_SEPARATORS}`)
      const pattern = String(params['pattern'])
      return {
        type: 'string_pattern_mismatch',
        msg: `String should match pattern '${pattern}'`,
        ctx: { pattern },
      }
    }
    case 'format':
      return valueError(`${name} must be YYYY-MM-DD`)
    case 'joinedLength':
      return valueError(`${name} must have at most ${parameter.maxLength} characters`)
    default:
      return valueError(`${name} is not valid`)
  }
}

function bound(type: string, rule: string, ctx: JsonObject): Said {
  return { type, msg: `Input should be ${rule}`, ctx }
}

function valueError(sentence: string): Said {
  return { type: 'value_error', msg: sentence, ctx: { error: {} } }
}

const TYPES: Readonly<Record<string, readonly [code: string, kind: string, parsing: string]>> = {
  string: ['string', 'string', ''],
  integer: ['int', 'integer', 'unable to parse string as an integer'],
  number: ['float', 'number', 'unable to parse string as a number'],
  boolean: ['bool', 'boolean', 'unable to interpret input'],
  array: ['list', 'list', ''],
  object: ['dict', 'dictionary', ''],
}

function typeError(type: string, typed: boolean): Said {
  const [code, kind, parsing] = TYPES[type] ?? ['value', 'value', '']
  const msg = `Input should be a valid ${kind}`
  return typed ? { type: `${code}_type`, msg } : { type: `${code}_parsing`, msg: `${msg}, ${parsing}` }
}

function quoted(values: readonly Scalar[]): string {
  const texts = values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value)))
  const last = texts.pop() ?? ''
  return texts.length === 0 ? last : `${texts.join(', ')} or ${last}`
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

/** The violated rule of a comma-separated list, as a phrase without subject. */
function listRule({ format, maxLength }: Parameter, list: List, { keyword }: ErrorObject): string {
  if (keyword === 'minItems') return `must list at least ${count(list.minItems, 'value')}`
  if (keyword === 'maxItems') return `must list at most ${count(list.maxItems, 'value')}`
  if (keyword === 'joinedLength' || keyword === 'maxLength')
    return `must have at most ${maxLength} characters`
  if (format === 'country') return 'must list ISO 3166-1 alpha-2 country codes'
  if (keyword === 'pattern') return `must list values ${NO_SEPARATORS}`
  const { minimum, maximum } = list
  if (minimum !== undefined && maximum !== undefined)
    return `must list whole numbers from ${minimum} to ${maximum}`
  if (minimum !== undefined) return `must list whole numbers of at least ${minimum}`
  return `must list whole numbers${maximum === undefined ? '' : ` of at most ${maximum}`}`
}

const KINDS = {
  string: 'a text: quote it',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'a JSON object, written as a text',
} as const

/** Why a value in the catalog does not fit its parameter, as a phrase without subject. */
export function ruleOf(parameter: Parameter, value: Scalar, error: ErrorObject): string {
  const { type, list, format } = parameter
  const limit = Number(error.params['limit'])
  switch (error.keyword) {
    case 'enum':
      return `must be one of ${(parameter.enum ?? []).join(', ')}`
    case 'minLength':
      return `must have at least ${limit} characters`
    case 'maxLength':
      return `must have at most ${limit} characters`
    case 'format':
      return 'must be a date: YYYY-MM-DD'
  }
  if (list !== undefined && error.params['type'] !== 'array') return listRule(parameter, list, error)
  switch (error.keyword) {
    case 'pattern':
      return format === 'country'
        ? 'must be an ISO 3166-1 alpha-2 code, such as US'
        : `must match ${parameter.pattern}`
    case 'minimum':
      return `must be at least ${limit}`
    case 'exclusiveMinimum':
      return `must be greater than ${limit}`
    case 'maximum':
      return `must be at most ${limit}`
  }
  const numeric = typeof value === 'string' && value !== '' && Number.isFinite(Number(value))
  const unquoted = (type === 'integer' || type === 'number') && numeric ? ', without quotes' : ''
  return `must be ${KINDS[type]}${unquoted}`
}
