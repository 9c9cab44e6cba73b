import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Parameter, Route, Scalar } from '../catalog/catalog.ts'
import {
  isDate,
  isOptionalText,
  misfit,
  normalizeCountry,
  parameterSchema,
  readList,
  toArgument,
} from '../catalog/parameter.ts'
import type { ValidationError } from '../validation-error.ts'
import type { Argument, Arguments } from '../handler.ts'
import type { JsonObject } from '../json.ts'
import { describe, item, valueError } from '../work/parameter-fault.ts'

/** Raw parameters of one request: path templates decoded, the query as it came. */
export interface RawParameters {
  readonly path: Readonly<Record<string, string>>
  readonly query: string
}

export type Validated =
  | { readonly kind: 'valid'; readonly args: Arguments }
  | { readonly kind: 'invalid'; readonly errors: readonly ValidationError[] }

export type Validator = (raw: RawParameters) => Validated

/**
 * Compiles the check of one route's parameters: coercion from text, defaults, JSON Schema, then the handler's arguments.
 * All faults of a request are told in one answer, in the words of `HTTPValidationError`.
 */
export function compileValidator(route: Route): Validator {
  const { parameters } = route
  if (parameters.length === 0 && route.bindings.every(({ kind }) => kind === 'fixed')) {
    const args = bindArguments(route, {})
    return () => ({ kind: 'valid', args })
  }
  let schema: ValidateFunction | undefined
  return (raw) => {
    schema ??= compileSchema(parameters)
    const query = raw.query === '' ? undefined : new URLSearchParams(raw.query)
    const read = parameters.map((parameter) => readOne(parameter, rawValue(parameter, raw, query)))
    const values: Record<string, Scalar> = {}
    for (const { parameter, value } of read) if (value !== undefined) values[parameter.name] = value
    const errors = read.flatMap(({ error }) => (error === undefined ? [] : [error]))
    const wrong = new Set(errors.map(({ loc }) => loc[1]))
    if (!schema(values)) {
      for (const fault of schema.errors ?? []) {
        const parameter = parameters.find(({ name }) => fault.instancePath === `/${name}`)
        const given = parameter === undefined ? undefined : rawValue(parameter, raw, query)
        if (parameter === undefined || wrong.has(parameter.name)) continue
        if (values[parameter.name] === '' && isOptionalText(parameter)) continue
        wrong.add(parameter.name)
        errors.push(describe(parameter, fault, given ?? null))
      }
    }
    errors.push(...read.flatMap((each) => (wrong.has(each.parameter.name) ? [] : checkFormat(each))))
    errors.push(...(errors.length === 0 ? checkArguments(route, values) : []))
    if (errors.length > 0) return { kind: 'invalid', errors: inOrder(parameters, errors) }
    return { kind: 'valid', args: bindArguments(route, values) }
  }
}

/** As the catalog declares the parameters, whichever check has found the fault. */
function inOrder(
  parameters: readonly Parameter[],
  errors: readonly ValidationError[],
): readonly ValidationError[] {
  const place = ({ loc }: ValidationError): number => parameters.findIndex(({ name }) => name === loc[1])
  return errors.toSorted((one, other) => place(one) - place(other))
}

function rawValue(
  parameter: Parameter,
  raw: RawParameters,
  query: URLSearchParams | undefined,
): string | undefined {
  if (parameter.in === 'path') return raw.path[parameter.name]
  return query?.getAll(parameter.name).at(-1)
}

interface ReadParameter {
  readonly parameter: Parameter
  readonly raw: string | undefined
  readonly value?: Scalar
  readonly error?: ValidationError
}

const INTEGER = /^[+-]?\d{1,15}(?:\.0+)?$/
const NUMBER = /^[+-]?(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:[eE][+-]?\d{1,2})?$/

