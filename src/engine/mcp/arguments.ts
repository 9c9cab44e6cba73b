import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Binding, Operation, Parameter } from '../catalog/catalog.ts'
import { inputSchema } from '../catalog/input-schema.ts'
import { isDate, isOptionalText, misfit, normalizeCountry, toArgument } from '../catalog/parameter.ts'
import type { ValidationError } from '../validation-error.ts'
import type { Argument, Arguments } from '../handler.ts'
import { isJsonObject, type Json, type JsonObject } from '../json.ts'
import { describe } from '../work/parameter-fault.ts'

export type Checked =
  | { readonly kind: 'valid'; readonly args: Arguments }
  | { readonly kind: 'invalid'; readonly errors: readonly ValidationError[] }

/** What a face takes, and how the handler’s arguments are made of it. */
export interface Taken {
  readonly operation: Operation
  readonly parameters: readonly Parameter[]
  readonly bindings: readonly Binding[]
}

/**
 * Compiles the check of one tool's arguments: JSON Schema without coercion, defaults, then what a schema cannot say. All
 * faults are told at once, in the words of the 422.
 */
export function compileArguments(taken: Taken): (given: unknown) => Checked {
  const { parameters } = taken
  let schema: ValidateFunction | undefined
  return (given = {}) => {
    if (!isJsonObject(given)) return { kind: 'invalid', errors: [NO_OBJECT] }
    schema ??= compile(parameters)
    const values = normalize(parameters, given)
    if (!schema(withoutEmpty(parameters, values))) {
      return { kind: 'invalid', errors: tellAll(parameters, values, schema.errors ?? []) }
    }
    const errors = parameters.flatMap((each) => unfit(each, values[each.name]))
    return errors.length > 0 ? { kind: 'invalid', errors } : { kind: 'valid', args: bind(taken, values) }
  }
}

const NO_OBJECT: ValidationError = {
  type: 'dict_type',
  loc: ['arguments'],
  msg: 'Input should be a valid dictionary',
}

const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false, validateSchema: false })

function compile(parameters: readonly Parameter[]): ValidateFunction {
  const schema = inputSchema(parameters)
  const validate = ajv.compile(schema)
  // Each revision compiles its own; the ones of revisions that are gone must not stay behind.
  ajv.removeSchema(schema)
  return validate
}

/** Other spellings of the same text, as a query may have them. */
function normalize(parameters: readonly Parameter[], given: JsonObject): Record<string, Json> {
  const values: Record<string, Json> = { ...given }
  for (const { name, format, list, aliases } of parameters) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (typeof value === 'string' && list === undefined) {
      if (format === 'country') values[name] = value === '' ? value : normalizeCountry(value)
      else if (format === 'date') values[name] = value.trim()
      else if (Object.hasOwn(aliases, value)) values[name] = aliases[value] ?? value
    } else if (Array.isArray(value) && list !== undefined) {
      const items =
        format === 'country'
          ? value.map((item) => (typeof item === 'string' ? normalizeCountry(item) : item))
          : value
      values[name] = [...new Set(items)]
    }
  }
  return values
}

/** The empty text says "not given" where nothing has to be: no rule is asked of it. */
function withoutEmpty(parameters: readonly Parameter[], values: JsonObject): JsonObject {
  const empty = new Set(
    parameters.filter((each) => values[each.name] === '' && isOptionalText(each)).map(({ name }) => name),
  )
  return Object.fromEntries(Object.entries(values).filter(([name]) => !empty.has(name)))
}

function tellAll(
  parameters: readonly Parameter[],
  values: JsonObject,
  faults: readonly ErrorObject[],
): ValidationError[] {
  const seen = new Set<string>()
  return faults
    .map((fault) => tell(parameters, values, fault))
    .filter(({ loc }) => !seen.has(loc.join('/')) && seen.add(loc.join('/')))
    .toSorted((one, other) => place(parameters, one) - place(parameters, other))
}

