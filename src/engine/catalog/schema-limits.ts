import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'

/** Whether a schema allows this type and no other. */
export function isOnly(type: string, given: Json | undefined): boolean {
  const [first, second] = listOf(given)
  return first === type && second === undefined
}

export function listOf(value: Json | undefined): readonly Json[] {
  return [value ?? []].flat()
}

/**
 * Types, values, limits and members of a schema, including those of schemas it refers to or combines (`$ref`,
 * `allOf`). For `anyOf` and `oneOf`: the limits that hold in every form, and for a member, in every form that has
 * it.
 */
export function limitsOf(schema: Json, whole = schema, within: readonly Json[] = []): JsonObject {
  // A schema that contains itself without a member in between adds nothing.
  if (!isJsonObject(schema) || within.includes(schema)) return {}
  const read = (each: Json): JsonObject => limitsOf(each, whole, [...within, schema])
  const { $ref: reference, allOf, anyOf, oneOf, const: only, ...own } = schema
  return [
    only === undefined ? own : { ...own, enum: [only] },
    ...(typeof reference === 'string' ? [read(targetOf(reference, whole))] : []),
    ...listOf(allOf).map(read),
    ...[anyOf, oneOf].flatMap((forms) => (forms === undefined ? [] : [eitherOf(listOf(forms).map(read))])),
  ].reduce(bothOf)
}

/** The target of a reference within the same document. */
function targetOf(reference: string, whole: Json): Json {
  if (!/^#(?:$|\/)/.test(reference)) return {}
  return reference
    .split('/')
    .slice(1)
    .map((part) => decodeURIComponent(part).replace(/~1/g, '/').replace(/~0/g, '~'))
    .reduce<Json>((value, part) => (isJsonObject(value) ? value[part] : undefined) ?? {}, whole)
}

const MOST: readonly string[] = ['maximum', 'maxLength', 'maxItems']
const LEAST: readonly string[] = ['minimum', 'minLength', 'minItems']

function bothOf(one: JsonObject, other: JsonObject): JsonObject {
  const shared = Object.entries(one).flatMap(([key, mine]): [string, Json][] => {
    const value = other[key]
    return value === undefined ? [] : [[key, valueOfBoth(key, mine, value)]]
  })
  return { ...other, ...one, ...Object.fromEntries(shared) }
}

function valueOfBoth(key: string, mine: Json, value: Json): Json {
  if (MOST.includes(key)) return Math.min(Number(mine), Number(value))
  if (LEAST.includes(key)) return Math.max(Number(mine), Number(value))
  const [a, b] = [listOf(mine), listOf(value)]
  switch (key) {
    case 'type':
      return [...new Set([...a, ...b])].filter((each) => hasType(a, each) && hasType(b, each))
    case 'enum':
      return a.filter((each) => b.includes(each))
    case 'required':
      return [...a, ...b]
    case 'properties':
      return combined([mine, value], 'allOf')
    default:
      return key === 'items' ? { allOf: [mine, value] } : mine
  }
}

function eitherOf(forms: readonly JsonObject[]): JsonObject {
  const others = forms.filter((form) => !isNull(form))
  const [first = {}, ...rest] = others
  // The default would depend on the form.
  if (new Set(others.map((form) => JSON.stringify(form['default']))).size > 1) return {}
  const orNull = others.length < forms.length
  const shared = Object.keys(first)
    .filter((key) => rest.every((form) => form[key] !== undefined))
    .map((key): [string, Json] => {
      const values = others.map((form) => form[key] ?? null)
      return [key, valueOfEither(key, values, orNull)]
    })
  const properties = others.map((form) => form['properties'] ?? {})
  return { ...Object.fromEntries(shared), properties: combined(properties, 'anyOf') }
}

function valueOfEither(key: string, values: readonly Json[], orNull: boolean): Json {
  if (MOST.includes(key)) return Math.max(...values.map(Number))
  if (LEAST.includes(key)) return Math.min(...values.map(Number))
  const all = [...new Set(values.flatMap(listOf))]
  switch (key) {
    case 'type': {
      const types = all.filter((each) => each !== 'integer' || !all.includes('number'))
      return orNull ? [...types, 'null'] : types
    }
    case 'enum':
      return orNull ? [...all, null] : all
    case 'required':
      return all.filter((each) => values.every((list) => listOf(list).includes(each)))
    default:
      return key === 'items' ? { anyOf: values } : (values[0] ?? null)
  }
}

function isNull({ type, enum: values }: JsonObject): boolean {
  return isOnly('null', type) || (values !== undefined && listOf(values).every((each) => each === null))
}

function hasType(types: readonly Json[], type: Json): boolean {
  return types.includes(type) || (type === 'integer' && types.includes('number'))
}

/** The members of all schemas; a member of several combines theirs. A form without it counts it as null. */
function combined(properties: readonly Json[], by: 'allOf' | 'anyOf'): JsonObject {
  const all = properties.filter(isJsonObject)
  const names = new Set(all.flatMap((each) => Object.keys(each)))
  const otherwise = by === 'anyOf' ? [{ type: 'null' }] : []
  const schemas = (name: string): Json[] =>
    all.flatMap((each) => (Object.hasOwn(each, name) ? [each[name] ?? {}] : otherwise))
  return Object.fromEntries(Array.from(names, (name) => [name, { [by]: schemas(name) }]))
}
