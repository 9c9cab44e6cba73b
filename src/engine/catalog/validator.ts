import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js'
import type { Argument, Arguments } from '../handler.ts'
import { isJsonObject, parseJson, type Json, type JsonObject } from '../base/json.ts'
import type { Binding, Body, Catalog, Operation, Parameter, Scalar } from './catalog.ts'
import { didYouMean, isNearly, suggest } from './issue.ts'
import { inputSchema, isOptionalText, SEPARATORS, validationSchema } from './input-schema.ts'
import { compileBody, compileParameters } from './schema-compiler.ts'
import {
  describe,
  describeBody,
  LONGEST_NAME,
  type Origin,
  type ValidationError,
} from './validation-error.ts'

/** Raw parameters of one HTTP request: path templates decoded, the query unparsed. */
export interface RawParameters {
  readonly path: Readonly<Record<string, string>>
  readonly query: string
  /** The parsed body, depending on the kind of the operation's body; undefined when it was empty. */
  readonly body?: Json | Uint8Array | undefined
}

export type Validated =
  | { readonly kind: 'valid'; readonly args: Arguments; readonly ignored?: readonly IgnoredParameter[] }
  | { readonly kind: 'invalid'; readonly errors: readonly ValidationError[] }

/** A query parameter that the route does not declare. */
export interface IgnoredParameter {
  readonly name: string
  /** The declared parameter that was probably meant. */
  readonly suggestion: string | undefined
}

export type Validator = (raw: RawParameters) => Validated

/** The inputs of a route or tool, and how they become the handler’s arguments. */
export interface Inputs {
  readonly operation: Operation
  readonly parameters: readonly Parameter[]
  readonly bindings: readonly Binding[]
}

/** Texts of a path, a query or a form. */
const TEXT: Origin = { isTyped: () => false }
/** The same, and a JSON body. */
const TEXT_AND_BODY: Origin = { isTyped: (parameter) => parameter?.in === 'body' }
const TOOL_CALL: Origin = { place: 'arguments', isTyped: () => true }

/** Validates path, query and body of a request. The last of repeated parameters counts. */
export function compileValidator(inputs: Inputs, unknown: Catalog['unknownParameters']): Validator {
  const { body } = inputs.operation
  const validateRest = compileQueryValidator(inputs, unknown)
  if (body === undefined) return validateRest
  if (body.form === 'properties') return compileProperties(inputs, body, validateRest)
  const validateBody = wholeValidator(body)
  return (raw) => {
    const validated = validateRest(raw)
    const errors = validateBody(raw.body)
    if (errors.length > 0)
      return {
        kind: 'invalid',
        errors: [...(validated.kind === 'invalid' ? validated.errors : []), ...errors],
      }
    return validated.kind === 'invalid' || raw.body === undefined
      ? validated
      : { ...validated, args: { ...validated.args, body: raw.body } }
  }
}

/** Members of the body are parameters; unlike unknown query parameters, unknown members are always refused. */
function compileProperties(inputs: Inputs, { kind }: Body, validate: QueryValidator): Validator {
  const names = inputs.parameters.flatMap(({ name, in: place }) => (place === 'body' ? [name] : []))
  return ({ body = {}, ...raw }) => {
    if (!isJsonObject(body) || body instanceof Uint8Array)
      return { kind: 'invalid', errors: [NO_OBJECT_BODY] }
    const known = Object.entries(body).filter(([name]) => names.includes(name))
    const unknown = Object.keys(body).filter((name) => !names.includes(name))
    const validated = validate(raw, { given: Object.fromEntries(known), typed: kind === 'json' })
    if (unknown.length === 0) return validated
    const errors = unknown
      .slice(0, MOST_UNKNOWN)
      .map((name) => extraMember(name.slice(0, LONGEST_NAME), names))
    return { kind: 'invalid', errors: [...(validated.kind === 'invalid' ? validated.errors : []), ...errors] }
  }
}

const NO_OBJECT_BODY: ValidationError = {
  type: 'dict_type',
  loc: ['body'],
  msg: 'Input should be a valid dictionary',
}

/** Validates a whole body and reports the first error only: thousands could be as long as the body. */
function wholeValidator({ schema }: Body): (body: RawParameters['body']) => readonly ValidationError[] {
  const validate = schema === undefined ? undefined : schemaValidator(() => schema, compileBody)
  const { properties, additionalProperties, patternProperties } = schema ?? {}
  const isOpen = additionalProperties !== undefined || patternProperties !== undefined
  const names = isJsonObject(properties) && !isOpen ? Object.keys(properties) : []
  return (body) => {
    if (body === undefined) return [{ type: 'missing', loc: ['body'], msg: 'Field required', input: null }]
    if (body instanceof Uint8Array) return []
    const errors = (validate?.(body) ?? []).map(describeBody)
    return errors.length > 0 || names.length === 0 || !isJsonObject(body) ? errors : misspelt(body, names)
  }
}

