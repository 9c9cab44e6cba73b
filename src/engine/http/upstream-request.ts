import {
  fillPath,
  upstreamParameters,
  variablesOf,
  type Operation,
  type Upstream,
} from '../catalog/catalog.ts'
import { Failure, InvalidParameter } from '../base/errors.ts'
import type { Argument, Arguments } from '../handler.ts'
import { isJsonObject } from '../base/json.ts'

/** The part of an operation that determines its upstream request. */
export type Proxied = Pick<Operation, 'method' | 'parameters' | 'body' | 'response'> & {
  readonly upstream: Upstream
}

/** A request to the upstream: contains only parameters and body of the buyer's request. */
export interface UpstreamRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Headers
  readonly body: string | Uint8Array | undefined
}

/** Value of an environment variable that the catalog names. */
export type Secret = (name: string) => string | undefined

export function buildRequest(operation: Proxied, args: Arguments): UpstreamRequest {
  const { method, upstream, response } = operation
  const headers = new Headers({ accept: response.mediaType ?? 'application/json, text/*;q=0.5, */*;q=0.1' })
  for (const [name, template] of Object.entries(upstream.headers)) {
    const [parameter = ''] = upstreamParameters(template)
    if (template === `{${parameter}}` && args[parameter] === undefined) continue
    const value = fill(template, args)
    try {
      headers.set(name, value)
    } catch {
      throw new InvalidParameter(parameter, 'has characters that no header can carry')
    }
    if (headers.get(name) !== value)
      throw new InvalidParameter(parameter, 'begins or ends with white space, which no header can carry')
  }
  const body = bodyOf(operation, args)
  if (body !== undefined && operation.body !== undefined)
    headers.set('content-type', operation.body.mediaType)
  return { method, url: addressOf(operation, args), headers, body }
}

function bodyOf({ body, parameters }: Proxied, args: Arguments): string | Uint8Array | undefined {
  if (body === undefined) return undefined
  if (body.form === 'whole') {
    const { body: whole } = args
    if (whole instanceof Uint8Array || whole === undefined) return whole
    if (body.kind === 'form' && isJsonObject(whole)) return formOf(Object.entries(whole))
    return body.kind === 'json' ? JSON.stringify(whole) : spell(whole)
  }
  const members = parameters.flatMap(({ name, in: place }): [string, Argument][] => {
    const value = args[name]
    return place === 'body' && value !== undefined ? [[name, value]] : []
  })
  return body.kind === 'json' ? JSON.stringify(Object.fromEntries(members)) : formOf(members)
}

/** Repeats the key of a list for each item. */
function formOf(members: readonly (readonly [string, Argument])[]): string {
  const pairs = members.flatMap(([name, value]) =>
    itemsOf(value).map((item): [string, string] => [name, item]),
  )
  return new URLSearchParams(pairs).toString()
}

function addressOf({ upstream, parameters, body }: Proxied, args: Arguments): URL {
  const { url: template, headers } = upstream
  const [path = '', query = ''] = template.split('?')
  const filled = fillPath(path, (name) => spell(args[name]))
  // Dot segments need no encoding and would lead to paths that are not for sale.
  if (/\/\.{1,2}(?:[/#]|$)/.test(filled))
    throw new Failure('not_found', 'the upstream has nothing under these parameters')
  const url = new URL(filled)
  for (const [key, value] of new URLSearchParams(query)) {
    const [name] = upstreamParameters(value)
    const argument = name === undefined ? undefined : args[name]
    if (value === `{${name}*}`) for (const item of itemsOf(argument)) url.searchParams.append(key, item)
    // A parameter that the buyer omitted is not sent as an empty text.
    else if (value !== `{${name}}` || argument !== undefined) url.searchParams.append(key, fill(value, args))
  }
  const placed = new Set([
    ...[template, ...Object.values(headers)].flatMap(upstreamParameters),
    ...parameters.flatMap(({ name, in: place }) => (place === 'body' ? [name] : [])),
  ])
  if (body?.form === 'whole') placed.add('body')
  for (const [name, value] of Object.entries(args))
    if (value !== undefined && !placed.has(name)) url.searchParams.append(name, spell(value))
  return url
}

function fill(template: string, args: Arguments): string {
  return template.replace(/\{([^{}/]*)\}/g, (_, name: string) => spell(args[name]))
}

function spell(value: Argument | undefined): string {
  if (Array.isArray(value)) return itemsOf(value).join(',')
  return typeof value === 'object' ? JSON.stringify(value) : String(value ?? '')
}

function itemsOf(value: Argument | undefined): string[] {
  if (value === undefined) return []
  return Array.isArray(value) ? value.map((item) => spell(item)) : [spell(value)]
}

/** Adds the operator's credential, replacing any value of that name. Throws `Failure` with `not_configured`. */
export function authorize(
  { url, headers }: Pick<UpstreamRequest, 'url' | 'headers'>,
  { credential }: Upstream,
  secret: Secret,
): void {
  const value = (name: string): string => {
    const found = secret(name)
    if (found !== undefined) return found
    throw new Failure('not_configured', 'the operator has not set the key of this upstream')
  }
  try {
    switch (credential?.kind) {
      case undefined:
        return
      case 'bearer':
        return headers.set('authorization', `Bearer ${value(credential.token)}`)
      case 'header':
        for (const [name, variable] of Object.entries(credential.values)) headers.set(name, value(variable))
        return
      case 'query':
        for (const [key, variable] of Object.entries(credential.values))
          url.searchParams.set(key, value(variable))
        return
      case 'basic': {
        const password = credential.password === undefined ? '' : value(credential.password)
        return headers.set('authorization', `Basic ${encode(`${value(credential.user)}:${password}`)}`)
      }
    }
  } catch (fault) {
    if (fault instanceof Failure) throw fault
    // The message of the original error contains the key.
    throw new Failure('not_configured', 'the key of this upstream has characters that no header can carry')
  }
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64')
}

/** Shorter texts are not secret, and would match in ordinary words. */
const SHORTEST_SECRET = 4

/** The operator's keys, in the forms in which they are sent. */
export function secretsOf({ credential }: Upstream, secret: Secret): readonly string[] {
  const values = variablesOf(credential).map((name) => secret(name) ?? '')
  const joined = credential?.kind === 'basic' ? [encode(`${values[0] ?? ''}:${values[1] ?? ''}`)] : []
  return [...values, ...joined]
}

/** Removes secrets from an upstream's answer, in the forms in which it may repeat them. */
export function conceal(text: string, secrets: readonly string[]): string {
  const forms = secrets
    .filter(({ length }) => length >= SHORTEST_SECRET)
    .flatMap((value) => [value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1)])
    .toSorted((one, other) => other.length - one.length)
  return forms.reduce((shown, form) => shown.replaceAll(form, '***'), text)
}
