import { hash } from 'node:crypto'

/** A JSON value. */
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
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export type StrictJson =
  | { readonly kind: 'json'; readonly value: Json }
  /** Why it is refused, as a phrase without subject. */
  | { readonly kind: 'fault'; readonly sentence: string }

export interface JsonSize {
  /** Nesting levels of lists and objects. */
  readonly depth: number
  /** Upper bound of the number of values and member names. */
  readonly values: number
}

/**
 * Measures a JSON text before it is parsed: a list of two bytes takes fifty bytes of memory. For invalid JSON the result
 * is an upper bound of what a parser creates before it fails.
 */
export function measureJson(json: Uint8Array): JsonSize {
  let [level, depth, values, isString] = [0, 0, 1, false]
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at]
    if (isString) {
      if (byte === BACKSLASH) at += 1
      else if (byte === QUOTE) isString = false
    } else if (byte === QUOTE) isString = true
    else if (byte === COMMA || byte === COLON) values += 1
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      values += 1
      level += 1
      if (level > depth) depth = level
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) level -= 1
  }
  return { depth, values }
}

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Parses JSON that every reader understands alike: texts are Unicode, no integer is rounded, and no object has a key twice
 * (RFC 7493, sections 2.1 to 2.3).
 */
export function parseStrictJson(text: string): StrictJson {
  let value: Json
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'fault', sentence: 'is not JSON' }
  }
  const sentence = findFault(text)
  return sentence === undefined ? { kind: 'json', value } : { kind: 'fault', sentence }
}

/** A JSON text may contain half of a pair as an escape sequence only. */
const SURROGATE = /\\u[dD][89a-fA-F]/

/** Scans a valid JSON text for a broken text, a duplicate key or a rounded number. */
function findFault(json: string): string | undefined {
  const hasSurrogates = SURROGATE.test(json)
  const open: (Set<string> | undefined)[] = []
  let isKey = false
  for (let at = 0; at < json.length; at += 1) {
    switch (json[at]) {
      case '{':
      case '[':
        isKey = json[at] === '{'
        open.push(isKey ? new Set() : undefined)
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
        if (hasSurrogates && !isUnicode(json.slice(at, end + 1)))
          return 'has a text with half of a surrogate pair, which UTF-8 cannot carry'
        if (isKey) {
          const name: string = JSON.parse(json.slice(at, end + 1))
          const names = open.at(-1)
          if (names?.has(name) === true) return `has the key ${JSON.stringify(name.slice(0, 64))} twice`
          names?.add(name)
        }
        isKey = false
        at = end
        break
      }
      default: {
        if (!/[-\d]/.test(json[at] ?? '')) break
        NUMBER.lastIndex = at
        const [number = ''] = NUMBER.exec(json) ?? []
        if (isRounded(number))
          return `has the number ${number.slice(0, 40)}, which not every reader keeps: send a text`
        at += number.length - 1
      }
    }
  }
  return undefined
}

/** Whether the text of a JSON string has no half of a surrogate pair: other code units would be sent than were counted. */
function isUnicode(quoted: string): boolean {
  const text: string = SURROGATE.test(quoted) ? JSON.parse(quoted) : ''
  return !/\p{Surrogate}/u.test(text)
}

const NUMBER = /-?\d[\d.eE+-]*/y

/** Whether a number loses precision: integers above 2^53 may be rounded, the largest numbers become infinite. */
function isRounded(number: string): boolean {
  if (!Number.isFinite(Number(number))) return true
  return number.length > 15 && /^-?\d+$/.test(number) && BigInt(number) !== BigInt(Number(number))
}

/** Position of the closing quote: the next one after an even number of backslashes. */
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

/** JSON in ASCII only, which is stored in one byte per character and fast to send. */
export function asciiJson(value: unknown): string {
  return escapeNonAscii(JSON.stringify(value))
}

/** Escapes the characters of a JSON text that are not ASCII, which occur in strings only. */
export function escapeNonAscii(json: string): string {
  return slim(
    json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  )
}

/**
 * Copies an ASCII text into one byte per character. V8 uses two bytes for a slice of a text with any wider
 * character, and for every text joined to it: such an answer takes twice as long to join and several times as long
 * to send.
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

/** Removes undefined members, which JSON does not have. */
export function compact(members: Readonly<Record<string, Json | undefined>>): JsonObject {
  const kept: Record<string, Json> = {}
  for (const [key, value] of Object.entries(members)) if (value !== undefined) kept[key] = value
  return kept
}
