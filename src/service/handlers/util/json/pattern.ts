import { RE2JS, RE2JSException } from 're2js'

/** A regular expression of the caller, matched in time linear in the text. */
export interface Pattern {
  /** Whether it matches somewhere in the text. */
  readonly search: (text: string) => boolean
  /** Whether it matches the text from end to end. */
  readonly match: (text: string) => boolean
}

/**
 * Compiles ECMAScript syntax for RE2, which has no lookaround, no backreference and no repeat above 1000: what would
 * make time exponential cannot be said. Returns undefined for such a pattern, and for one that is malformed.
 */
export function compilePattern(source: string): Pattern | undefined {
  try {
    const expression = RE2JS.compile(RE2JS.translateRegExp(source))
    return { search: (text) => expression.test(text), match: (text) => expression.testExact(text) }
  } catch (error) {
    if (error instanceof RE2JSException) return undefined
    throw error
  }
}
