import { isJsonObject } from '../base/json.ts'
import type { List, Parameter } from './catalog.ts'
import type { DeclaredParameter } from './schema.ts'
import { valueOf } from './validator.ts'

/** Longest text of a parameter unless the catalog sets another limit. */
const LONGEST_TEXT = 2000

/** A declared parameter with its defaults filled in. */
export function compileParameter(
  name: string,
  place: Parameter['in'],
  declared: DeclaredParameter,
): Parameter {
  const { default: otherwise, example } = declared
  const parameter: Omit<Parameter, 'values'> = {
    name,
    in: place,
    type: declared.type,
    required: place === 'path' || declared.required === true,
    description: declared.description,
    default: otherwise,
    example,
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
    isIdempotencyKey: declared.idempotency_key === true,
  }
  const values = {
    default: otherwise === undefined ? undefined : valueOf(parameter, otherwise),
    example: example === undefined ? undefined : valueOf(parameter, example),
  }
  return { ...parameter, values }
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

/** Whether values of one parameter can be passed to a handler as another. */
export function isPassable(from: Parameter, to: Parameter): boolean {
  if (from.type === to.type) return true
  return from.type === 'integer' && (to.type === 'number' || to.list?.items === 'integer')
}

export function isOfType(type: Parameter['type'], value: unknown): boolean {
  if (type === 'object') return isJsonObject(value)
  return type === 'integer' ? Number.isInteger(value) : typeof value === type
}
