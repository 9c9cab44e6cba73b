import { isJsonObject, type Json, type JsonObject } from '../../json.ts'
import {
  at,
  listAt,
  membersAt,
  NONE,
  spellAvailable,
  spellParameter,
  spellParameters,
  spellValue,
  textAt,
} from './spelling.ts'
import { claimOf, type Claim, type Testimony } from './testimony.ts'

/** What the OpenAPI document says of every route; documents among its paths are left out. */
export function openapiTestimony(document: string, openapi: JsonObject): Testimony {
  const claims = operationsOf(openapi).flatMap(([path, operation]): [string, Claim][] =>
    isDocument(operation) ? [] : [[path, claim(operation)]],
  )
  return { document, covers: 'all', claims: new Map(claims) }
}

/** Where the documents of a service are served, by the names the catalog gives them. */
export function documentPlaces(openapi: JsonObject): ReadonlyMap<string, readonly string[]> {
  const places = new Map<string, string[]>()
  for (const [path, operation] of operationsOf(openapi)) {
    const name = textAt(operation, 'x-document')
    if (name !== undefined) places.set(name, [...(places.get(name) ?? []), path])
  }
  return places
}

/** Examples of the parameters in a path, by their names. */
export function pathExamples(openapi: JsonObject, path: string): ReadonlyMap<string, string> {
  const given = listAt(openapi, 'paths', path, 'get', 'parameters').flatMap(
    (parameter): [string, string][] => {
      const { example, default: value } = objectAt(parameter, 'schema')
      const name = textAt(parameter, 'name')
      const shown = example ?? value
      return name === undefined || shown === undefined ? [] : [[name, spellValue(shown)]]
    },
  )
  return new Map(given)
}

function operationsOf(openapi: JsonObject): [string, Json][] {
  return membersAt(openapi, 'paths').flatMap(([path, item]): [string, Json][] => {
    const operation = at(item, 'get')
    return operation === undefined ? [] : [[path, operation]]
  })
}

function isDocument(operation: Json): boolean {
  return at(operation, 'x-document') !== undefined
}

function claim(operation: Json): Claim {
  const parameters = listAt(operation, 'parameters').map((parameter) =>
    spellParameter(
      textAt(parameter, 'name') ?? '',
      at(parameter, 'required') === true,
      at(parameter, 'schema', 'default'),
    ),
  )
  const info = at(operation, 'x-payment-info')
  const protocols = listAt(info, 'protocols').flatMap((each) => membersAt(each).map(([name]) => name))
  const [offer] = listAt(info, 'offers')
  const [amount, currency] = [textAt(offer, 'amount'), textAt(offer, 'currency')]
  return claimOf(
    ['price', info === undefined ? 'free' : textAt(info, 'price', 'amount')],
    ['parameters', spellParameters(parameters)],
    ['sample', textAt(operation, 'x-free-preview') ?? NONE],
    ['available', spellAvailable(at(operation, 'x-available') !== false)],
    ['protocols', info === undefined ? undefined : protocols.join(', ')],
    ['mpp', amount === undefined ? undefined : `${amount} of ${currency}`],
  )
}

function objectAt(value: Json, key: string): JsonObject {
  const found = at(value, key)
  return isJsonObject(found) ? found : {}
}
