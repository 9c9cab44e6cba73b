import type { Argument } from '../../handler.ts'
import { parsePrice, toMicros, type Micros } from '../../base/money.ts'
import type { Binding, Body, Parameter } from '../catalog.ts'
import { bodyExample } from '../body.ts'
import { type Member, membersOf } from '../body-members.ts'
import { toArgument } from '../validator.ts'
import { MEASURE_NAMES, type Measure, measureOf, type MeasureName } from './measures.ts'
import type { Choice, Place, Price, PriceRule, Rate } from './price.ts'
import { computePrice, toFine, tryRule, usageOf } from './rule.ts'
import type { DeclaredPrice, DeclaredPriceRule, DeclaredRate } from '../schema.ts'
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

/**
 * Compiles a price from its source text, not from the number that YAML reads. Undefined: free. With a meter, the price is
 * the ceiling.
 */
export function compilePrice(
  document: SourceDocument,
  at: Path,
  declared: DeclaredPrice | string | number | undefined,
  inputs: PriceInputs,
): Price | undefined {
  if (typeof declared === 'object') {
    if (declared.metered !== undefined)
      return compilePrice(document, [...at, 'ceiling'], declared.ceiling, inputs)
    return compileRule(document, at, declared, inputs)
  }
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
      const [measure, parameter] = countedBy(rate) ?? ['items_of', '']
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
export function countedBy(rate: DeclaredRate): readonly [MeasureName, string] | undefined {
  const named = MEASURE_NAMES.flatMap((measure): [MeasureName, string][] => {
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

/** The largest count of a valid call. */
export function boundsOf(measure: MeasureName, name: string, { parameters, body }: PriceInputs): Bounds {
  const parameter = parameters.find((each) => each.name === name)
  const isBody = parameter === undefined && name === 'body' && body !== undefined
  if (parameter === undefined && !isBody) return { kind: 'unknown' }
  const { takes, least: leastOf, most: mostOf, mostOfBody } = measureOf(measure)
  const most = parameter === undefined ? mostOfWhole(mostOfBody, body) : mostOf(parameter)
  if (most === undefined) return { kind: 'unfit', takes }
  const least = parameter === undefined || !isAlwaysGiven(parameter) ? 0 : leastOf(parameter)
  return { kind: 'bounds', range: { least, ...(most === Infinity ? {} : { most }) } }
}

function mostOfWhole(mostOfBody: Measure['mostOfBody'], body: Body | undefined): number | undefined {
  return body === undefined || body.form === 'properties' ? undefined : mostOfBody(body)
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
