import { hash } from 'node:crypto'

/** What JSON can say. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export type JsonObject = { readonly [key: string]: Json }

/**
 * Whether a value is an object, and neither null nor a list. Its members are taken for JSON.
 *
 * @example
 * import { isJsonObject } from 'ratecard/handler'
 *
 * const found: unknown = JSON.parse('{ "name": "tea" }')
 * if (isJsonObject(found)) console.log(found['name'])
 */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Undefined when the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export type StrictJson =
  | { readonly kind: 'json'; readonly value: Json }
  /** Why it is refused, as a sentence without subject. */
  | { readonly kind: 'fault'; readonly sentence: string }

/** No deeper: what is done with a value recursively must not exhaust the stack. */
const DEEPEST_JSON = 200

/** Parses JSON in which no object has a key twice. */
export function parseStrictJson(text: string): StrictJson {
  let value: Json
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'fault', sentence: 'is not JSON' }
  }
  const sentence = findExcess(text)
  return sentence === undefined ? { kind: 'json', value } : { kind: 'fault', sentence }
}

/** Of a text that is JSON: a string is a key where its object has begun, or a comma has come. */
function findExcess(json: string): string | undefined {
  const open: (Set<string> | undefined)[] = []
  let isKey = false
  for (let at = 0; at < json.length; at += 1) {
    switch (json[at]) {
      case '{':
      case '[':
        isKey = json[at] === '{'
        if (open.push(isKey ? new Set() : undefined) > DEEPEST_JSON)
          return `is nested more than ${DEEPEST_JSON} levels deep`
        break
      case '}':
      case ']':
        open.pop()
        break
      case ',':
        isKey = open.at(-1) !== undefined
        break
      case '"': {
        const end = endOfString(json, at)
        if (isKey) {
          const name: string = JSON.parse(json.slice(at, end + 1))
          const names = open.at(-1)
          if (names?.has(name) === true) return `has the key ${JSON.stringify(name.slice(0, 64))} twice`
          names?.add(name)
        }
        isKey = false
        at = end
      }
    }
  }
  return undefined
}

/** The place of its closing quote: the next one before which an even number of backslashes stands. */
function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); ; end = json.indexOf('"', end + 1)) {
    let slashes = 0
    while (json[end - 1 - slashes] === '\\') slashes += 1
    if (slashes % 2 === 0) return end
  }
}

/**
 * RFC 8785: keys sorted by UTF-16 code units, numbers as ECMAScript prints them, no white space.
 *
 * @example
 * import { canonicalJson } from 'ratecard/handler'
 *
 * console.log(canonicalJson({ b: 1, a: [true] })) // {"a":[true],"b":1}
 */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (isJsonObject(value)) {
    const members = Object.keys(value)
      .sort()
      .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`)
    return `{${members.join(',')}}`
  }
  return JSON.stringify(value)
}

/** JSON in ASCII alone: quick to send, for it is kept in one byte a character. */
export function asciiJson(value: unknown): string {
  return escapeNonAscii(JSON.stringify(value))
}

/** The same JSON in ASCII: outside its strings it has nothing else. */
export function escapeNonAscii(json: string): string {
  return slim(
    json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  )
}

/**
 * An ASCII text in one byte a character. V8 takes two for whatever was cut from a text that has one wider character, and
 * for all it is joined to: such an answer takes twice as long to join, and several times as long to send.
 */
export function slim(ascii: string): string {
  return Buffer.from(ascii, 'latin1').toString('latin1')
}

/**
 * base64url SHA-256 of the canonical form: one short name for one value.
 *
 * @example
 * import { digestJson } from 'ratecard/handler'
 *
 * console.log(digestJson({ a: 1, b: 2 }) === digestJson({ b: 2, a: 1 })) // true
 */
export function digestJson(value: Json): string {
  return hash('sha256', canonicalJson(value), 'base64url')
}

/** The object without its undefined members: JSON has no such value. */
export function compact(members: Readonly<Record<string, Json | undefined>>): JsonObject {
  const kept: Record<string, Json> = {}
  for (const [key, value] of Object.entries(members)) if (value !== undefined) kept[key] = value
  return kept
}
