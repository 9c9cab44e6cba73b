import { InvalidParameter } from 'ratecard/handler'

/** Deeper documents are refused: everything that follows may then recurse without a care for the stack. */
export const MAX_DEPTH = 64

/** What a parsed value no longer shows of its text. */
export interface Facts {
  /** Positions of keys that repeat inside their object. */
  readonly repeatedKeys: readonly number[]
  /** Positions of numbers that a 64-bit float cannot print again with the same digits. */
  readonly roundedNumbers: readonly number[]
}

/** What may come next; the names read after "expecting". */
type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma or end'

interface Container {
  readonly close: '}' | ']'
  readonly keys: Set<string>
}

const SPACE = /[ \t\n\r]*/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const LITERAL = /true|false|null/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/**
 * Walks over JSON text (RFC 8259) once, without recursion. It exists next to `JSON.parse` for three things that one does
 * not give: a fault in our own words with its position (UTF-16 units from 0), a limit on depth that holds before
 * anything recurses, and the facts that parsing loses. Throws `InvalidParameter` for the parameter `name`.
 */
export function scan(name: string, text: string): Facts {
  const repeatedKeys: number[] = []
  const roundedNumbers: number[] = []
  const open: Container[] = []
  let expected: Expected = 'value'
  let at = match(SPACE, text, 0)
  let ended = false

  while (!ended) {
    const character = text[at]
    const inside = open.at(-1)
    if (expected === 'comma or end') {
      if (inside === undefined) {
        if (character !== undefined) throw unexpected(name, text, at)
        ended = true
      } else if (character === ',') {
        at += 1
        expected = inside.close === '}' ? 'key' : 'value'
      } else if (character === inside.close) {
        at += 1
        open.pop()
      } else throw unexpected(name, text, at)
    } else if (expected === 'colon') {
      if (character !== ':') throw unexpected(name, text, at)
      at += 1
      expected = 'value'
    } else if (inside !== undefined && expected.endsWith(inside.close) && character === inside.close) {
      at += 1
      open.pop()
      expected = 'comma or end'
    } else if (expected === 'key' || expected === 'key or }') {
      if (character !== '"') throw unexpected(name, text, at)
      const end = endOfString(name, text, at)
      const key: string = JSON.parse(text.slice(at, end))
      if (inside?.keys.has(key)) repeatedKeys.push(at)
      inside?.keys.add(key)
      at = end
      expected = 'colon'
    } else if (character === '{' || character === '[') {
      if (open.length === MAX_DEPTH) {
        throw new InvalidParameter(name, `${name} is nested deeper than ${MAX_DEPTH} levels`, {
          position: at,
          max_depth: MAX_DEPTH,
        })
      }
      open.push({ close: character === '{' ? '}' : ']', keys: new Set() })
      at += 1
      expected = character === '{' ? 'key or }' : 'value or ]'
    } else {
      const end = endOfScalar(name, text, at)
      if (isRounded(name, text.slice(at, end), at)) roundedNumbers.push(at)
      at = end
      expected = 'comma or end'
    }
    at = match(SPACE, text, at)
  }
  return { repeatedKeys, roundedNumbers }
}

function endOfScalar(name: string, text: string, at: number): number {
  if (text[at] === '"') return endOfString(name, text, at)
  const end = Math.max(match(NUMBER, text, at), match(LITERAL, text, at))
  if (end === at) throw unexpected(name, text, at)
  return end
}

function endOfString(name: string, text: string, start: number): number {
  let at = start + 1
  while (text[at] !== '"') {
    const character = text[at]
    if (character === undefined || character < ' ') throw unexpected(name, text, at)
    const end = character === '\\' ? match(ESCAPE, text, at) : at + 1
    // the character after the backslash is the one that does not belong
    if (end === at) throw unexpected(name, text, at + 1)
    at = end
  }
  return at + 1
}

/** Refuses what would become Infinity: JSON has no word for it, so it would turn into null in silence. */
function isRounded(name: string, token: string, position: number): boolean {
  if (!/^[-\d]/.test(token)) return false
  const value = Number(token)
  if (!Number.isFinite(value)) {
    throw new InvalidParameter(name, `${name} has a number too large to hold at position ${position}`, {
      position,
    })
  }
  return digitsOf(token) !== digitsOf(String(value))
}

/** Significant digits of a number as written, without sign, point, exponent and outer zeros. */
function digitsOf(token: string): string {
  const digits = token.split(/[eE]/, 1).join('').replaceAll(/\D/g, '')
  let end = digits.length
  while (digits[end - 1] === '0') end -= 1
  let start = 0
  while (start < end && digits[start] === '0') start += 1
  return digits.slice(start, end)
}

function match(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return at + (pattern.exec(text)?.[0].length ?? 0)
}

function unexpected(name: string, text: string, position: number): InvalidParameter {
  const code = text.codePointAt(position)
  const what = code === undefined ? 'unexpected end of text' : `unexpected character ${shown(code)}`
  return new InvalidParameter(name, `${name} is not valid JSON: ${what} at position ${position}`, {
    position,
  })
}

/** A visible character in quotes, any other by its number. */
function shown(code: number): string {
  const character = String.fromCodePoint(code)
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(character)
    ? `'${character}'`
    : `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}
