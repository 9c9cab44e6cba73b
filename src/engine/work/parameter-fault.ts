import type { ErrorObject } from 'ajv/dist/2020.js'
import type { Parameter, Scalar } from '../catalog/catalog.ts'
import type { ValidationError } from '../validation-error.ts'
import type { JsonObject } from '../json.ts'

/** A fault of JSON Schema in the words of `HTTPValidationError`; `input` is the text that was sent. */
export function describe(parameter: Parameter, fault: ErrorObject, input: string | null): ValidationError {
  const limit = Number(fault.params['limit'])
  const characters = limit === 1 ? 'character' : 'characters'
  switch (fault.keyword) {
    case 'minimum':
      return item(
        parameter,
        input,
        'greater_than_equal',
        `Input should be greater than or equal to ${limit}`,
        { ge: limit },
      )
    case 'maximum':
      return item(parameter, input, 'less_than_equal', `Input should be less than or equal to ${limit}`, {
        le: limit,
      })
    case 'exclusiveMinimum':
      return item(parameter, input, 'greater_than', `Input should be greater than ${limit}`, { gt: limit })
    case 'minLength':
      return item(
        parameter,
        input,
        'string_too_short',
        `String should have at least ${limit} ${characters}`,
        { min_length: limit },
      )
    case 'maxLength':
      return item(parameter, input, 'string_too_long', `String should have at most ${limit} ${characters}`, {
        max_length: limit,
      })
    case 'enum': {
      const expected = quoted(parameter.enum ?? [])
      return item(parameter, input, 'enum', `Input should be ${expected}`, { expected })
    }
    case 'pattern': {
      if (parameter.format === 'country') {
        return valueError(parameter, input, `${parameter.name} must be an ISO 3166-1 alpha-2 code`)
      }
      const pattern = String(fault.params['pattern'])
      return item(parameter, input, 'string_pattern_mismatch', `String should match pattern '${pattern}'`, {
        pattern,
      })
    }
    default:
      return valueError(parameter, input, `${parameter.name} is not valid`)
  }
}

export function valueError(parameter: Parameter, input: string | null, sentence: string): ValidationError {
  return item(parameter, input, 'value_error', `Value error, ${sentence}`, { error: {} })
}

/** One item of the 422 body. */
export function item(
  parameter: Parameter,
  input: string | null,
  type: string,
  msg: string,
  ctx?: JsonObject,
): ValidationError {
  const error = { type, loc: [parameter.in, parameter.name], msg, input }
  return ctx === undefined ? error : { ...error, ctx }
}

function quoted(values: readonly Scalar[]): string {
  const texts = values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value)))
  const last = texts.pop() ?? ''
  return texts.length === 0 ? last : `${texts.join(', ')} or ${last}`
}