/** Errors for members that are nearly declared ones, of a schema that neither allows nor refuses further members. */
function misspelt(body: JsonObject, names: readonly string[]): readonly ValidationError[] {
  const given = new Set(Object.keys(body))
  return unknownNames(given, names)
    .filter((each) => isMisspelt(each, given))
    .map(({ name }) => extraMember(name, names))
}

function extraMember(name: string, names: readonly string[]): ValidationError {
  const msg = `Extra inputs are not permitted${didYouMean(name, names)}`
  return { type: 'extra_forbidden', loc: ['body', name], msg }
}

interface BodyMembers {
  readonly given: JsonObject
  /** Whether values come from JSON, not from texts of a form. */
  readonly typed: boolean
}

type QueryValidator = (raw: RawParameters, members?: BodyMembers) => Validated

function compileQueryValidator(inputs: Inputs, unknown: Catalog['unknownParameters']): QueryValidator {
  const typed = inputs.parameters.some((each) => each.in === 'body')
    ? compileInputs(inputs, TEXT_AND_BODY)
    : undefined
  const validate = compileInputs(inputs, TEXT)
  const names = inputs.parameters.flatMap(({ name, in: place }) => (place === 'query' ? [name] : []))
  return ({ path, query }, members) => {
    const search = new URLSearchParams(query)
    const given = inputs.parameters.flatMap(({ name, in: place }): [string, string][] => {
      // A member of the body is read from the body only.
      if (place === 'body') return []
      const text = place === 'path' ? path[name] : search.getAll(name).at(-1)
      return text === undefined ? [] : [[name, text]]
    })
    const values = Object.fromEntries(given)
    const validated =
      members === undefined || typed === undefined
        ? validate(values)
        : (members.typed ? typed : validate)({ ...members.given, ...values })
    const sent = new Set(search.keys())
    const ignored = unknownNames(sent, names)
    if (ignored.length === 0) return validated
    const refused = unknown === 'refuse' ? ignored : ignored.filter((each) => isMisspelt(each, sent))
    if (refused.length === 0) return validated.kind === 'valid' ? { ...validated, ignored } : validated
    const errors = refused.map(({ name }) => extraParameter(name, names, search.getAll(name).at(-1) ?? null))
    return { kind: 'invalid', errors: [...(validated.kind === 'invalid' ? validated.errors : []), ...errors] }
  }
}

/** Limits how much of its own input a caller gets back. */
const MOST_UNKNOWN = 10

function unknownNames(given: ReadonlySet<string>, names: readonly string[]): readonly IgnoredParameter[] {
  const declared = new Set(names)
  const unknown: IgnoredParameter[] = []
  for (const name of given) {
    if (unknown.length === MOST_UNKNOWN) break
    if (declared.has(name)) continue
    const short = name.slice(0, LONGEST_NAME)
    unknown.push({ name: short, suggestion: suggest(short, names) })
  }
  return unknown
}

/** Whether the caller meant a parameter that the request leaves out. */
function isMisspelt({ name, suggestion }: IgnoredParameter, given: ReadonlySet<string>): boolean {
  return suggestion !== undefined && !given.has(suggestion) && isNearly(name, suggestion)
}

function extraParameter(name: string, names: readonly string[], value: string | null): ValidationError {
  const guess = didYouMean(name, names)
  return {
    type: 'extra_forbidden',
    loc: ['query', name],
    msg: `Extra inputs are not permitted${guess}`,
    input: value,
  }
}

/** Validates the arguments of a tool call: typed JSON, without coercion or unknown arguments. */
export function compileArguments(inputs: Inputs): (given: unknown) => Validated {
  const { body } = inputs.operation
  const validate = compileInputs(inputs, TOOL_CALL)
  if (body?.form !== 'whole')
    return (given = {}) => (isJsonObject(given) ? validate(given) : { kind: 'invalid', errors: [NO_OBJECT] })
  const validateBody = wholeValidator(body)
  return (given = {}) => {
    if (!isJsonObject(given)) return { kind: 'invalid', errors: [NO_OBJECT] }
    const { body: sent, ...rest } = given
    const validated = validate(rest)
    const value = body.kind === 'bytes' && typeof sent === 'string' ? fromBase64(sent) : sent
    const misfit = sent === undefined ? undefined : bodyFault(body, value)
    const errors = (misfit === undefined ? validateBody(value) : [misfit]).map(({ loc, ...error }) => ({
      ...error,
      loc: ['arguments', ...loc],
    }))
    if (validated.kind === 'invalid') return { kind: 'invalid', errors: [...validated.errors, ...errors] }
    if (errors.length > 0 || value === undefined) return { kind: 'invalid', errors }
    return { ...validated, args: { ...validated.args, body: value } }
  }
}

