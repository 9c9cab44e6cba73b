import type { Argument } from '../handler.ts'
import { compact, isJsonObject, type JsonObject } from '../json.ts'
import type { List, Parameter, Scalar } from './catalog.ts'
import type { DeclaredParameter } from './schema.ts'

/** Longest text a parameter takes unless the catalog says otherwise. */
const LONGEST_TEXT = 2000

/** A declared parameter with its defaults filled in. */
export function compileParameter(
  name: string,
  place: 'path' | 'query',
  declared: DeclaredParameter,
): Parameter {
  return {
    name,
    in: place,
    type: declared.type,
    required: place === 'path' || declared.required === true,
    description: declared.description,
    default: declared.default,
    example: declared.example,
    enum: declared.enum,
    aliases: declared.aliases ?? {},
    minimum: declared.minimum,
    maximum: declared.maximum,
    exclusiveMinimum: declared.exclusiveMinimum,
    minLength: declared.minLength,
    maxLength: declared.type === 'string' ? (declared.maxLength ?? LONGEST_TEXT) : undefined,
    pattern: declared.pattern,
    format: declared.format,
    list: declared.list === undefined ? undefined : compileList(declared.list),
  }
}

function compileList(list: NonNullable<DeclaredParameter['list']>): List {
  return {
    items: list.items ?? 'string',
    minItems: list.min_items ?? 1,
    maxItems: list.max_items,
    minimum: list.minimum,
    maximum: list.maximum,
  }
}

/** JSON Schema (2020-12) of one parameter's value as it travels: what documents print and validation enforces. */
export function parameterSchema(parameter: Parameter): JsonObject {
  return compact({
    type: parameter.type,
    description: parameter.description,
    default: parameter.default,
    enum: parameter.enum,
    minimum: parameter.minimum,
    maximum: parameter.maximum,
    exclusiveMinimum: parameter.exclusiveMinimum,
    minLength: parameter.minLength,
    maxLength: parameter.maxLength,
    pattern:
      parameter.pattern ?? (parameter.list === undefined ? PATTERNS[parameter.format ?? 'none'] : undefined),
    format: parameter.format === 'date' && !isOptionalText(parameter) ? 'date' : undefined,
    examples: parameter.example === undefined ? undefined : [parameter.example],
  })
}

/** Formats as plain patterns, so that any JSON Schema reader can check them; the empty text stays allowed by default. */
const PATTERNS: Readonly<Record<string, string | undefined>> = {
  country: '^[A-Z]{2}$',
  none: undefined,
}

/** A text whose default is empty: the empty text means "not given" and no further rule is asked of it. */
export function isOptionalText(parameter: Parameter): boolean {
  return (
    parameter.type === 'string' &&
    (parameter.default === '' || (!parameter.required && parameter.default === undefined))
  )
}

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/

/** A calendar day that exists, 1970 to 2100. */
export function isDate(text: string): boolean {
  const match = DATE.exec(text)
  if (match === null) return false
  const [, year, month, day] = match.map(Number)
  if (year === undefined || month === undefined || day === undefined || year < 1970 || year > 2100)
    return false
  const date = new Date(Date.UTC(year, month - 1, day))
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day
}

/** Why a list cannot be read, or its items. */
export type ReadList =
  | { readonly kind: 'items'; readonly items: readonly string[] | readonly number[] }
  | { readonly kind: 'fault'; readonly sentence: string }

/** Reads a comma-separated list (`;`, `|` and spaces separate too); repeated items count once. */
export function readList(parameter: Parameter, list: List, text: string): ReadList {
  const { name } = parameter
  const parts = [
    ...new Set(
      text
        .split(/[,;|\s]+/)
        .filter((part) => part !== '')
        .map((part) => normalizeItem(parameter, part)),
    ),
  ]
  if (parts.length < list.minItems) return fault(`${name} must list at least ${plural(list.minItems)}`)
  if (parts.length > list.maxItems) return fault(`${name} must list at most ${plural(list.maxItems)}`)
  const strange = parts.find((part) => parameter.format === 'country' && !/^[A-Z]{2}$/.test(part))
  if (strange !== undefined) return fault(`${name} must list ISO 3166-1 alpha-2 country codes`)
  if (list.items === 'string') return { kind: 'items', items: parts }
  const wrong = parts.find((part) => !isWithin(list, part))
  if (wrong !== undefined) return fault(`${name} must list whole numbers${range(list)}`)
  return { kind: 'items', items: [...new Set(parts.map(Number))] }
}

function isWithin(list: List, part: string): boolean {
  if (!/^[+-]?\d{1,15}$/.test(part)) return false
  const value = Number(part)
  return value >= (list.minimum ?? -Infinity) && value <= (list.maximum ?? Infinity)
}

