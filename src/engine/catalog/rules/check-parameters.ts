import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import type { Json, JsonObject } from '../../base/json.ts'
import { once } from '../../base/once.ts'
import { type Parameter, type Scalar, templatesOf } from '../catalog.ts'
import { type CheckContext, routesOf, samplePath } from '../check-context.ts'
import { quoteIt } from '../check-shape.ts'
import { isOptionalText, validationSchema } from '../input-schema.ts'
import { didYouMean, error, type Issue, wordIn } from '../issue.ts'
import { compileParameter, isOfType } from '../parameter.ts'
import { parameters } from '../schema-route.ts'
import type { DeclaredParameter, DeclaredParameters } from '../schema.ts'
import type { Path, SourceDocument } from '../yaml-document.ts'
import { ruleOf } from '../validation-error.ts'
import { schemaValidator, valueOf } from '../validator.ts'

/** Checks each parameter by itself: its constraints fit its type, and its default and example fit its constraints. */
export function* checkParameters({ declared, document }: CheckContext): Generator<Issue> {
  for (const place of routesOf(declared)) {
    const { path, route, at } = place
    yield* checkSet(document, path, route.parameters, [...at, 'parameters'])
    for (const [name, property] of Object.entries(route.body?.properties ?? {})) {
      const parameter = compileParameter(name, 'body', property)
      yield* checkOne(document, parameter, property, [...at, 'body', 'properties', name])
    }
    if (typeof route.sample === 'object' && route.sample.parameters !== undefined) {
      const sample = [...at, 'sample', 'parameters']
      yield* checkSet(document, samplePath(place) ?? path, route.sample.parameters, sample)
    }
  }
  for (const [name, tool] of Object.entries(declared.tools ?? {}))
    yield* checkSet(document, '', tool.parameters, ['tools', name, 'parameters'])
}

/** Only well-formed templates: malformed ones are reported for the path. */
function soundTemplates(path: string): string[] {
  const segments = path.split('/')
  return templatesOf(path).filter(
    (name) => segments.some((each) => each.startsWith(`{${name}}`)) && /^[a-z][a-z0-9_]*$/.test(name),
  )
}

function* checkSet(
  document: SourceDocument,
  path: string,
  set: DeclaredParameters = {},
  at: Path,
): Generator<Issue> {
  const names = Object.keys(set)
  const templates = soundTemplates(path)
  for (const name of templates.filter((each) => !names.includes(each))) {
    const owner = at.slice(0, -1)
    const position =
      at.length === 3
        ? wordIn(document.atKey(owner), String(owner.at(-1)), `{${name}}`)
        : document.atKey(document.has(at) ? at : owner)
    const message = `{${name}} of ${path} has no entry under parameters${didYouMean(name, names)}`
    yield error('parameter_undeclared', position, message)
  }
  for (const [name, declared] of Object.entries(set)) {
    const parameter = compileParameter(name, templates.includes(name) ? 'path' : 'query', declared)
    yield* checkOne(document, parameter, declared, [...at, name])
  }
}

function* checkOne(
  document: SourceDocument,
  parameter: Parameter,
  declared: DeclaredParameter,
  at: Path,
): Generator<Issue> {
  const { name, type } = parameter
  const constraints = [...checkConstraints(document, parameter, declared, at)]
  yield* constraints
  const fault = (code: string, key: string, message: string): Issue =>
    error(code, document.at([...at, key]), `${name} ${message}`)
  if (type === 'object' && at[0] === 'routes' && parameter.in !== 'body')
    yield fault(
      'object_on_route',
      'type',
      'is an object, which no query can carry: declare it under the properties of a body or under tools, or take its JSON as a string',
    )
  const inPath = parameter.in === 'path'
  if (inPath && declared.required === false)
    yield fault(
      'path_parameter_optional',
      'required',
      'is part of the path and always given: remove "required"',
    )
  if (inPath && declared.default !== undefined)
    yield fault(
      'path_parameter_default',
      'default',
      'is part of the path and always given: remove the default',
    )
  if (inPath && (declared.example === '.' || declared.example === '..'))
    yield fault(
      'path_example_relative',
      'example',
      'has an example that clients take for a step in the path: they would call another address',
    )
  const contradicts = !inPath && declared.required === true && declared.default !== undefined
  if (contradicts)
    yield fault(
      'required_with_default',
      'default',
      'is required, so its default is never used; keep one of the two',
    )
  if (parameter.required && parameter.example === undefined && !contradicts)
    yield error(
      'example_missing',
      document.atHome(at),
      `${name} is required and needs an example: agents and registries call with it`,
    )
  const isFree = type === 'string' && (declared.list ?? declared.enum ?? declared.default) === undefined
  if (parameter.isIdempotencyKey && !isFree)
    yield fault(
      'idempotency_key_unfit',
      'idempotency_key',
      'is an idempotency key, which each buyer chooses: a string without list, enum or default',
    )
  // A default is compared with its constraints, so the constraints are checked first.
  if (constraints.some(({ code }) => code !== 'alias_unknown')) return
  yield* checkValue(document, parameter, 'default', at)
  yield* checkValue(document, parameter, 'example', at)
}

const NUMBERS = ['minimum', 'maximum', 'exclusiveMinimum'] as const
const TEXTS = ['minLength', 'maxLength', 'pattern', 'format', 'list', 'aliases'] as const
/** Rules that documents would print for a comma-separated list although nothing enforces them. */
const NOT_FOR_LISTS = {
  minLength: 'write "list: { min_items: 1 }"',
  pattern: 'write "list: { items: integer }" for numbers, or check the items in the handler',
  enum: 'describe the values in "description", and check the items in the handler',
  aliases: 'list the other spellings in "description", and read them in the handler',
} as const

