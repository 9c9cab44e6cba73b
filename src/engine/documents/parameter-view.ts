import { sentence } from '../base/words.ts'
import type { Parameter, Route } from '../catalog/catalog.ts'
import { NO_SEPARATORS } from '../catalog/input-schema.ts'
import { toArgument } from '../catalog/validator.ts'

/** A parameter in words. A type alias, so that templates accept it; a text is empty where there is nothing to say. */
export type ParameterView = {
  readonly name: string
  /** `integer`, `list of strings`, `array of strings`, `string, in the path`. */
  readonly type: string
  /** `yes` or `no`. */
  readonly required: string
  readonly default: string
  readonly allowed: string
  readonly example: string
  readonly meaning: string
  /** All of it but the meaning: `integer, required, 1 to 100, example 30`. */
  readonly line: string
  /** As in a query: `country=US`, `limit*` where it is required. */
  readonly brief: string
}

/** Whether a parameter is a JSON value, or a text in a path, a query or a form. */
type Form = 'text' | 'json'

/** The parameters of a route. */
export function routeParameters({ parameters, operation: { body } }: Route): ParameterView[] {
  return parameters.map((parameter) => {
    const isTyped = parameter.in === 'body' && body?.kind === 'json'
    const line = isTyped ? argumentLine(parameter) : parameterLine(parameter)
    return { ...describe(parameter, isTyped ? 'json' : 'text'), line }
  })
}

/** The arguments of a tool, which are in neither path nor query; a list is an array. */
export function toolArguments(parameters: readonly Parameter[]): ParameterView[] {
  return parameters.map((parameter) => {
    const line = argumentLine(parameter)
    const { list } = parameter
    if (list === undefined) return { ...describe({ ...parameter, in: 'query' }, 'json'), line }
    const { items, minItems, maxItems } = list
    const least =
      minItems > 1 && minItems < maxItems ? `${minItems} to ` : minItems === maxItems ? '' : 'up to '
    return {
      ...describe({ ...parameter, in: 'query', list: undefined }, 'json'),
      type: `array of ${items}s`,
      default: asJson(parameter, parameter.default),
      allowed: `${least}${maxItems} values${items === 'string' ? ` ${NO_SEPARATORS}` : ''}`,
      example: asJson(parameter, parameter.example),
      line,
    }
  })
}

function describe(parameter: Parameter, form: Form): Omit<ParameterView, 'line'> {
  const { name, required, default: value, example } = parameter
  return {
    name,
    type: typeOf(parameter),
    required: required ? 'yes' : 'no',
    default: value === undefined ? '' : String(value),
    allowed: allowedOf(parameter),
    example: example === undefined ? '' : String(example),
    meaning: meaningOf(parameter, form),
    brief: required ? `${name}*` : value === undefined || value === '' ? name : `${name}=${value}`,
  }
}

/** Its description, and the rules of lists and aliases that JSON Schema cannot express; empty without either. */
export function meaningOf(parameter: Parameter, form: Form): string {
  const { description, list, aliases } = parameter
  const words = description === undefined ? [] : [sentence(description)]
  if (list !== undefined) {
    const { minItems, maxItems } = list
    const count = minItems === maxItems || minItems === 0 ? `up to ${maxItems}` : `${minItems} to ${maxItems}`
    const counted = `${count} ${list.items === 'integer' ? 'whole numbers' : 'values'}`
    const isOpen = form === 'json' && list.items === 'string'
    words.push(
      `${form === 'text' ? 'Comma-separated' : 'Array'}, ${counted}${isOpen ? ` ${NO_SEPARATORS}` : ''}.`,
    )
  }
  const spellings = Object.entries(aliases).map(([alias, value]) => `${alias} for ${value}`)
  if (spellings.length > 0) words.push(`Also understood: ${spellings.join(', ')}.`)
  return words.join(' ')
}

function parameterLine(parameter: Parameter): string {
  const { type, required, list, enum: allowed, minimum, maximum, example } = parameter
  const words = [
    list === undefined ? type : `comma-separated list of at most ${list.maxItems}`,
    required ? 'required' : defaultOf(parameter),
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

function defaultOf({ default: value }: Parameter): string {
  return value === undefined || value === '' ? 'optional' : `default ${JSON.stringify(value)}`
}

function argumentLine(parameter: Parameter): string {
  const { list, required, example, type } = parameter
  if (list === undefined && type !== 'object') return parameterLine(parameter)
  return [
    list === undefined ? type : `array of at most ${list.maxItems} ${list.items}s`,
    required ? 'required' : 'optional',
    ...(example === undefined ? [] : [`example ${asJson(parameter, example)}`]),
  ].join(', ')
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

function asJson(parameter: Parameter, value: Parameter['example']): string {
  return value === undefined || value === '' ? '' : JSON.stringify(toArgument(parameter, value))
}
