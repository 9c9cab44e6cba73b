import { isJsonObject, type Json, parseJson } from '../../base/json.ts'
import { once } from '../../base/once.ts'
import { formatShort, LARGEST_PRICE, parsePrice } from '../../base/money.ts'
import { bind, compileSet, ownDeclaration, ownersOf } from '../arguments.ts'
import { compileBody, UNPAID_BYTES } from '../body.ts'
import type { Parameter } from '../catalog.ts'
import { type CheckContext, type DeclaredEntry, handlerOf, readText, routesOf } from '../check-context.ts'
import { checkCeiling, checkMeter } from './check-meter.ts'
import { faultMessage, unusual } from './check-prices.ts'
import {
  bindAlike,
  boundsOf,
  compilePrice,
  countedBy,
  type PriceInputs,
  priceInputs,
  quoteExample,
  ratesOf,
  valuesOf,
} from './compile-price.ts'
import { isOfSeveralTypes } from '../body-members.ts'
import { didYouMean, error, hasErrors, type Issue, type Position } from '../issue.ts'
import { MEASURE_NAMES } from './measures.ts'
import { isRuleDecimal, toFine } from './rule.ts'
import type { DeclaredPrice, DeclaredPriceRule } from '../schema.ts'
import type { Path, SourceDocument } from '../yaml-document.ts'

/** Checks that a rule is complete, refers to what exists, and gives every call a price between two limits. */
export function* checkPriceRules(context: CheckContext): Generator<Issue> {
  const { declared } = context
  const owners = once(() => ownersOf(declared))
  for (const place of routesOf(declared)) {
    const { path, route, at } = place
    if (typeof route.price !== 'object') continue
    const parameters = compileSet(path, route.parameters, route.body)
    const owner = owners().get(handlerOf(place)) ?? ownDeclaration(place)
    const { bindings } = bind(owner, parameters, route.with)
    const body = compileBody(route.body, (value) => bodyJson(context, value))
    const inputs = { ...priceInputs(parameters, body, bindings), taken: owner.parameters }
    yield* checkComputed(context, [...at, 'price'], route, route.price, inputs)
  }
  for (const [name, tool] of Object.entries(declared.tools ?? {})) {
    if (typeof tool.price !== 'object') continue
    const parameters = compileSet('', tool.parameters)
    const inputs = { parameters, body: undefined, bindings: bindAlike(parameters), taken: parameters }
    yield* checkComputed(context, ['tools', name, 'price'], tool, tool.price, inputs)
  }
}

/** A price from the arguments, or one that is counted after the work, whose ceiling is from the arguments. */
function* checkComputed(
  context: CheckContext,
  at: Path,
  entry: DeclaredEntry['entry'],
  declared: DeclaredPrice,
  inputs: RuleInputs,
): Generator<Issue> {
  const { document } = context
  const { metered, ceiling } = declared
  if (metered === undefined) {
    for (const key of ['ceiling', 'if_missing'] as const)
      if (declared[key] !== undefined) {
        const message = `"${key}" belongs to a price that is counted after the work: add "metered"`
        yield error('meter_missing', document.atKey([...at, key]), message)
      }
    yield* checkRule(context, at, declared, inputs)
    return
  }
  yield* checkMeter(context, at, entry, declared)
  const place = [...at, 'ceiling']
  if (typeof ceiling === 'object') {
    const found = [...checkRule(context, place, ceiling, inputs)]
    yield* found
    if (hasErrors(found)) return
  }
  const price = compilePrice(document, place, ceiling, inputs)
  if (price !== undefined) yield* checkCeiling(document, at, declared, price)
}

/** The schema of a body if it is readable: errors of its file are reported elsewhere. */
function bodyJson(context: CheckContext, value: unknown): Json | undefined {
  if (typeof value !== 'string') return isJsonObject(value) ? value : undefined
  const parsed = parseJson(readText(context, value) ?? '')
  return isJsonObject(parsed) ? parsed : undefined
}

