import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { at, listAt, membersAt, textAt } from '../json-access.ts'
import { snake } from './names.ts'
import { follow } from './reference.ts'

export type Wanted =
  /** The credential in the catalog; undefined: nothing is sent. */
  | { readonly kind: 'credential'; readonly credential: JsonObject | undefined }
  /** What the API wants, which a proxy cannot send. */
  | { readonly kind: 'unfit'; readonly wants: string }

/** What the API wants to see of the operator, in the first way that a proxy can send. */
export function credentialOf(openapi: JsonObject, operation: JsonObject): Wanted {
  const security =
    operation['security'] === undefined ? listAt(openapi, 'security') : listAt(operation, 'security')
  const choices = security.filter(isJsonObject).map((each) => Object.keys(each))
  // An empty choice: it answers without.
  if (choices.length === 0 || choices.some((names) => names.length === 0))
    return { kind: 'credential', credential: undefined }
  for (const names of choices) {
    const forms = names.map((name) => formOf(name, schemeOf(openapi, name)))
    const credential = joined(forms)
    if (credential !== undefined) return { kind: 'credential', credential }
  }
  return { kind: 'unfit', wants: choices.map((each) => each.join(' with ')).join(' or ') }
}

function schemeOf(openapi: JsonObject, name: string): Json | undefined {
  return follow(openapi, {
    $ref: `#/components/securitySchemes/${name.replace(/~/g, '~0').replace(/\//g, '~1')}`,
  })
}

function variable(name: string): string {
  return `UPSTREAM_${snake(name).toUpperCase() || 'KEY'}`
}

function formOf(name: string, scheme: Json | undefined): JsonObject | undefined {
  const [type, key, place] = [textAt(scheme, 'type'), textAt(scheme, 'name'), textAt(scheme, 'in')]
  if (type === 'oauth2' || type === 'openIdConnect') return { bearer: variable(name) }
  if (type === 'apiKey' && key !== undefined && place === 'cookie')
    return { header: { Cookie: variable(name) } }
  if (type === 'apiKey' && key !== undefined && (place === 'header' || place === 'query'))
    return { [place]: { [key]: variable(name) } }
  const way = textAt(scheme, 'scheme')?.toLowerCase()
  if (type !== 'http' || (way !== 'basic' && way !== 'bearer')) return undefined
  const [user, password] = [`${variable(name)}_USER`, `${variable(name)}_PASSWORD`]
  return way === 'basic' ? { basic: { user, password } } : { bearer: variable(name) }
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
  /^(?:x[-_])?(?:api[-_]?(?:key|token|secret)|app[-_]?key|access[-_]?(?:token|key)|auth(?:entication|orization)?[-_]?(?:token|key)|(?:ocp-apim-)?subscription-key|client[-_]?secret)$/i

/** Names that mean the same where the description says so, or where nothing is said and the API has credentials. */
const PERHAPS_KEY = /^(?:x[-_])?(?:token|key|auth|session|secret)$/i
const OF_KEYS = /\b(?:auth\w*|api[- ](?:key|token)|access|bearer|credentials?|secret|scopes?|log ?in)\b/i

/** Whether a parameter or a member of a form carries the operator's credential, which is no buyer's to give. */
export function isCredential(openapi: JsonObject, parameter: Json | undefined): boolean {
  const [name = '', place = 'form'] = [textAt(parameter, 'name'), textAt(parameter, 'in')]
  if (place === 'path') return false
  const declared = schemesOf(openapi)
  const isDeclared = declared.some(
    (each) =>
      textAt(each, 'type') === 'apiKey' && textAt(each, 'name') === name && textAt(each, 'in') === place,
  )
  if (isDeclared || KEY.test(name) || (place === 'header' && /^authorization$/i.test(name))) return true
  if (!PERHAPS_KEY.test(name)) return false
  const description = textAt(parameter, 'description') ?? ''
  return description === '' ? declared.length > 0 : OF_KEYS.test(description)
}

function schemesOf(openapi: JsonObject): Json[] {
  return membersAt(follow(openapi, at(openapi, 'components', 'securitySchemes'))).flatMap(
    ([, each]) => follow(openapi, each) ?? [],
  )
}

/** The credential of an API that declares its key as a parameter only; undefined: a proxy cannot send it there. */
export function credentialOfKey(name: string, place: string): JsonObject | undefined {
  if (place === 'cookie') return { header: { Cookie: variable(name) } }
  return place === 'header' || place === 'query' ? { [place]: { [name]: variable(name) } } : undefined
}
