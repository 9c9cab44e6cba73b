import { InvalidParameter, isJsonObject } from 'ratecard/handler'
import type { Json } from 'ratecard/handler'

/**
 * Splits a JSON Pointer (RFC 6901) into unescaped tokens; the empty text is the whole document.
 *
 * @example
 * parsePointer('/a~1b/0') // ['a/b', '0']
 */
export function parsePointer(text: string): readonly string[] {
  if (text !== '' && !text.startsWith('/')) {
    throw new InvalidParameter('schema', 'schema is not a JSON Pointer: it must be empty or start with /')
  }
  if (/~(?![01])/.test(text)) {
    throw new InvalidParameter('schema', 'schema is not a JSON Pointer: after ~ only 0 or 1 may follow')
  }
  return text
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** One more token on a pointer that is written already. */
export function pointTo(path: string, token: string | number): string {
  return `${path}/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** The array index of a token: digits without a leading zero. */
export function indexOf(token: string): number | undefined {
  return /^(?:0|[1-9]\d*)$/.test(token) ? Number(token) : undefined
}

/** The member or element of a token; undefined when missing. */
export function child(value: Json, token: string): Json | undefined {
  if (Array.isArray(value)) {
    const index = indexOf(token)
    return index === undefined ? undefined : value[index]
  }
  return isJsonObject(value) && Object.hasOwn(value, token) ? value[token] : undefined
}

/** The value a pointer names. A pointer to nothing is the caller's error, as RFC 6901 §7 has it. */
export function resolve(document: Json, pointer: string): Json {
  let value: Json = document
  for (const token of parsePointer(pointer)) {
    const next = child(value, token)
    if (next === undefined) {
      throw new InvalidParameter('schema', 'schema points to nothing in data', { token })
    }
    value = next
  }
  return value
}
