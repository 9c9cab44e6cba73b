import { checkVAT } from 'jsvat'
import type { VatCheckResult } from 'jsvat'
import type { JsonObject } from 'ratecard/handler'
import { COUNTRIES } from './vat-countries.ts'

/**
 * Checks a VAT number by the format and the check digits of its country, offline: `registered` stays null, since whether
 * the number was ever given out only the country's register knows. Northern Ireland (XI) follows the British rules.
 */
export function checkVat(input: string): JsonObject {
  const number = input.toUpperCase().replaceAll(/[\s.,/-]/g, '')
  // without its letters a number would be tried as Brazilian, the one country that writes none
  const result = checkVAT(number.replace(/^XI/, 'GB'), /^[A-Z]{2}/.test(number) ? COUNTRIES : [])
  return {
    valid: result.isValid,
    country: result.country?.isoCode.short ?? null,
    country_name: result.country?.name ?? null,
    number,
    format_valid: result.isValidFormat,
    registered: null,
    errors: errorsOf(result),
  }
}

function errorsOf({ isValid, isSupportedCountry, isValidFormat }: VatCheckResult): readonly string[] {
  if (isValid) return []
  return [!isSupportedCountry ? 'unsupported_country' : !isValidFormat ? 'wrong_format' : 'wrong_checksum']
}