function bodyError(what: string): ValidationError {
  return { type: 'value_error', loc: ['body'], msg: `body is ${what}`, ctx: { error: {} } }
}

function fromBase64(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
    ? new Uint8Array(bytes)
    : undefined
}

/** Why JSON arguments differ from what the same route would accept over HTTP. */
function bodyFault(
  { kind, maxSize }: Body,
  value: Json | Uint8Array | undefined,
): ValidationError | undefined {
  const isFit = {
    json: () => true,
    form: () => isJsonObject(value) && Object.values(value).every((each) => typeof each === 'string'),
    text: () => typeof value === 'string',
    bytes: () => value instanceof Uint8Array,
  }
  if (!isFit[kind]()) return bodyError('not what the schema of this tool says')
  const textOf = (): string => (kind === 'text' && typeof value === 'string' ? value : JSON.stringify(value))
  const size = value instanceof Uint8Array ? value.length : Buffer.byteLength(textOf())
  return size > maxSize ? bodyError(`larger than the ${maxSize} bytes this tool takes`) : undefined
}

const NO_OBJECT: ValidationError = {
  type: 'dict_type',
  loc: ['arguments'],
  msg: 'Input should be a valid dictionary',
}

/** Reports all errors of a request together, one per parameter. Compiles the schema at first use. */
function compileInputs(
  { operation, parameters, bindings }: Inputs,
  origin: Origin,
): (given: JsonObject) => Validated {
  const validate = schemaValidator(() => operationSchema(parameters))
  const bind = compileBindings(operation, parameters, bindings, origin)
  return (given) => {
    const values: Record<string, Json> = { ...given }
    const empty: Record<string, string> = {}
    for (const parameter of parameters) {
      const value = read(parameter, given, origin)
      if (value === undefined) continue
      // The empty text means "not given" for an optional parameter: no rule applies to it.
      if (value !== '' || !isOptionalText(parameter)) values[parameter.name] = value
      else {
        empty[parameter.name] = value
        delete values[parameter.name]
      }
    }
    const errors = validate(values).map((error) => describe(parameters, given, error, origin))
    return errors.length > 0 ? invalid(parameters, errors) : bind({ ...values, ...empty }, given)
  }
}

function read(parameter: Parameter, given: JsonObject, origin: Origin): Json | undefined {
  const value = Object.hasOwn(given, parameter.name) ? given[parameter.name] : undefined
  if (value === undefined) return parameter.default === '' ? '' : undefined
  return normalize(
    parameter,
    !origin.isTyped(parameter) && typeof value === 'string' ? decode(parameter, value) : value,
  )
}

function invalid(parameters: readonly Parameter[], errors: readonly ValidationError[]): Validated {
  const names = parameters.map(({ name }) => name)
  const place = ({ loc: [, name] }: ValidationError): number =>
    names.includes(String(name)) ? names.indexOf(String(name)) : names.length
  const first = new Map(errors.toReversed().map((error) => [error.loc.slice(0, 2).join('/'), error]))
  return { kind: 'invalid', errors: [...first.values()].toSorted((one, other) => place(one) - place(other)) }
}

/** A sample may declare a parameter more loosely than its handler: the handler's declaration decides. */
function compileBindings(
  operation: Operation,
  parameters: readonly Parameter[],
  bindings: readonly Binding[],
  origin: Origin,
): (values: JsonObject, given: JsonObject) => Validated {
  const fixed = bindings.flatMap((binding) =>
    binding.kind === 'fixed' ? [[binding.argument, binding.value] as const] : [],
  )
  const passed = bindings.flatMap((binding) => {
    if (binding.kind === 'fixed') return []
    const parameter = parameters.find(({ name }) => name === binding.parameter)
    const argument = operation.parameters.find(({ name }) => name === binding.argument)
    if (parameter === undefined || argument === undefined) return []
    const taken = { ...argument, name: parameter.name, in: parameter.in }
    return [{ parameter, argument, taken, validate: schemaValidator(() => operationSchema([taken])) }]
  })
  return (values, given) => {
    const args: Record<string, Argument> = Object.fromEntries(fixed)
    const errors: ValidationError[] = []
    for (const { parameter, argument, taken, validate } of passed) {
      const value = convert(argument, values[parameter.name])
      if (value === undefined) continue
      const bound = asArgument(argument, value)
      if (bound !== undefined) args[argument.name] = bound
      if (argument === parameter || (value === '' && isOptionalText(argument))) continue
      errors.push(
        ...validate({ [parameter.name]: value }).map((error) => describe([taken], given, error, origin)),
      )
    }
    return errors.length > 0 ? invalid(parameters, errors) : { kind: 'valid', args }
  }
}

