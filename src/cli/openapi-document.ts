import { fillPath, METHODS } from '../engine/catalog/catalog.ts'
import type { Json, JsonObject } from '../engine/base/json.ts'
import { at, listAt, membersAt, textAt } from './json-access.ts'

/** Operations by the key of their route in a catalog: `/paid/app`, `POST /paid/translate`. */
export function openapiOperations(openapi: JsonObject): [string, Json][] {
  return membersAt(openapi, 'paths').flatMap(([path, item]) =>
    METHODS.flatMap((method): [string, Json][] => {
      const operation = at(item, method.toLowerCase())
      return operation === undefined ? [] : [[keyOf(method, path), operation]]
    }),
  )
}

/** The key of a route as a catalog has it: without the method GET. */
export function keyOf(method: string, path: string): string {
  return method === 'GET' ? path : `${method} ${path}`
}

/** The method and the path of a key. */
export function splitKey(key: string): readonly [method: string, path: string] {
  const [path = '', method = 'GET'] = key.split(' ').toReversed()
  return [method, path]
}

/** The schema of a JSON or form body. */
export function bodySchema(operation: Json | undefined): Json | undefined {
  const [[, media] = []] = membersAt(operation, 'requestBody', 'content')
  return at(media, 'schema')
}

/** Paths of the documents of a service, by their names in the catalog. */
export function documentPlaces(openapi: JsonObject): ReadonlyMap<string, readonly string[]> {
  // Documents that are no operations are listed apart.
  const apart = membersAt(openapi, 'x-documents').map(([name]): [string, string[]] => [
    name,
    listAt(openapi, 'x-documents', name).filter((path) => typeof path === 'string'),
  ])
  const places = new Map(apart)
  for (const [path, operation] of openapiOperations(openapi)) {
    const name = textAt(operation, 'x-document')
    if (name !== undefined) places.set(name, [...(places.get(name) ?? []), path])
  }
  return places
}

/** A path filled with the examples of its operation's parameters; one without an example stays a template. */
export function examplePath(path: string, operation: Json | undefined): string {
  return fillPath(path, (wanted) => {
    const parameter = listAt(operation, 'parameters').find((each) => textAt(each, 'name') === wanted)
    const schema = at(parameter, 'schema')
    const shown = at(schema, 'example') ?? listAt(schema, 'examples')[0] ?? at(schema, 'default')
    return shown === undefined ? wanted : spellValue(shown)
  })
}

/** A value as in a query. */
export function spellValue(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
