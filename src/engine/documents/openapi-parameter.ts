import type { Parameter } from '../catalog/catalog.ts'
import { parameterSchema } from '../catalog/parameter-schema.ts'
import { compact, type JsonObject } from '../json.ts'
import { sentence, unspokenRules } from './wording.ts'

/** A Parameter Object; its example stays inside the schema, where clients that fill in requests look for it. */
export function openapiParameter(parameter: Parameter): JsonObject {
  const { description: _, ...schema } = parameterSchema(parameter)
  const words = [
    ...(parameter.description === undefined ? [] : [sentence(parameter.description)]),
    ...unspokenRules(parameter),
  ]
  return compact({
    name: parameter.name,
    in: parameter.in,
    required: parameter.required,
    description: words.length === 0 ? undefined : words.join(' '),
    schema: parameter.default === '' ? admitEmpty(schema) : schema,
  })
}

/** The empty text as default means "not given" and no rule is asked of it: the schema must not refuse it. */
function admitEmpty(schema: JsonObject): JsonObject {
  const { pattern, enum: allowed } = schema
  return compact({
    ...schema,
    minLength: undefined,
    pattern: typeof pattern === 'string' ? `^$|${pattern}` : undefined,
    enum: Array.isArray(allowed) && !allowed.includes('') ? ['', ...allowed] : allowed,
  })
}
