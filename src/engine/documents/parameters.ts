import type { Parameter, Route } from '../catalog/catalog.ts'
import { NO_SEPARATORS, parameterSchema } from '../catalog/input-schema.ts'
import { toArgument } from '../catalog/validator.ts'
import { compact, isJsonObject, type JsonObject } from '../base/json.ts'
import type { TemplateContext } from './template.ts'
import { sentence, unspokenRules } from './wording.ts'

/** A parameter in one line: `integer, required, 1 to 100, example 30`. */
export function parameterLine(parameter: Parameter): string {
  const { type, required, list, enum: allowed, minimum, maximum, example } = parameter
  const words = [
    list === undefined ? type : `comma-separated list of at most ${list.maxItems}`,
    required ? 'required' : standing(parameter),
    allowed === undefined ? undefined : `one of ${allowed.join(' | ')}`,
    minimum === undefined
      ? undefined
      : maximum === undefined
        ? `from ${minimum}`
        : `${minimum} to ${maximum}`,
    minimum === undefined && maximum !== undefined ? `at most ${maximum}` : undefined,
    example === undefined ? undefined : `example ${JSON.stringify(example)}`,
  ]
  return words.filter((word) => word !== undefined).join(', ')
}

function standing({ default: value }: Parameter): string {
  return value === undefined || value === '' ? 'optional' : `default ${JSON.stringify(value)}`
}

/** Whether a parameter is a JSON value, or a text in a path, a query or a form. */
export function formIn({ operation: { body } }: Route, { in: place }: Parameter): 'text' | 'json' {
  return place === 'body' && body?.kind === 'json' ? 'json' : 'text'
}

/** The table of a route's parameters. */
export function parameterRows(route: Route): TemplateContext[] {
  return route.parameters.map((parameter) => parameterRow(parameter, formIn(route, parameter)))
}

function parameterRow(parameter: Parameter, form: 'text' | 'json'): TemplateContext {
  const { name, required, description, default: value, example } = parameter
  const meaning = [
    ...(description === undefined ? [] : [sentence(description)]),
    ...unspokenRules(parameter, form),
  ]
  return {
    name,
    type: typeOf(parameter),
    required: required ? 'yes' : 'no',
    default: value === undefined ? '' : String(value),
    allowed: allowedOf(parameter),
    example: example === undefined ? '' : String(example),
    meaning: meaning.join(' '),
  }
}

function typeOf({ in: place, type, list, format }: Parameter): string {
  const kind = list === undefined ? (format === 'date' ? 'date' : type) : `list of ${list.items}s`
  return place === 'path' ? `${kind}, in the path` : kind
}

/** The allowed values in words. */
function allowedOf(parameter: Parameter): string {
  const { enum: allowed, format, pattern, list } = parameter
  if (allowed !== undefined) return allowed.join(', ')
  const { minimum, maximum, exclusiveMinimum } = list === undefined ? parameter : { ...parameter, ...list }
  const rules = [
    format === 'date' ? 'YYYY-MM-DD' : format === 'country' ? 'ISO 3166-1 alpha-2' : undefined,
    between(minimum, maximum),
    exclusiveMinimum === undefined ? undefined : `above ${exclusiveMinimum}`,
    lengthOf(parameter),
    pattern === undefined ? undefined : `matching ${pattern}`,
  ]
  return rules.filter((rule) => rule !== undefined).join('; ')
}

function between(minimum: number | undefined, maximum: number | undefined): string | undefined {
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`
  if (minimum !== undefined) return `from ${minimum}`
  return maximum === undefined ? undefined : `up to ${maximum}`
}

function lengthOf({ minLength, maxLength, list, format }: Parameter): string | undefined {
  if (list !== undefined || format !== undefined) return undefined
  const range = between(minLength, maxLength)
  return range === undefined ? undefined : `${range} characters`
}

/** A row of the table of a tool’s arguments, which are in neither path nor query; a list is an array. */
export function argumentRow(parameter: Parameter): TemplateContext {
  const { list } = parameter
  if (list === undefined) return parameterRow({ ...parameter, in: 'query' }, 'json')
  const { items, minItems, maxItems } = list
  const least =
    minItems > 1 && minItems < maxItems ? `${minItems} to ` : minItems === maxItems ? '' : 'up to '
  return {
    ...parameterRow({ ...parameter, in: 'query', list: undefined }, 'json'),
    type: `array of ${items}s`,
    default: asJson(parameter, parameter.default),
    allowed: `${least}${maxItems} values${items === 'string' ? ` ${NO_SEPARATORS}` : ''}`,
    example: asJson(parameter, parameter.example),
  }
}

/** The same in one line: `integer, required, 1 to 100, example 30`. */
export function argumentLine(parameter: Parameter): string {
  const { list, required, example, type } = parameter
  if (list === undefined && type !== 'object') return parameterLine(parameter)
  return [
    list === undefined ? type : `array of at most ${list.maxItems} ${list.items}s`,
    required ? 'required' : 'optional',
    ...(example === undefined ? [] : [`example ${asJson(parameter, example)}`]),
  ].join(', ')
}

function asJson(parameter: Parameter, value: Parameter['example']): string {
  return value === undefined || value === '' ? '' : JSON.stringify(toArgument(parameter, value))
}

/** A Parameter Object; its example is inside the schema, where clients that fill in requests look for it. */
export function openapiParameter(parameter: Parameter): JsonObject {
  const { description: _, ...schema } = parameterSchema(parameter)
  const words = [
    ...(parameter.description === undefined ? [] : [sentence(parameter.description)]),
    ...unspokenRules(parameter, 'text'),
  ]
  return compact({
    name: parameter.name,
    in: parameter.in,
    required: parameter.required,
    description: words.length === 0 ? undefined : words.join(' '),
    schema: parameter.default === '' ? admitEmpty(schema) : schema,
  })
}

/** JSON Schema of the members of a form, which are texts: a list is one text too. */
export function formSchema(members: readonly Parameter[]): JsonObject {
  const properties = members.map((member): [string, JsonObject] => {
    const { schema, description } = openapiParameter(member)
    return [member.name, compact({ ...(isJsonObject(schema) ? schema : {}), description })]
  })
  const required = members.flatMap((member) => (member.required ? [member.name] : []))
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  }
}

/** Allows the empty text as a default, which means "not given", although it breaks other rules. */
function admitEmpty(schema: JsonObject): JsonObject {
  const { pattern, enum: allowed } = schema
  return compact({
    ...schema,
    minLength: undefined,
    pattern: typeof pattern === 'string' ? `^$|${pattern}` : undefined,
    enum: Array.isArray(allowed) && !allowed.includes('') ? ['', ...allowed] : allowed,
  })
}