/** Makes a list of one value, or one text of a list, as the handler expects. */
function convert(argument: Parameter, value: Json | undefined): Json | undefined {
  if (Array.isArray(value)) return argument.list === undefined ? value.join(',') : value
  if (argument.list === undefined || (typeof value !== 'string' && typeof value !== 'number')) return value
  return normalize(argument, decode(argument, String(value)))
}

const SEPARATOR = new RegExp(`[${SEPARATORS}]+`)
const INTEGER = /^[+-]?\d{1,15}(?:\.0+)?$/
const NUMBER = /^[+-]?(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:[eE][+-]?\d{1,2})?$/

/** What decides how a value is read. */
type Rules = Pick<Parameter, 'in' | 'type' | 'list' | 'format' | 'aliases' | 'required' | 'default'>

/**
 * The value of a text in a path, a query or a default. A text that cannot be parsed stays as it is, and the
 * parameter’s schema refuses it.
 */
function decode(parameter: Rules, text: string): Json {
  const { type, list } = parameter
  if (list !== undefined) {
    if (text === '' && isOptionalText(parameter)) return text
    const items = text.split(SEPARATOR).filter((item) => item !== '')
    return list.items === 'integer' ? items.map((item) => numberOf(item, INTEGER)) : items
  }
  switch (type) {
    case 'integer':
      return numberOf(text.trim(), INTEGER, text)
    case 'number':
      return numberOf(text.trim(), NUMBER, text)
    case 'boolean':
      return /^(?:true|1)$/i.test(text.trim()) || (/^(?:false|0)$/i.test(text.trim()) ? false : text)
    case 'object': {
      const value = parseJson(text)
      return isJsonObject(value) ? value : text
    }
    case 'string':
      return text
  }
}

function numberOf(text: string, form: RegExp, otherwise = text): number | string {
  return form.test(text) ? Number(text) : otherwise
}

/**
 * One form for values with the same meaning: aliases, countries in any case, repeated items of a list. An array of a body
 * keeps its items, since the upstream gets the body as it was sent.
 */
function normalize({ in: place, format, list, aliases }: Rules, value: Json): Json {
  if (list !== undefined) {
    if (!Array.isArray(value)) return value
    const items = format === 'country' ? value.map(normalizeCountry) : value
    return place === 'body' ? items : [...new Set(items)]
  }
  if (typeof value !== 'string') return value
  if (format === 'country') return normalizeCountry(value)
  if (format === 'date') return value.trim()
  return Object.hasOwn(aliases, value) ? (aliases[value] ?? value) : value
}

/** Upper-cased ISO 3166-1 alpha-2; UK is understood as GB. */
function normalizeCountry(value: Json): Json {
  if (typeof value !== 'string') return value
  // Letters of other alphabets may become two ASCII letters in upper case, but they name no country.
  const code = value.trim().replace(/[a-z]/g, (letter) => letter.toUpperCase())
  return code === 'UK' ? 'GB' : code
}

/** The value of a scalar in the catalog: lists and objects are texts, and a single number is a list of one. */
export function valueOf(parameter: Rules, written: Scalar): Json {
  const { list, type } = parameter
  const readable = typeof written === 'string' || (typeof written === 'number' && list?.items === 'integer')
  if ((list === undefined && type !== 'object') || !readable) return written
  return normalize(parameter, decode(parameter, String(written)))
}

/** The handler’s argument for a checked default, example or fixed value. */
export function toArgument(parameter: Parameter, written: Scalar): Json {
  return asArgument(parameter, valueOf(parameter, written)) ?? written
}

/** A valid value in the type of the handler's argument; the empty text of a list is the empty list. */
function asArgument({ list }: Parameter, value: Json): Json | undefined {
  if (value === '' && list !== undefined) return []
  return value ?? undefined
}

function operationSchema(parameters: readonly Parameter[]): JsonObject {
  const properties = parameters.map((parameter) => [parameter.name, validationSchema(parameter)] as const)
  return { ...inputSchema(parameters), properties: Object.fromEntries(properties) }
}

/** Compiles a schema at its first value. Values of parameters get the schema’s defaults. */
export function schemaValidator(
  schemaOf: () => JsonObject,
  compile = compileParameters,
): (value: Json) => readonly ErrorObject[] {
  let validate: ValidateFunction | undefined
  return (value) => {
    validate ??= compile(schemaOf())
    return validate(value) ? [] : (validate.errors ?? [])
  }
}
