import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { at, listAt, textAt } from '../json-access.ts'
import { follow, snake } from './read-openapi.ts'

interface Wanted {
  /** The credential in the catalog; undefined: nothing is sent. */
  readonly credential: JsonObject | undefined
  readonly notes: readonly string[]
}

/** What the API wants to see of the operator, in the first way that a proxy can send. */
export function credentialOf(openapi: JsonObject, operation: JsonObject): Wanted {
  const security =
    operation['security'] === undefined ? listAt(openapi, 'security') : listAt(operation, 'security')
  const choices = security.filter(isJsonObject).map((each) => Object.keys(each))
  // An empty choice: it answers without.
  if (choices.length === 0 || choices.some((names) => names.length === 0))
    return { credential: undefined, notes: [] }
  for (const names of choices) {
    const forms = names.map((name) => formOf(name, schemeOf(openapi, name)))
    const credential = joined(forms)
    if (credential !== undefined) return { credential, notes: [] }
  }
  const names = choices.map((each) => each.join(' with ')).join(' or ')
  return { credential: undefined, notes: [`requires ${names}, which a proxy cannot send`] }
}

function schemeOf(openapi: JsonObject, name: string): Json | undefined {
  return follow(openapi, at(openapi, 'components', 'securitySchemes', name))
}

function variable(name: string): string {
  return `UPSTREAM_${snake(name).toUpperCase() || 'KEY'}`
}

function formOf(name: string, scheme: Json | undefined): JsonObject | undefined {
  const [type, key, place] = [textAt(scheme, 'type'), textAt(scheme, 'name'), textAt(scheme, 'in')]
  if (type === 'oauth2' || type === 'openIdConnect') return { bearer: variable(name) }
  if (type === 'apiKey' && key !== undefined && (place === 'header' || place === 'query'))
    return { [place]: { [key]: variable(name) } }
  if (type !== 'http') return undefined
  const [user, password] = [`${variable(name)}_USER`, `${variable(name)}_PASSWORD`]
  return textAt(scheme, 'scheme')?.toLowerCase() === 'basic'
    ? { basic: { user, password } }
    : { bearer: variable(name) }
}

/** Several keys at once, when all travel the same way. */
function joined(forms: readonly (JsonObject | undefined)[]): JsonObject | undefined {
  const [first, ...more] = forms
  if (first === undefined || more.length === 0) return first
  for (const place of ['header', 'query']) {
    const values = forms.map((each) => each?.[place]).filter(isJsonObject)
    if (values.length === forms.length) return { [place]: Object.assign({}, ...values) }
  }
  return undefined
}

/** Names under which APIs take a key as an ordinary parameter. */
const KEY =
  /^(?:x[-_])?(?:api[-_]?key|access[-_]?(?:token|key)|auth(?:entication)?[-_]?(?:token|key)|(?:ocp-apim-)?subscription-key|client[-_]?secret)$/i

/** Whether a parameter carries the operator's key, which is no buyer's to give. */
export function isKey(openapi: JsonObject, name: string, place: string): boolean {
  if (place !== 'header' && place !== 'query') return false
  const schemes = at(openapi, 'components', 'securitySchemes')
  const declared = isJsonObject(schemes) ? Object.values(schemes) : []
  return (
    KEY.test(name) ||
    (place === 'header' && /^authorization$/i.test(name)) ||
    declared.some(
      (each) =>
        textAt(each, 'type') === 'apiKey' && textAt(each, 'name') === name && textAt(each, 'in') === place,
    )
  )
}

/** The credential of an API that declares its key as a parameter only. */
export function credentialOfKey(name: string, place: string): JsonObject {
  return { [place]: { [name]: variable(name) } }
}