function range({ minimum, maximum }: List): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`
  if (minimum !== undefined) return ` of at least ${minimum}`
  return maximum === undefined ? '' : ` of at most ${maximum}`
}

function fault(sentence: string): ReadList {
  return { kind: 'fault', sentence }
}

function plural(count: number): string {
  return count === 1 ? '1 value' : `${count} values`
}

function normalizeItem(parameter: Parameter, part: string): string {
  return parameter.format === 'country' ? normalizeCountry(part) : part
}

/** Upper-cased ISO 3166-1 alpha-2; UK is understood as GB. */
export function normalizeCountry(text: string): string {
  // Letters of other alphabets may become two ASCII ones in upper case: they name no country.
  const code = text.trim().replace(/[a-z]/g, (letter) => letter.toUpperCase())
  return code === 'UK' ? 'GB' : code
}

/** The handler's argument of a value that has passed its checks; a number given for a list is its one item. */
export function toArgument(parameter: Parameter, value: Scalar): Argument {
  if (parameter.type === 'object') return readObject(value) ?? {}
  if (parameter.list === undefined || typeof value === 'boolean') return value
  const read = readList(parameter, parameter.list, String(value))
  return read.kind === 'items' ? read.items : []
}

/** A default or example of an object, which the catalog writes as JSON text; undefined when it is none. */
export function readObject(text: Scalar): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(String(text))
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Whether values of one parameter can be handed to a handler as another. */
export function isPassable(from: Parameter, to: Parameter): boolean {
  if (from.type === to.type) return true
  return from.type === 'integer' && (to.type === 'number' || to.list?.items === 'integer')
}

/**
 * Why a default, example or fixed argument does not fit its parameter, as a sentence without subject; undefined when
 * it does. The same rules as the parameter's JSON Schema, without compiling one for a single value.
 *
 * @example
 * misfit(days, 101) // 'must be at most 100'
 */
export function misfit(parameter: Parameter, value: Scalar): string | undefined {
  if (value === '' && isOptionalText(parameter)) return undefined
  if (typeof value === 'number' && parameter.list?.items === 'integer')
    return textMisfit(parameter, String(value))
  if (parameter.type === 'object')
    return readObject(value) === undefined ? 'must be a JSON object, written as a text' : undefined
  if (!isOfType(parameter.type, value)) return typeSentence(parameter.type, value)
  if (parameter.enum !== undefined && !parameter.enum.includes(value)) {
    return `must be one of ${parameter.enum.join(', ')}`
  }
  if (typeof value === 'number') return numberMisfit(parameter, value)
  return typeof value === 'string' ? textMisfit(parameter, value) : undefined
}

export function isOfType(type: Parameter['type'], value: unknown): boolean {
  if (type === 'object') return isJsonObject(value)
  return type === 'integer' ? Number.isInteger(value) : typeof value === type
}

const KINDS = {
  string: 'a text: quote it',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
} as const

function typeSentence(type: Parameter['type'], value: Scalar): string {
  const numeric = typeof value === 'string' && value !== '' && Number.isFinite(Number(value))
  const unquoted = (type === 'integer' || type === 'number') && numeric ? ', without quotes' : ''
  return `must be ${KINDS[type]}${unquoted}`
}

function numberMisfit(parameter: Parameter, value: number): string | undefined {
  const { minimum, maximum, exclusiveMinimum } = parameter
  if (minimum !== undefined && value < minimum) return `must be at least ${minimum}`
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) {
    return `must be greater than ${exclusiveMinimum}`
  }
  return maximum !== undefined && value > maximum ? `must be at most ${maximum}` : undefined
}

function textMisfit(parameter: Parameter, value: string): string | undefined {
  const { minLength, maxLength, pattern, format, list } = parameter
  // JSON Schema counts code points.
  const length = Array.from(value).length
  if (minLength !== undefined && length < minLength) return `must have at least ${minLength} characters`
  if (maxLength !== undefined && length > maxLength) return `must have at most ${maxLength} characters`
  if (pattern !== undefined && !new RegExp(pattern, 'u').test(value)) return `must match ${pattern}`
  if (format === 'date' && list === undefined && !isDate(value)) return 'must be a date: YYYY-MM-DD'
  if (format === 'country' && list === undefined && !/^[A-Z]{2}$/.test(value)) {
    return 'must be an ISO 3166-1 alpha-2 code, such as US'
  }
  if (list === undefined) return undefined
  const read = readList(parameter, list, value)
  return read.kind === 'fault' ? read.sentence.slice(parameter.name.length + 1) : undefined
}
