import type { Parameter } from '../catalog/catalog.ts'
import type { TemplateContext } from './text.ts'
import { sentence, unspokenRules } from './wording.ts'

/** A row of the table of parameters. */
export function parameterRow(parameter: Parameter): TemplateContext {
  const { name, required, description, default: value, example } = parameter
  const meaning = [...(description === undefined ? [] : [sentence(description)]), ...unspokenRules(parameter)]
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

/** What a value may be, in words. */
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