function readOne(parameter: Parameter, raw: string | undefined): ReadParameter {
  const { default: otherwise, required } = parameter
  if (raw === undefined) {
    if (otherwise !== undefined) return { parameter, raw, value: otherwise }
    if (!required) return { parameter, raw }
    return { parameter, raw, error: item(parameter, null, 'missing', 'Field required') }
  }
  const text = raw.trim()
  switch (parameter.type) {
    case 'integer':
      if (INTEGER.test(text)) return { parameter, raw, value: Number(text) }
      return { parameter, raw, error: item(parameter, raw, 'int_parsing', unparsable('integer')) }
    case 'number':
      if (NUMBER.test(text)) return { parameter, raw, value: Number(text) }
      return { parameter, raw, error: item(parameter, raw, 'float_parsing', unparsable('number')) }
    case 'boolean':
      if (/^(true|1)$/i.test(text)) return { parameter, raw, value: true }
      if (/^(false|0)$/i.test(text)) return { parameter, raw, value: false }
      return {
        parameter,
        raw,
        error: item(
          parameter,
          raw,
          'bool_parsing',
          'Input should be a valid boolean, unable to interpret input',
        ),
      }
    // No query holds an object, and the catalog's check says so: what comes is a text.
    case 'object':
    case 'string':
      return { parameter, raw, value: normalize(parameter, raw) }
  }
}

function unparsable(kind: string): string {
  return `Input should be a valid ${kind}, unable to parse string as ${kind === 'integer' ? 'an' : 'a'} ${kind}`
}

function normalize(parameter: Parameter, raw: string): string {
  if (parameter.format === 'country' && parameter.list === undefined)
    return raw === '' ? raw : normalizeCountry(raw)
  if (parameter.format === 'date') return raw.trim()
  return Object.hasOwn(parameter.aliases, raw) ? (parameter.aliases[raw] ?? raw) : raw
}

const ajv = new Ajv2020({
  allErrors: true,
  strict: false,
  validateFormats: false,
  validateSchema: false,
})

function compileSchema(parameters: readonly Parameter[]): ValidateFunction {
  const properties = parameters.map((parameter): [string, JsonObject] => {
    const { default: _, examples: __, description: ___, ...schema } = parameterSchema(parameter)
    return [parameter.name, schema]
  })
  const schema = { type: 'object', properties: Object.fromEntries(properties) }
  const validate = ajv.compile(schema)
  // Each revision compiles its own; the ones of revisions that are gone must not stay behind.
  ajv.removeSchema(schema)
  return validate
}

/** Formats a schema cannot say, or not in words a caller can use. */
function checkFormat({ parameter, raw, value }: ReadParameter): ValidationError[] {
  if (typeof value !== 'string' || (value === '' && isOptionalText(parameter))) return []
  if (parameter.format === 'date' && !isDate(value)) {
    return [valueError(parameter, raw ?? null, `${parameter.name} must be YYYY-MM-DD`)]
  }
  if (parameter.list === undefined) return []
  const read = readList(parameter, parameter.list, value)
  return read.kind === 'fault' ? [valueError(parameter, raw ?? null, read.sentence)] : []
}

/** A sample may declare a parameter more loosely than the handler takes it: what the handler takes decides. */
function checkArguments(route: Route, values: Readonly<Record<string, Scalar>>): ValidationError[] {
  return route.bindings.flatMap((binding) => {
    if (binding.kind === 'fixed') return []
    const parameter = route.parameters.find(({ name }) => name === binding.parameter)
    const argument = route.operation.parameters.find(({ name }) => name === binding.argument)
    const value = values[binding.parameter]
    if (parameter === undefined || argument === undefined || value === undefined || argument === parameter)
      return []
    const reason = misfit(argument, value)
    return reason === undefined ? [] : [valueError(parameter, String(value), `${parameter.name} ${reason}`)]
  })
}

function bindArguments(route: Route, values: Readonly<Record<string, Scalar>>): Arguments {
  const { operation, bindings } = route
  const args: Record<string, Argument> = {}
  for (const binding of bindings) {
    if (binding.kind === 'fixed') {
      args[binding.argument] = binding.value
      continue
    }
    const value = values[binding.parameter]
    const argument = operation.parameters.find(({ name }) => name === binding.argument)
    if (value !== undefined && argument !== undefined) args[binding.argument] = toArgument(argument, value)
  }
  return args
}
