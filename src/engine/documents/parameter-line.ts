import type { Parameter } from '../catalog/catalog.ts'

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
