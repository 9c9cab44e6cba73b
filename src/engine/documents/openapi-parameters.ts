import type { Parameter } from '../catalog/catalog.ts'
import { parameterSchema } from '../catalog/input-schema.ts'
import { compact, isJsonObject, type JsonObject } from '../base/json.ts'
import { meaningOf } from './parameter-view.ts'

/** A Parameter Object; its example is inside the schema, where clients that fill in requests look for it. */
export function openapiParameter(parameter: Parameter): JsonObject {
  const { description: _, ...schema } = parameterSchema(parameter)
  const meaning = meaningOf(parameter, 'text')
  return compact({
    name: parameter.name,
    in: parameter.in,
    required: parameter.required || undefined,
    description: meaning === '' ? undefined : meaning,
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
