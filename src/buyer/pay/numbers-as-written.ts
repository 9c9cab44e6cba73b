import type { Json } from '../../engine/base/json.ts'

/** A string or a number of a JSON text. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g
/** No JSON text holds it unescaped. */
const NUMBER = '\u0000'

/** Numbers that JavaScript would print in another way, such as large integers, become marked texts. Throws when it is no JSON. */
export function parseNumbersAsWritten(text: string): Json {
  JSON.parse(text)
  const marked = text.replace(TOKEN, (token) =>
    token.startsWith('"') || String(Number(token)) === token ? token : JSON.stringify(NUMBER + token),
  )
  return JSON.parse(marked)
}

/** JSON text with the marked texts as the numbers they were. */
export function printNumbersAsWritten(json: string): string {
  return json.replace(/"\\u0000(-?\d[\d.eE+-]*)"/g, '$1')
}
