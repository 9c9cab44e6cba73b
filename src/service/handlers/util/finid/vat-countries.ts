import { countries } from 'jsvat'
import type { Country } from 'jsvat'

/** The rules of the library, with those replaced that are out of date or check less than the country does. */
export const COUNTRIES: readonly Country[] = countries.map((country) => {
  const { calcFn, rules } = country
  switch (country.codes[0]) {
    case 'BE':
      return { ...country, calcFn: isBelgian, rules: { ...rules, regex: [/^(BE)([01]?\d{9})$/] } }
    case 'FR':
      return { ...country, calcFn: (number) => (/^\d{11}$/.test(number) ? calcFn(number) : isFrench(number)) }
    case 'NL':
      return { ...country, calcFn: (number) => !number.endsWith('B00') && calcFn(number) }
    default:
      return country
  }
})

/** The last two digits make the rest a multiple of 97. Numbers begin with 0 or, since September 2023, with 1. */
function isBelgian(number: string): boolean {
  const digits = number.padStart(10, '0')
  return Number(digits) > 0 && (Number(digits.slice(0, 8)) + Number(digits.slice(8))) % 97 === 0
}

const KEY_CHARACTERS = '0123456789ABCDEFGHJKLMNPQRSTUVWXYZ'

/** A key with a letter: the library believes every one. The rest is a SIREN with its own check digit (Luhn). */
function isFrench(number: string): boolean {
  const [first = '', second = ''] = number
  const [high, low] = [KEY_CHARACTERS.indexOf(first), KEY_CHARACTERS.indexOf(second)]
  const siren = number.slice(2)
  if (high < 0 || low < 0 || !passesLuhn(siren)) return false
  const key = /\d/.test(first) ? high * 24 + low - 10 : high * 34 + low - 100
  return (Number(siren) + 1 + Math.floor(key / 11)) % 11 === key % 11
}

function passesLuhn(digits: string): boolean {
  const sum = Array.from(digits, Number)
    .toReversed()
    .reduce(
      (total, digit, place) => total + (place % 2 === 0 ? digit : Math.floor(digit / 5) + ((digit * 2) % 10)),
      0,
    )
  return sum % 10 === 0
}
