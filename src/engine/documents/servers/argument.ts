import type { Parameter } from '../../catalog/catalog.ts'
import { toArgument } from '../../catalog/parameter.ts'
import { parameterRow } from '../manual-parameter.ts'
import { parameterLine } from '../parameter-line.ts'
import type { TemplateContext } from '../text.ts'

/** A row of the table of a tool’s arguments: nothing stands in a path or a query, and a list is an array. */
export function argumentRow(parameter: Parameter): TemplateContext {
  const { list } = parameter
  if (list === undefined) return parameterRow({ ...parameter, in: 'query' })
  const { items, minItems, maxItems } = list
  const least =
    minItems > 1 && minItems < maxItems ? `${minItems} to ` : minItems === maxItems ? '' : 'up to '
  return {
    ...parameterRow({ ...parameter, in: 'query', list: undefined }),
    type: `array of ${items}s`,
    default: asJson(parameter, parameter.default),
    allowed: `${least}${maxItems} values`,
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