function place(parameters: readonly Parameter[], { loc }: ValidationError): number {
  const found = parameters.findIndex(({ name }) => name === loc[1])
  return found < 0 ? parameters.length : found
}

function tell(parameters: readonly Parameter[], values: JsonObject, fault: ErrorObject): ValidationError {
  const [, name = '', index] = fault.instancePath.split('/')
  const item = index === undefined ? [] : [Number(index)]
  const at = (more: string): ValidationError['loc'] => ['arguments', more, ...item]
  switch (fault.keyword) {
    case 'required':
      return {
        type: 'missing',
        loc: at(String(fault.params['missingProperty'])),
        msg: 'Field required',
        input: null,
      }
    case 'additionalProperties':
      return {
        type: 'extra_forbidden',
        loc: at(String(fault.params['additionalProperty'])),
        msg: 'Extra inputs are not permitted',
      }
    case 'type': {
      const [type, kind] = TYPES[String(fault.params['type'])] ?? ['value_error', 'value']
      return { type, loc: at(name), msg: `Input should be a valid ${kind}` }
    }
    case 'minItems':
    case 'maxItems': {
      const [type, bound] = fault.keyword === 'minItems' ? ['too_short', 'at least'] : ['too_long', 'at most']
      const limit = Number(fault.params['limit'])
      return {
        type,
        loc: at(name),
        msg: `List should have ${bound} ${limit} ${limit === 1 ? 'item' : 'items'}`,
      }
    }
    default: {
      const parameter = parameters.find((each) => each.name === name)
      const value = values[name]
      if (parameter === undefined)
        return { type: 'value_error', loc: at(name), msg: 'Value error, it is not valid' }
      const input = typeof value === 'string' || typeof value === 'number' ? String(value) : null
      return { ...describe(parameter, fault, input), loc: at(name) }
    }
  }
}

const TYPES: Readonly<Record<string, readonly [type: string, kind: string]>> = {
  string: ['string_type', 'string'],
  integer: ['int_type', 'integer'],
  number: ['float_type', 'number'],
  boolean: ['bool_type', 'boolean'],
  array: ['list_type', 'list'],
  object: ['dict_type', 'dictionary'],
}

/** What a schema cannot say, or not in words a caller can use. */
function unfit(parameter: Parameter, value: Json | undefined): ValidationError[] {
  const { name, format, list } = parameter
  const loc = ['arguments', name]
  if (typeof value === 'string' && format === 'date' && value !== '' && !isDate(value))
    return [{ type: 'value_error', loc, msg: `Value error, ${name} must be YYYY-MM-DD`, input: value }]
  if (list === undefined || !Array.isArray(value)) return []
  // The rules of the whole text, its length first, hold for the same list in a query.
  const reason = value.length === 0 ? undefined : misfit(parameter, value.join(','))
  return reason === undefined ? [] : [{ type: 'value_error', loc, msg: `Value error, ${name} ${reason}` }]
}

function bind({ operation, parameters, bindings }: Taken, values: JsonObject): Arguments {
  const args: Record<string, Argument> = {}
  for (const binding of bindings) {
    if (binding.kind === 'fixed') {
      args[binding.argument] = binding.value
      continue
    }
    const parameter = parameters.find(({ name }) => name === binding.parameter)
    const argument = operation.parameters.find(({ name }) => name === binding.argument)
    const value = values[binding.parameter] ?? parameter?.default
    if (argument === undefined || value === undefined) continue
    const given = readArgument(argument, value)
    if (given !== undefined) args[binding.argument] = given
  }
  return args
}

/** Checked already; a default, or a text that stands for a list or an object, is read as the catalog writes it. */
function readArgument(argument: Parameter, value: Json): Argument | undefined {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return toArgument(argument, value)
  if (isJsonObject(value)) return value
  if (!Array.isArray(value)) return undefined
  const texts = value.filter((item) => typeof item === 'string')
  return texts.length === value.length ? texts : value.filter((item) => typeof item === 'number')
}
