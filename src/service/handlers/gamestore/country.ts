import { InvalidParameter } from 'ratecard/handler'
import { isCountry } from '../../data/countries.ts'

/**
 * The country of a request as the game store writes it: two capital letters. Throws `InvalidParameter`.
 *
 * @example
 * readCountry(' uk ') // 'GB'
 */
export function readCountry(text: string, parameter = 'country'): string {
  const letters = text.trim()
  // Looked at before the capitals are made: they would turn ß into SS.
  const capitals = /^[A-Za-z]{2}$/.test(letters) ? letters.toUpperCase() : ''
  // In wide use, but not the code of the standard.
  const country = capitals === 'UK' ? 'GB' : capitals
  if (isCountry(country)) return country
  throw new InvalidParameter(parameter, `${parameter} must be an ISO 3166-1 alpha-2 code`)
}
