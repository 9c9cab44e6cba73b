import { parse } from 'yaml'
import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { at, listAt, membersAt, textAt } from '../json-access.ts'

type ReadOpenapi =
  | { readonly kind: 'document'; readonly openapi: JsonObject }
  /** A phrase that follows the name of the file. */
  | { readonly kind: 'fault'; readonly sentence: string }

/** Reads OpenAPI 3.0 to 3.2 or Swagger 2.0, written as JSON or YAML, into the form of version 3. */
export function readOpenapi(text: string): ReadOpenapi {
  const openapi = readText(text)
  if (!isJsonObject(openapi)) return { kind: 'fault', sentence: 'is neither a JSON nor a YAML object' }
  const version = openapi['openapi']
  if (typeof version === 'string' && /^3\.[0-2]\b/.test(version)) return { kind: 'document', openapi }
  const found = openapi['swagger'] ?? version
  if (found === '2.0' || found === 2) return { kind: 'document', openapi: upgradeSwagger(openapi) }
  const said = typeof found === 'string' ? `is version ${found}` : 'names no version under "openapi"'
  return { kind: 'fault', sentence: `${said}: OpenAPI 3.0 to 3.2 and Swagger 2.0 can be imported` }
}

function readText(text: string): unknown {
  try {
    // Aliases of aliases must not fill the memory.
    return /^\s*\{/.test(text) ? JSON.parse(text) : parse(text, { maxAliasCount: 1_000 })
  } catch {
    return undefined
  }
}

/** More would be a circle. */
const LONGEST_TRAIL = 20

/** What a `$ref` into the same document leads to; undefined: into another file, in a circle, or to nothing. */
export function follow(openapi: JsonObject, value: Json | undefined): Json | undefined {
  let found = value
  for (let step = 0; step < LONGEST_TRAIL; step += 1) {
    const reference = textAt(found, '$ref')
    if (reference === undefined) return found
    found = lookUp(openapi, reference)
  }
  return undefined
}

/** RFC 6901 in a fragment. */
function lookUp(openapi: JsonObject, reference: string): Json | undefined {
  if (!reference.startsWith('#/')) return undefined
  const keys = reference.slice(2).split('/')
  return keys.reduce<Json | undefined>((found, key) => {
    const name = unescape(key)
    return Array.isArray(found) ? found[Number(name)] : at(found, name)
  }, openapi)
}

function unescape(key: string): string {
  const plain = key.replaceAll('~1', '/').replaceAll('~0', '~')
  try {
    return decodeURIComponent(plain)
  } catch {
    return plain
  }
}

/**
 * Swagger 2.0 as OpenAPI 3.0, as far as an import reads it. Libraries that convert are unmaintained, or need Node.js 22.
 * Definitions stay where they are: references find them there.
 */
function upgradeSwagger(swagger: JsonObject): JsonObject {
  const { host, basePath, schemes } = swagger
  const [scheme] = Array.isArray(schemes) ? schemes.toSorted((one) => (one === 'https' ? -1 : 1)) : []
  const path = typeof basePath === 'string' ? basePath : '/'
  const url =
    typeof host === 'string' ? `${typeof scheme === 'string' ? scheme : 'https'}://${host}${path}` : path
  const paths = membersAt(swagger, 'paths').map(([name, item]) => {
    const shared = listAt(item, 'parameters')
    const operations = membersAt(item).map(([key, value]): [string, Json] => {
      if (key === 'parameters') return [key, []]
      return [
        key,
        isJsonObject(value) && !key.startsWith('x-') ? upgradeOperation(swagger, value, shared) : value,
      ]
    })
    return [name, Object.fromEntries(operations)]
  })
  const schemesByName = membersAt(swagger, 'securityDefinitions').map(([name, scheme]) => [
    name,
    textAt(scheme, 'type') === 'basic' ? { type: 'http', scheme: 'basic' } : scheme,
  ])
  return {
    ...swagger,
    servers: [{ url }],
    paths: Object.fromEntries(paths),
    components: { securitySchemes: Object.fromEntries(schemesByName) },
  }
}

function upgradeOperation(swagger: JsonObject, operation: JsonObject, shared: readonly Json[]): JsonObject {
  const own = listAt(operation, 'parameters').map((each) => follow(swagger, each))
  const isSame = (one: Json | undefined, other: Json | undefined): boolean =>
    textAt(one, 'name') === textAt(other, 'name') && textAt(one, 'in') === textAt(other, 'in')
  const inherited = shared
    .map((each) => follow(swagger, each))
    .filter((each) => !own.some((mine) => isSame(mine, each)))
  const parameters = [...inherited, ...own].filter(isJsonObject)
  const inBody = parameters.find((each) => each['in'] === 'body')
  const form = parameters.filter((each) => each['in'] === 'formData')
  const { parameters: _, responses: __, ...rest } = operation
  return {
    ...rest,
    parameters: parameters
      .filter((each) => each['in'] !== 'body' && each['in'] !== 'formData')
      .map(upgradeParameter),
    ...(inBody === undefined && form.length === 0
      ? {}
      : { requestBody: bodyOf(mediaTypes(swagger, operation, 'consumes'), inBody, form) }),
    responses: Object.fromEntries(
      membersAt(operation, 'responses').map(([status, given]) => {
        const response = follow(swagger, given)
        const types = mediaTypes(swagger, operation, 'produces')
        const shown = new Map(membersAt(response, 'examples'))
        const schema = at(response, 'schema')
        const content = types.map((type): [string, JsonObject] => {
          const example = shown.get(type)
          return [
            type,
            { ...(schema === undefined ? {} : { schema }), ...(example === undefined ? {} : { example }) },
          ]
        })
        const headers = at(response, 'headers') ?? {}
        return [status, { headers, content: schema === undefined ? {} : Object.fromEntries(content) }]
      }),
    ),
  }
}

function mediaTypes(swagger: JsonObject, operation: JsonObject, key: 'consumes' | 'produces'): string[] {
  const own = listAt(operation, key)
  const types = (own.length > 0 ? own : listAt(swagger, key)).filter((each) => typeof each === 'string')
  return types.length > 0 ? types : ['application/json']
}

function bodyOf(
  types: readonly string[],
  inBody: JsonObject | undefined,
  form: readonly JsonObject[],
): JsonObject {
  if (inBody !== undefined) {
    const media = { schema: inBody['schema'] ?? {} }
    return {
      required: inBody['required'] === true,
      content: Object.fromEntries(types.map((type) => [type, media])),
    }
  }
  const hasFile = form.some((each) => each['type'] === 'file')
  const properties = form.map((each): [string, JsonObject] => {
    const { schema, description } = upgradeParameter(each)
    return [
      textAt(each, 'name') ?? '',
      { ...(isJsonObject(schema) ? schema : {}), ...(description === undefined ? {} : { description }) },
    ]
  })
  const required = form.filter((each) => each['required'] === true).map((each) => textAt(each, 'name') ?? '')
  const schema = { type: 'object', properties: Object.fromEntries(properties), required }
  const type = hasFile ? 'multipart/form-data' : 'application/x-www-form-urlencoded'
  return { required: required.length > 0, content: { [type]: { schema } } }
}

const OF_PARAMETERS: ReadonlySet<string> = new Set([
  'name',
  'in',
  'required',
  'description',
  'allowEmptyValue',
])

function upgradeParameter(parameter: JsonObject): JsonObject {
  const entries = Object.entries(parameter)
  const { collectionFormat, ...schema } = Object.fromEntries(
    entries.filter(([key]) => !OF_PARAMETERS.has(key)),
  )
  const styles: Readonly<Record<string, string>> = { ssv: 'spaceDelimited', pipes: 'pipeDelimited' }
  const style = styles[typeof collectionFormat === 'string' ? collectionFormat : '']
  return {
    ...Object.fromEntries(entries.filter(([key]) => OF_PARAMETERS.has(key))),
    schema: isJsonObject(schema['schema']) ? schema['schema'] : schema,
    explode: collectionFormat === 'multi',
    ...(style === undefined ? {} : { style }),
  }
}

/** `petId` and `X-Pet-ID` as a catalog names them: `pet_id`, `x_pet_id`; Twilio's `StartTime>`: `start_time_after`. */
export function snake(name: string): string {
  return name
    .replace(/>$/, '_after')
    .replace(/<$/, '_before')
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^[^a-z]+|_+$/g, '')
}

/** At most so many characters, ended after a word. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text
  const cut = text.slice(0, most)
  return (/\s/.test(text.charAt(most)) ? cut : cut.replace(/\s+\S*$/, '')).replace(/[\s,;:(–-]+$/, '')
}

/** Assigns unique names: the candidate, or the candidate with a number. */
export function uniqueNames(join: string): (wish: string) => string {
  const taken = new Set<string>()
  return (wish) => {
    let name = wish
    for (let number = 2; taken.has(name.toLowerCase()); number += 1) name = `${wish}${join}${number}`
    taken.add(name.toLowerCase())
    return name
  }
}
