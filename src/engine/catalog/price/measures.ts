import type { Argument } from '../../handler.ts'
import { canonicalJson } from '../../base/json.ts'
import { isOnly, limitsOf } from '../schema-limits.ts'
import type { Body, Parameter } from '../catalog.ts'

/** A quantity that a price can depend on: everything that the catalog, the checks and the documents know of it. */
export interface Measure {
  /** Text for people who edit the catalog. */
  readonly description: string
  /** The values it counts, as messages name them. */
  readonly takes: string
  /** Undefined: this value cannot be counted. */
  readonly count: (value: Argument) => number | undefined
  /** The smallest count of a parameter that every call has. */
  readonly least: (parameter: Parameter) => number
  /** The largest count of a parameter. Infinity: no limit; undefined: it cannot be counted. */
  readonly most: (parameter: Parameter) => number | undefined
  /** The same for a whole body. Its canonical JSON may be longer than itself, and the body of a tool has no size. */
  readonly mostOfBody: (body: Body) => number | undefined
  readonly words: {
    /** One unit of this size, before `of` and the name of the parameter: `1,000 characters`. */
    readonly unit: (size: string) => string
    /** A call with this count, before the name of the parameter: `1,000 characters of`. */
    readonly call: (count: string) => string
  }
}

/** Most bytes of a code point in UTF-8. */
const LONGEST_CHARACTER = 4

/** The measures by their keys in the catalog. */
export const MEASURES = {
  items_of: {
    description: 'A parameter that is a list.',
    takes: 'a list, or a body whose schema has "type: array"',
    count: (value) => (Array.isArray(value) ? value.length : undefined),
    least: ({ list }) => list?.minItems ?? 0,
    most: ({ list }) => list?.maxItems,
    mostOfBody: ({ schema }) => {
      const { type, maxItems } = limitsOf(schema ?? {})
      if (!isOnly('array', type)) return undefined
      return typeof maxItems === 'number' ? maxItems : Infinity
    },
    words: counted('item', 'items'),
  },
  characters_of: {
    description: 'A text, in Unicode code points; body: a whole body of text.',
    takes: 'a text, a list of texts, or a whole body of text',
    count: (value) => {
      if (Array.isArray(value)) return value.reduce<number>((sum, each) => sum + codePoints(String(each)), 0)
      return typeof value === 'string' ? codePoints(value) : undefined
    },
    least: ({ minLength }) => minLength ?? 0,
    most: ({ type, list, in: place, maxLength = Infinity }) => {
      if (type !== 'string') return undefined
      // A list in a path or query is one text; an array of a body has limits for its items only.
      return list === undefined || place !== 'body' ? maxLength : list.maxItems * maxLength
    },
    mostOfBody: ({ kind, maxSize }) => (kind === 'text' ? maxSize : undefined),
    words: counted('character', 'characters'),
  },
  bytes_of: {
    description: 'A text or object, in bytes of UTF-8; body: the whole body.',
    takes: 'a text, an object, or a whole body',
    /** The bytes of a text in UTF-8, and of other values as RFC 8785 JSON. */
    count: (value) => {
      if (value instanceof Uint8Array) return value.length
      return Buffer.byteLength(typeof value === 'string' ? value : canonicalJson(value))
    },
    least: ({ minLength }) => minLength ?? 0,
    most: ({ type, list, maxLength = Infinity }) => {
      if (type === 'object') return Infinity
      return type === 'string' && list === undefined ? LONGEST_CHARACTER * maxLength : undefined
    },
    mostOfBody: ({ kind, maxSize }) => (kind === 'text' || kind === 'bytes' ? maxSize : Infinity),
    words: counted('byte', 'bytes'),
  },
  value_of: {
    description: 'A number.',
    takes: 'an integer or a number',
    count: (value) => (typeof value === 'number' ? value : undefined),
    least: ({ minimum = 0, enum: values }) =>
      Math.max(0, values === undefined ? minimum : Math.min(...values.map(Number))),
    most: ({ type, maximum = Infinity, enum: values }) => {
      if (type !== 'integer' && type !== 'number') return undefined
      return values === undefined ? maximum : Math.max(...values.map(Number))
    },
    mostOfBody: () => undefined,
    words: { unit: (size) => size, call: (count) => `${count} as` },
  },
} as const satisfies Readonly<Record<string, Measure>>

export type MeasureName = keyof typeof MEASURES

/** The measure of this name in a rule. Throws a TypeError when this version has none. */
export function measureOf(name: string): Measure {
  if (!isMeasureName(name)) throw new TypeError(`no measure is called ${name}`)
  return MEASURES[name]
}

export const MEASURE_NAMES = Object.keys(MEASURES).filter(isMeasureName)

function isMeasureName(name: string): name is MeasureName {
  return Object.hasOwn(MEASURES, name)
}

/** The keys of a rate that name what it counts, as JSON Schema. */
export const measureSchemas: {
  readonly [Name in MeasureName]?: {
    readonly type: 'string'
    readonly minLength: 1
    readonly description: string
  }
} = Object.fromEntries(
  Object.entries<Measure>(MEASURES).map(([name, { description }]) => [
    name,
    { type: 'string', minLength: 1, description },
  ]),
)

function counted(one: string, many: string): Measure['words'] {
  return {
    unit: (size) => (size === '1' ? one : `${size} ${many}`),
    call: (count) => `${count} ${many} of`,
  }
}

function codePoints(text: string): number {
  let found = 0
  for (const _ of text) found += 1
  return found
}
