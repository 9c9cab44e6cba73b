import { changeParts, type ChangeSchema } from '../catalog/schema-parts.ts'
import { compact, isJsonObject, type JsonObject } from '../base/json.ts'

/** Names and types alone: which members are always there and what they mean is on the page of the route. */
export function shapeOf(schema: JsonObject): JsonObject {
  return changeParts(compact({ ...schema, description: undefined, required: undefined }), '', shapeOf)
}

/**
 * Schemas in which each object that occurs more than once refers to a component, named after the first member that it
 * describes. One with references of its own stays as it is: they would lead nowhere.
 */
export function shareSchemas(
  schemas: readonly JsonObject[],
  taken: readonly string[],
): { readonly schemas: JsonObject[]; readonly components: JsonObject } {
  const seen = new Set<string>()
  const repeated = new Set<string>()
  const count: ChangeSchema = (schema, name) => {
    const text = JSON.stringify(schema)
    if (seen.has(text) && isJsonObject(schema['properties'])) repeated.add(text)
    seen.add(text)
    return changeParts(schema, name, count)
  }
  const whole = schemas.filter((schema) => !hasReference(schema))
  for (const schema of whole) count(schema, '')

  const names = new Map<string, string>()
  const components: Record<string, JsonObject> = {}
  const share: ChangeSchema = (schema, name) => {
    const text = JSON.stringify(schema)
    if (!repeated.has(text)) return changeParts(schema, name, share)
    const known = names.get(text) ?? freeName(name, [...taken, ...names.values()])
    if (!names.has(text)) {
      names.set(text, known)
      components[known] = changeParts(schema, name, share)
    }
    return { $ref: `#/components/schemas/${known}` }
  }
  return {
    schemas: schemas.map((schema) => (hasReference(schema) ? schema : share(schema, 'answer'))),
    components,
  }
}

function hasReference(schema: JsonObject): boolean {
  return /"\$ref":"#(?!\/components\/)/.test(JSON.stringify(schema))
}

/** Names of components have letters, digits, `.`, `_` and `-` alone. */
function freeName(member: string, taken: readonly string[]): string {
  const name = member.replaceAll(/[^\w.-]+/g, '_') || 'part'
  const free = (count: number): string => {
    const numbered = count === 1 ? name : `${name}_${count}`
    return taken.includes(numbered) ? free(count + 1) : numbered
  }
  return free(1)
}
