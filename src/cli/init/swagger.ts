import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { at, listAt, membersAt, textAt } from '../json-access.ts'
import { follow } from './reference.ts'

/**
 * Swagger 2.0 as OpenAPI 3.0, as far as an import reads it. Libraries that convert are unmaintained, or need Node.js 22.
 * Definitions stay where they are: references find them there.
 */
export function upgradeSwagger(swagger: JsonObject): JsonObject {
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
