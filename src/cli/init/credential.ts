import { isJsonObject, type Json, type JsonObject } from '../../engine/index.ts'
import { at, listAt, textAt } from '../json-access.ts'
import { follow } from './openapi.ts'
import { snake } from './parameter.ts'

export interface Wanted {
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
  if (type === 'apiKey' && textAt(scheme, 'in') === 'header' && header !== undefined) return { env, header }
  return undefined
}