interface RuleInputs extends PriceInputs {
  /** The arguments of the handler. */
  readonly taken: readonly Parameter[]
}

function* checkRule(
  context: CheckContext,
  at: Path,
  declared: DeclaredPriceRule,
  inputs: RuleInputs,
): Generator<Issue> {
  const { document } = context
  const found = [
    ...checkAmounts(document, at, declared),
    ...ratesOf(declared).flatMap((rate) => [...checkRate(document, at, declared, rate, inputs)]),
    ...Object.keys(declared.by ?? {}).flatMap((name) => [
      ...checkChoice(document, at, declared, name, inputs),
    ]),
  ]
  yield* found
  if (found.length > 0) return
  if (declared.by === undefined && declared.per === undefined) {
    const message = 'every call costs the same by this rule: write "price: 0.005", or add "per" or "by"'
    yield error('price_rule_empty', document.at(at), message)
    return
  }
  const price = compilePrice(document, at, declared, inputs)
  if (typeof price !== 'object') return
  const { lowest, highest, example, rule } = price
  const { max: _, ...open } = rule
  const { max, min } = rule
  const uncapped = quoteExample(open, inputs)
  if (max !== undefined && uncapped > example) {
    const message = `the call of the examples costs ${formatShort(uncapped)} by this rule: raise max, or remove it`
    yield error('price_max_below_example', document.at([...at, 'max']), message)
  } else if (min !== undefined && max !== undefined && toFine(min) > toFine(max)) {
    yield error('price_range_empty', document.at([...at, 'max']), `must be at least ${min}, as min is`)
  } else if (lowest === 0n) {
    const message = 'a call may cost nothing by this rule: give it a base, or min'
    yield error('price_may_be_zero', document.at(at), message)
  } else if (highest > LARGEST_PRICE) {
    const message = `a call may cost ${formatShort(highest)} USD by this rule, more than a call can cost (1,000,000): give max`
    yield error('price_too_large', document.at(at), message)
  } else yield* unusual(lowest, highest, document.at(at))
}

function* checkAmounts(document: SourceDocument, at: Path, declared: DeclaredPriceRule): Generator<Issue> {
  const amounts: Path[] = [
    ['base'],
    ...ratesOf(declared).flatMap(({ place }) => [
      [...place, 'price'],
      [...place, 'included'],
      [...place, 'unit'],
    ]),
    ...Object.entries(declared.by ?? {}).flatMap(([name, prices]) =>
      Object.keys(prices).map((value) => ['by', name, value]),
    ),
  ]
  for (const place of amounts) {
    const spelling = document.spelling([...at, ...place])
    if (spelling === undefined) continue
    const key = place.at(-1)
    if (!isRuleDecimal(spelling)) {
      const message = `${spelling || 'an empty text'} is no plain decimal: write digits and a point, at most twelve places`
      yield error('price_not_decimal', document.at([...at, ...place]), message)
    } else if (toFine(spelling) === 0n && key === 'unit')
      yield error('price_unit_zero', document.at([...at, ...place]), 'a unit is greater than 0')
    else if (toFine(spelling) === 0n && key === 'price')
      yield error('price_not_positive', document.at([...at, ...place]), 'a price is greater than 0')
  }
  for (const key of ['min', 'max']) {
    const spelling = document.spelling([...at, key])
    const price = spelling === undefined ? undefined : parsePrice(spelling)
    if (price?.kind === 'fault')
      yield error(price.fault, document.at([...at, key]), faultMessage(price.fault, spelling ?? '', 'amount'))
  }
}

