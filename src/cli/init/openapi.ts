import { parse } from 'yaml'
import { isJsonObject, type Json, type JsonObject } from '../../engine/internal.ts'
import { at, listAt, textAt } from '../json-access.ts'

type ReadOpenapi =
  | { readonly kind: 'document'; readonly openapi: JsonObject }
  /** In words that go on after the name of the file. */
  | { readonly kind: 'fault'; readonly sentence: string }

/** Reads OpenAPI 3.0 or 3.1, written as JSON or YAML. */
export function readOpenapi(text: string): ReadOpenapi {
  const openapi = readText(text)
  if (!isJsonObject(openapi)) return { kind: 'fault', sentence: 'is neither a JSON nor a YAML object' }
  const version = openapi['openapi']
  if (typeof version === 'string' && /^3\.[01]\b/.test(version)) return { kind: 'document', openapi }
  const found = openapi['swagger'] ?? version
  const said = typeof found === 'string' ? `is version ${found}` : 'names no version under "openapi"'
  return {
    kind: 'fault',
    sentence: `${said}: only OpenAPI 3.0 and 3.1 can be imported; convert it first`,
  }
}

function readText(text: string): unknown {
  try {
    return /^\s*\{/.test(text) ? JSON.parse(text) : parse(text)
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
    if (!reference.startsWith('#/')) return undefined
    const keys = reference.slice(2).split('/')
    found = at(
      openapi,
      ...keys.map((key) => decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~')),
    )
  }
  return undefined
}

interface Wanted {
  /** What the catalog says of it; undefined: nothing is sent. */
  readonly credential: Json | undefined
  readonly notes: readonly string[]
}

const NOTHING: Wanted = { credential: undefined, notes: [] }

/** What the API wants to see of the operator: a bearer token, or a key in a header. */
export function credentialOf(openapi: JsonObject, operation: JsonObject): Wanted {
  const security =
    operation['security'] === undefined ? listAt(openapi, 'security') : listAt(operation, 'security')
  const choices = security.filter(isJsonObject).map((each) => Object.keys(each))
  // An empty choice: it answers without.
  if (choices.length === 0 || choices.some((names) => names.length === 0)) return NOTHING
  for (const [name = '', ...more] of choices) {
    const credential = more.length > 0 ? undefined : spellScheme(name, schemeOf(openapi, name))
    if (credential !== undefined) return { credential, notes: [] }
  }
  const names = choices.map((each) => each.join(' with ')).join(' or ')
  return {
    credential: undefined,
    notes: [`wants ${names}, which a proxy cannot send: only a bearer token or a key in a header`],
  }
}

function schemeOf(openapi: JsonObject, name: string): Json | undefined {
  return follow(openapi, at(openapi, 'components', 'securitySchemes', name))
}

function spellScheme(name: string, scheme: Json | undefined): Json | undefined {
  const env = `UPSTREAM_${snake(name).toUpperCase() || 'KEY'}`
  const [type, header] = [textAt(scheme, 'type'), textAt(scheme, 'name')]
  if (type === 'http' && textAt(scheme, 'scheme')?.toLowerCase() === 'bearer') return env
  if (type === 'oauth2' || type === 'openIdConnect') return env
  if (type === 'apiKey' && textAt(scheme, 'in') === 'header' && header !== undefined)
    return { header: { [header]: env } }
  return undefined
}

/** `petId` and `X-Pet-ID` as a catalog names them: `pet_id`, `x_pet_id`. */
export function snake(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^[^a-z]+|_+$/g, '')
}
