import type { Argument } from '../../handler.ts'
import { parsePrice, toMicros, type Micros } from '../../base/money.ts'
import type { Binding, Body, Parameter } from '../catalog.ts'
import { bodyExample } from '../body.ts'
import { isOnly, limitsOf, type Member, membersOf } from '../body-members.ts'
import { toArgument } from '../validator.ts'
import {
  computePrice,
  type Choice,
  type Measure,
  MEASURES,
  type Place,
  type Price,
  type PriceRule,
  type Rate,
  toFine,
  tryRule,
  usageOf,
} from './rule.ts'
import type { DeclaredPriceRule, DeclaredRate } from '../schema.ts'
import type { Path, SourceDocument } from '../yaml-document.ts'

/** What the price of a route or a tool can depend on. */
export interface PriceInputs {
  /** Followed by the members of a body with a single schema. */
  readonly parameters: readonly (Parameter | Member)[]
  readonly body: Body | undefined
  readonly bindings: readonly Binding[]
}

export function priceInputs(
  parameters: readonly Parameter[],
  body: Body | undefined,
  bindings: readonly Binding[],
): PriceInputs {
  return { parameters: [...parameters, ...membersOf(body)], body, bindings }
}

/** The bindings of a tool without a route: each argument is the parameter of its name. */
export function bindAlike(parameters: readonly Parameter[]): Binding[] {
  return parameters.map(({ name }) => ({ kind: 'parameter', argument: name, parameter: name }))
}

/** Compiles a price from its source text, not from the number that YAML reads. Undefined: free. */
export function compilePrice(
  document: SourceDocument,
  at: Path,
  declared: DeclaredPriceRule | string | number | undefined,
  inputs: PriceInputs,
): Price | undefined {
  if (typeof declared === 'object') return compileRule(document, at, declared, inputs)
  const parsed = parsePrice(document.spelling(at) ?? '')
  return parsed.kind === 'price' ? parsed.value : undefined
}

function compileRule(
  document: SourceDocument,
  at: Path,
  declared: DeclaredPriceRule,
  inputs: PriceInputs,
): Price {
  const spelt = (...path: Path): string | undefined => document.spelling([...at, ...path])
  const [min, max] = [spelt('min'), spelt('max')]
  const rule: PriceRule = {
    base: spelt('base') ?? '0',
    by: Object.entries(declared.by ?? {}).map(([parameter, prices]): Choice => {
      const found = inputs.parameters.find(({ name }) => name === parameter)
      return {
        parameter,
        ...placeOf(parameter, inputs),
        prices: Object.fromEntries(
          Object.keys(prices).map((value) => [value, spelt('by', parameter, value) ?? '0']),
        ),
        values: found === undefined ? [] : valuesOf(found),
        required: found !== undefined && isAlwaysGiven(found),
      }
    }),
    per: ratesOf(declared).map(({ declared: rate, place }): Rate => {
      const [measure, parameter] = measureOf(rate) ?? ['items_of', '']
      const bounds = boundsOf(measure, parameter, inputs)
      return {
        measure,
        parameter,
        ...placeOf(parameter, inputs),
        unit: spelt(...place, 'unit') ?? '1',
        price: spelt(...place, 'price') ?? '0',
        included: spelt(...place, 'included') ?? '0',
        ...(bounds.kind === 'bounds' ? bounds.range : { least: 0 }),
      }
    }),
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
  }
  const [lowest, highest] = [costOf(rule, 'least'), costOf(rule, 'most')]
  return { rule, lowest, highest, example: quoteExample(rule, inputs) }
}

/** The rates of a rule, one or a list, each with its position below the rule. */
export function ratesOf({
  per,
}: DeclaredPriceRule): { readonly declared: DeclaredRate; readonly place: Path }[] {
  if (per === undefined) return []
  return Array.isArray(per)
    ? per.map((declared: DeclaredRate, index) => ({ declared, place: ['per', index] }))
    : [{ declared: per as DeclaredRate, place: ['per'] }]
}

/** What a rate counts; undefined when it names nothing or several things. */
export function measureOf(rate: DeclaredRate): readonly [Measure, string] | undefined {
  const named = MEASURES.flatMap((measure): [Measure, string][] => {
    const of = rate[measure]
    return of === undefined ? [] : [[measure, of]]
  })
  return named.length === 1 ? named[0] : undefined
}

/** The price of the cheapest or most expensive call. Without `max`, every count has a limit. */
function costOf(rule: PriceRule, end: 'least' | 'most'): Micros {
  const { max } = rule
  if (end === 'most' && max !== undefined && rule.per.some(({ most }) => most === undefined))
    return toMicros(toFine(max) / 1_000_000n)
  if (end === 'least') return computePrice(rule, usageOf({})).amount
  const costliest = (prices: Choice['prices'], values: readonly string[]): string | undefined =>
    values.toSorted((a, b) => (toFine(prices[a] ?? '0') > toFine(prices[b] ?? '0') ? -1 : 1))[0]
  return computePrice(rule, {
    count: ({ least, most = least }) => most,
    value: ({ prices, values }) => costliest(prices, values),
  }).amount
}

