/** Text from outside, such as a facilitator’s transaction or a service’s documents, must not command the terminal. */
export function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{FFFD}')
}

/** The same for `JSON.stringify`. */
export function cleanText(_: string, value: unknown): unknown {
  return typeof value === 'string' ? clean(value) : value
}