function* checkRate(
  document: SourceDocument,
  at: Path,
  { max }: DeclaredPriceRule,
  { declared, place }: ReturnType<typeof ratesOf>[number],
  inputs: RuleInputs,
): Generator<Issue> {
  const named = countedBy(declared)
  if (named === undefined) {
    const message = `counts one thing: write one of ${MEASURE_NAMES.join(', ')}`
    yield error('price_measure_missing', document.at([...at, ...place]), message)
    return
  }
  const [measure, name] = named
  const position = document.at([...at, ...place, measure])
  const bounds = boundsOf(measure, name, inputs)
  const parameter = inputs.parameters.find((each) => each.name === name)
  if (bounds.kind === 'unknown') yield unknownParameter(position, name, inputs)
  else if (isTwice(name, inputs)) yield ambiguous(position, name)
  else if (bounds.kind === 'unfit') {
    const isMixed = parameter !== undefined && 'schema' in parameter && isOfSeveralTypes(parameter.schema)
    const found = isMixed ? `the schema gives ${name} no single type` : `${name} is none`
    yield error('price_parameter_unfit', position, `${measure} takes ${bounds.takes}; ${found}`)
  } else if (parameter !== undefined && !isTakenAsItIs(parameter, inputs)) {
    const message = `the handler takes ${name} in another form, so that it cannot be counted`
    yield error('price_parameter_unfit', position, message)
  } else if (bounds.range.most === undefined && max === undefined) {
    const message = `${name} has no limit, and with it the price has none: give the rule a max`
    yield error('price_unbounded', position, message)
  } else yield* checkRead(position, name, inputs)
}

function* checkChoice(
  document: SourceDocument,
  at: Path,
  { by }: DeclaredPriceRule,
  name: string,
  inputs: RuleInputs,
): Generator<Issue> {
  const position = document.atKey([...at, 'by', name])
  const parameter = inputs.parameters.find((each) => each.name === name)
  if (parameter === undefined) {
    yield unknownParameter(position, name, inputs)
    return
  }
  if (isTwice(name, inputs)) {
    yield ambiguous(position, name)
    return
  }
  const values = valuesOf(parameter)
  if (values.length === 0 || !isTakenAsItIs(parameter, inputs)) {
    const message = `${name} has no enum: "by" takes parameters with an enum, and booleans`
    yield error('price_parameter_unfit', position, message)
    return
  }
  yield* checkRead(position, name, inputs)
  for (const value of Object.keys(by?.[name] ?? {}).filter((each) => !values.includes(each))) {
    const message = `${name} is never ${value}${didYouMean(value, values)}; it is one of ${values.join(', ')}`
    yield error('price_value_unknown', document.atKey([...at, 'by', name, value]), message)
  }
}

/** A body that decides the price is read before the payment. */
function* checkRead(position: Position, name: string, inputs: RuleInputs): Generator<Issue> {
  const { body } = inputs
  if (body === undefined || !isOfBody(name, inputs) || body.maxSize <= UNPAID_BYTES) return
  const message = `what is larger than ${UNPAID_BYTES / 1_000_000} MB is not read before the payment, and its price is not known: lower max_size`
  yield error('price_body_unread', position, message)
}

function unknownParameter(position: Position, name: string, { parameters, body }: RuleInputs): Issue {
  const known = [...parameters.map((each) => each.name), ...(body?.form === 'whole' ? ['body'] : [])]
  const message = `there is no parameter "${name}" here${didYouMean(name, known)}`
  return error('price_parameter_unknown', position, message)
}

function isTwice(name: string, { parameters }: RuleInputs): boolean {
  return parameters.filter((each) => each.name === name).length > 1
}

function ambiguous(position: Position, name: string): Issue {
  const message = `${name} is a parameter and a member of the body: give the parameter another name`
  return error('price_parameter_unfit', position, message)
}

function isTakenAsItIs({ name, type, list }: Parameter, { bindings, taken }: RuleInputs): boolean {
  return bindings.every((binding) => {
    if (binding.kind === 'fixed' || binding.parameter !== name) return true
    const argument = taken.find((each) => each.name === binding.argument)
    return (
      argument === undefined ||
      (argument.type === type && (argument.list === undefined) === (list === undefined))
    )
  })
}

function isOfBody(name: string, { parameters }: RuleInputs): boolean {
  const parameter = parameters.find((each) => each.name === name)
  return parameter === undefined ? name === 'body' : parameter.in === 'body'
}
