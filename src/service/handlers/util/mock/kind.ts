import type { Faker } from '@faker-js/faker'
import type { Json, JsonObject } from 'ratecard/handler'

/** One kind of mock data: how a row looks (JSON Schema) and how to make the row at `index`, counted from 0. */
export interface Kind {
  readonly schema: JsonObject
  readonly row: (faker: Faker, index: number) => JsonObject
}

/** The compiler holds schema and rows to the same fields. */
export function kind<Field extends string>(
  fields: Readonly<Record<Field, JsonObject>>,
  row: (faker: Faker, index: number) => Readonly<Record<Field, Json>>,
): Kind {
  return { schema: record(fields), row }
}

export function record(properties: JsonObject): JsonObject {
  return { type: 'object', properties, required: Object.keys(properties) }
}

export function listOf(items: JsonObject): JsonObject {
  return { type: 'array', items }
}

export function oneOf<Choice extends string>(choices: readonly Choice[]): JsonObject {
  return { type: 'string', enum: choices }
}

export const TEXT = { type: 'string' }
export const WHOLE = { type: 'integer' }
export const NUMBER = { type: 'number' }
export const FLAG = { type: 'boolean' }
export const UUID = { type: 'string', format: 'uuid' }
export const EMAIL = { type: 'string', format: 'email' }
export const URI = { type: 'string', format: 'uri' }
export const IPV4 = { type: 'string', format: 'ipv4' }
export const DATE = { type: 'string', format: 'date' }
export const TIME = { type: 'string', format: 'date-time' }
/** USD with two decimals; `multipleOf` would fail in validators that divide floats. */
export const MONEY = { type: 'number', minimum: 0 }
