import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import type { Body, Parameter, Scalar } from './catalog.ts'
import { compileParameter } from './parameter.ts'
import { isOnly, limitsOf, listOf } from './schema-limits.ts'

/** A member of a body with a single schema, as a parameter. What its schema does not limit is unlimited. */
export type Member = Parameter & { readonly schema: JsonObject }

export function membersOf(body: Body | undefined): Member[] {
  if (body?.form !== 'whole' || body.schema === undefined) return []
  const whole = body.schema
  const { type, required, properties } = limitsOf(whole)
  // Without "type: object" a body of another type is valid too, and has no members.
  const needed = isOnly('object', type) ? listOf(required) : []
  // The name "body" refers to the whole body.
  return Object.entries(isJsonObject(properties) ? properties : {})
    .filter(([name]) => name !== 'body')
    .map(([name, declared]) => memberOf(name, limitsOf(declared, whole), needed.includes(name), whole))
}

/** Whether a value has several types, or an unknown one: it cannot be counted then. */
export function isOfSeveralTypes({ type }: JsonObject): boolean {
  return listOf(type).filter((each) => each !== 'null').length !== 1
}

function memberOf(name: string, schema: JsonObject, needed: boolean, whole: JsonObject): Member {
  const { type, enum: values, default: usual, items = {} } = schema
  const types = listOf(type)
  const [first, second] = types.filter((each) => each !== 'null')
  const known = second === undefined ? first : undefined
  const isText = known === 'array' && isOnly('string', limitsOf(items, whole)['type'])
  const mayBeNull = values === undefined ? types.length !== 1 : listOf(values).includes(null)
  const limit = <Otherwise>(key: string, otherwise: Otherwise): number | Otherwise => {
    const value = schema[key]
    return typeof value === 'number' ? value : otherwise
  }
  const list = {
    items: 'string',
    minItems: limit('minItems', 0),
    maxItems: limit('maxItems', Infinity),
  } as const
  return {
    ...compileParameter(name, 'body', {
      type: isText ? 'string' : (SCALARS.find((each) => each === known) ?? 'object'),
      required: needed && !mayBeNull,
    }),
    schema,
    default: isScalar(usual) ? usual : undefined,
    enum: values === undefined ? undefined : listOf(values).filter(isScalar),
    minimum: limit('minimum', undefined),
    maximum: limit('maximum', undefined),
    minLength: limit('minLength', undefined),
    maxLength: limit('maxLength', Infinity),
    list: known === 'array' ? { ...list, minimum: undefined, maximum: undefined } : undefined,
  }
}

const SCALARS = ['string', 'integer', 'number', 'boolean'] as const

function isScalar(value: Json | undefined): value is Scalar {
  return ['string', 'number', 'boolean'].includes(typeof value)
}
