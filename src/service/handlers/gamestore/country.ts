import { InvalidParameter } from '../../../engine/index.ts'

/**
 * The country of a request as the game store writes it: two capital letters. Throws `InvalidParameter`.
 *
 * @example
 * readCountry(' uk ') // 'GB'
 */
export function readCountry(text: string): string {
  const letters = text.trim()
  // Looked at before the capitals are made: they would turn ß into SS.
  if (!/^[A-Za-z]{2}$/.test(letters)) {
    throw new InvalidParameter('country', 'country must be an ISO 3166-1 alpha-2 code')
  }
  const country = letters.toUpperCase()
  // In wide use, but not the code of the standard.
  return country === 'UK' ? 'GB' : country
}