export type Bounds =
  | { readonly kind: 'bounds'; readonly range: Pick<Rate, 'least' | 'most'> }
  | { readonly kind: 'unknown' }
  /** A value that cannot be counted this way; `takes` says which can. */
  | { readonly kind: 'unfit'; readonly takes: string }

const TAKES: Readonly<Record<Measure, string>> = {
  items_of: 'a list, or a body whose schema has "type: array"',
  characters_of: 'a text, a list of texts, or a whole body of text',
  bytes_of: 'a text, an object, or a whole body',
  value_of: 'an integer or a number',
}

/** The largest count of a valid call. */
export function boundsOf(measure: Measure, name: string, { parameters, body }: PriceInputs): Bounds {
  const parameter = parameters.find((each) => each.name === name)
  const isBody = parameter === undefined && name === 'body' && body !== undefined
  if (parameter === undefined && !isBody) return { kind: 'unknown' }
  const most = parameter === undefined ? mostOfBody(measure, body) : mostOf(measure, parameter)
  if (most === undefined) return { kind: 'unfit', takes: TAKES[measure] }
  const least = parameter === undefined || !isAlwaysGiven(parameter) ? 0 : leastOf(measure, parameter)
  return { kind: 'bounds', range: { least, ...(most === Infinity ? {} : { most }) } }
}

function leastOf(measure: Measure, { list, minLength, minimum, enum: values }: Parameter): number {
  if (measure === 'items_of') return list?.minItems ?? 0
  if (measure !== 'value_of') return minLength ?? 0
  return Math.max(0, values === undefined ? (minimum ?? 0) : Math.min(...values.map(Number)))
}

/** Most bytes of a code point in UTF-8. */
const LONGEST_CHARACTER = 4

/** Infinity: no limit; undefined: it cannot be counted this way. */
function mostOf(measure: Measure, parameter: Parameter): number | undefined {
  const { type, list, maxLength = Infinity, maximum = Infinity, enum: values } = parameter
  switch (measure) {
    case 'items_of':
      return list?.maxItems
    case 'characters_of':
      return type === 'string' ? maxLength : undefined
    case 'bytes_of':
      if (type === 'object') return Infinity
      return type === 'string' && list === undefined ? LONGEST_CHARACTER * maxLength : undefined
    case 'value_of':
      if (type !== 'integer' && type !== 'number') return undefined
      return values === undefined ? maximum : Math.max(...values.map(Number))
  }
}

/** The canonical JSON of a body may be longer than the body, and the body of a tool has no size. */
function mostOfBody(measure: Measure, body: Body | undefined): number | undefined {
  if (body === undefined || body.form === 'properties') return undefined
  const { kind, maxSize, schema } = body
  if (measure === 'items_of') {
    const { type, maxItems } = limitsOf(schema ?? {})
    return isOnly('array', type) ? (typeof maxItems === 'number' ? maxItems : Infinity) : undefined
  }
  if (measure === 'characters_of') return kind === 'text' ? maxSize : undefined
  if (measure === 'bytes_of') return kind === 'text' || kind === 'bytes' ? maxSize : Infinity
  return undefined
}

/** The possible values, if they are few; otherwise none. */
export function valuesOf({ type, list, enum: values }: Parameter): string[] {
  if (list !== undefined) return []
  return type === 'boolean' ? ['true', 'false'] : (values ?? []).map(String)
}

function isAlwaysGiven({ required, default: value }: Parameter): boolean {
  return required || (value !== undefined && value !== '')
}

function placeOf(name: string, { parameters, bindings }: PriceInputs): Place {
  const found = parameters.find((each) => each.name === name)
  if (found !== undefined && 'schema' in found) {
    const { default: usual } = found.schema
    return { argument: 'body', member: name, ...(usual === undefined ? {} : { default: usual }) }
  }
  const binding = bindings.find((each) => each.kind === 'parameter' && each.parameter === name)
  return { argument: binding?.argument ?? name }
}

/** The price of the call with every example of the catalog. */
export function quoteExample(rule: PriceRule, inputs: PriceInputs): Micros {
  return tryRule(rule, exampleArguments(inputs)) ?? toMicros(0n)
}

function exampleArguments({ parameters, body, bindings }: PriceInputs): Record<string, Argument> {
  const whole = body?.form === 'whole' ? bodyExample(body, parameters) : undefined
  const args = bindings.flatMap((binding): [string, Argument][] => {
    const parameter = parameters.find(
      ({ name }) => binding.kind === 'parameter' && name === binding.parameter,
    )
    const written = parameter?.example ?? parameter?.default
    return parameter === undefined || written === undefined || written === ''
      ? []
      : [[binding.argument, toArgument(parameter, written)]]
  })
  return Object.fromEntries(whole === undefined ? args : [...args, ['body', whole]])
}