function* checkConstraints(
  document: SourceDocument,
  { type }: Parameter,
  declared: DeclaredParameter,
  at: Path,
): Generator<Issue> {
  const text = type === 'string'
  const bare = type === 'boolean' || type === 'object'
  for (const key of text ? NUMBERS : bare ? [...NUMBERS, ...TEXTS] : TEXTS) {
    if (declared[key] === undefined) continue
    const message = `"${key}" says nothing about a parameter of type ${type}: remove it, or change the type`
    yield error('constraint_misplaced', document.atKey([...at, key]), message)
  }
  const { pattern, list = {} } = declared
  for (const [key, advice] of Object.entries(NOT_FOR_LISTS)) {
    if (declared.list === undefined || !Object.hasOwn(declared, key)) continue
    const message = `"${key}" is not applied to a comma-separated list: ${advice}`
    yield error('constraint_misplaced', document.atKey([...at, key]), message)
  }
  yield* checkRange(document, at, declared, 'minimum', 'maximum')
  yield* checkRange(document, at, declared, 'exclusiveMinimum', 'maximum')
  yield* checkRange(document, at, declared, 'minLength', 'maxLength')
  yield* checkRange(document, [...at, 'list'], list, 'min_items', 'max_items')
  yield* checkRange(document, [...at, 'list'], list, 'minimum', 'maximum')
  const broken = pattern === undefined ? undefined : patternError(pattern)
  if (broken !== undefined) {
    const message = `${pattern} is not a regular expression: ${broken}`
    yield error('pattern_invalid', document.at([...at, 'pattern']), message)
  }
  for (const [index, value] of (declared.enum ?? []).entries()) {
    if (isOfType(type, value)) continue
    const place = [...at, 'enum', index]
    const spelling = document.spelling(place)
    yield text && spelling !== undefined
      ? quoteIt(spelling, value, document.at(place))
      : error('enum_type', document.at(place), `${String(value)} is not of type ${type}`)
  }
  for (const [alias, value] of Object.entries(declared.aliases ?? {})) {
    if (declared.enum === undefined || declared.enum.includes(value)) continue
    const guess = didYouMean(value, declared.enum.map(String))
    const message = `"${alias}" is an alias of "${value}", which enum does not allow${guess}`
    yield error('alias_unknown', document.at([...at, 'aliases', alias]), message)
  }
}

function* checkValue(
  document: SourceDocument,
  parameter: Parameter,
  key: 'default' | 'example',
  at: Path,
): Generator<Issue> {
  const { [key]: value, name, type, enum: values } = parameter
  if (value === undefined) return
  const place = [...at, key]
  const spelling = type === 'string' && typeof value !== 'string' ? document.spelling(place) : undefined
  if (spelling !== undefined) {
    yield quoteIt(spelling, value, document.at(place))
    return
  }
  const reason = key === 'example' && value === '' ? 'shows nothing: leave it out' : misfit(parameter, value)
  if (reason === undefined) return
  const hint = values === undefined ? '' : didYouMean(String(value), values.map(String))
  const message = `${key} of ${name}: ${JSON.stringify(value)} ${reason}${hint}`
  yield error(`${key}_invalid`, document.at(place), message)
}

const declarations = once(() =>
  new Ajv2020({ strict: false, validateSchema: false }).compile<DeclaredParameter>(
    parameters.additionalProperties,
  ),
)

/** Whether a value would pass as the default or the example of a parameter that is declared so. */
export function fitsParameter(declared: JsonObject, value: Scalar): boolean {
  const isDeclared = declarations()
  return isDeclared(declared) && misfit(compileParameter('value', 'query', declared), value) === undefined
}

function* checkRange<Low extends string, High extends string>(
  document: SourceDocument,
  at: Path,
  limits: Readonly<Partial<Record<Low | High, number>>>,
  low: Low,
  high: High,
): Generator<Issue> {
  const [from, to] = [limits[low], limits[high]]
  if (from === undefined || to === undefined) return
  const isOpen = low === 'exclusiveMinimum'
  if (isOpen ? from < to : from <= to) return
  const relation = isOpen ? 'not below' : 'above'
  const message = `no value fits: ${low} ${from} is ${relation} ${high} ${to}`
  yield error('range_empty', document.at([...at, low]), message)
}

/** Why a text is not a valid regular expression. */
export function patternError(pattern: string): string | undefined {
  try {
    new RegExp(pattern, 'u')
    return undefined
  } catch (cause) {
    return cause instanceof Error ? cause.message.split(': ').at(-1)?.toLowerCase() : String(cause)
  }
}

/** Compiled schemas of single parameters, shared because most parameters of a catalog are equal. */
const misfits = new Map<string, (value: Json) => readonly ErrorObject[]>()
const MOST_MISFITS = 2_000

/**
 * Says why a default, example or fixed argument does not fit its parameter, as a sentence without subject; undefined
 * when it does.
 */
export function misfit(parameter: Parameter, written: Scalar): string | undefined {
  if (written === '' && isOptionalText(parameter)) return undefined
  const schema = validationSchema(parameter)
  const key = JSON.stringify(schema)
  const validate = misfits.get(key) ?? schemaValidator(() => schema)
  if (misfits.size >= MOST_MISFITS) misfits.clear()
  misfits.set(key, validate)
  const [error] = validate(valueOf(parameter, written))
  return error === undefined ? undefined : ruleOf(parameter, written, error)
}
