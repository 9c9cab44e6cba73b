import { isIPv6 } from 'node:net'
import { validateMnemonic } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english'
import { electronicFormatIBAN, isValidIBAN } from 'ibantools'
import { parsePhoneNumberFromString, type CountryCode } from 'libphonenumber-js'
import { stdnum } from 'stdnum'
import { guardRules, type Kind } from './rules.ts'

/** Personal data or a secret at a place in the text. */
export interface Exposure {
  readonly type: string
  readonly group: Kind['group']
  readonly start: number
  readonly end: number
}

/** Personal data and secrets of known forms, in the order of the text; of two in one place the one that begins first. */
export function findPrivateData(text: string): Exposure[] {
  const found = guardRules()
    .kinds.flatMap((kind) =>
      Array.from(text.matchAll(kind.pattern), ({ 0: match, index }) => {
        const length = lengthOf(kind, match)
        return { type: kind.type, group: kind.group, start: index, end: index + length }
      }),
    )
    .filter(({ start, end }) => end > start)
  // A secret hides what is inside of it, and is not hidden by it.
  const rank = ({ group }: Exposure) => (group === 'secrets' ? 0 : 1)
  found.sort((one, other) => one.start - other.start || rank(one) - rank(other) || other.end - one.end)
  const kept: Exposure[] = []
  for (const each of found) {
    const last = kept.at(-1)
    if (last === undefined || each.start >= last.end) kept.push(each)
    else if (rank(each) < rank(last)) kept[kept.length - 1] = each
  }
  return kept
}

/** How much of a match is what it looks like; 0 when a check refuses it. */
function lengthOf({ check }: Kind, match: string): number {
  switch (check) {
    case undefined:
      return match.length
    case 'iban':
      return longest(match, (piece) => isValidIBAN(electronicFormatIBAN(piece) ?? ''))
    case 'card':
      return longest(match, isCard)
    case 'ipv6':
      // Shorter ones are names with a scope, as in C++.
      return isIPv6(match) && match.split(':').length > 3 ? match.length : 0
    case 'no_placeholder':
      return PLACEHOLDER.test(match) ? 0 : match.length
    case 'seed_phrase':
      return isSeedPhrase(match) ? match.length : 0
    case 'phone':
      return isPhone(match) ? match.length : 0
    default:
      return isNational(check, match) ? match.length : 0
  }
}

/** 12, 15, 18, 21 or 24 words of BIP-39 with the right checksum, with other words around them or not. */
function isSeedPhrase(match: string): boolean {
  const words = match.toLowerCase().split(/[ \t\n,]+/)
  return [24, 21, 18, 15, 12].some((count) =>
    words.some(
      (_, at) =>
        at + count <= words.length && validateMnemonic(words.slice(at, at + count).join(' '), wordlist),
    ),
  )
}

/** Countries whose national numbers are recognized without their code. */
const PHONED: readonly CountryCode[] = [
  ...(['DE', 'FR', 'GB', 'ES', 'IT', 'PT', 'NL', 'BE', 'AT', 'CH', 'PL', 'SE', 'US', 'BR', 'MX'] as const),
  ...(['AR', 'RU', 'TR', 'IN', 'CN', 'JP', 'KR', 'AU', 'ZA', 'EG', 'SA'] as const),
]

function isPhone(match: string): boolean {
  return PHONED.some((country) => parsePhoneNumberFromString(match, country)?.isValid() === true)
}

/** By the check digits of the country, as in `BR.cpf`. */
function isNational(check: string, match: string): boolean {
  const [country = '', name = ''] = check.split('.')
  const number = Object.entries(stdnum).find(([code]) => code === country)?.[1]
  const validator = Object.entries(number ?? {}).find(([id]) => id === name)?.[1]
  if (validator === undefined) throw new Error(`stdnum knows no ${check}`)
  return validator.validate(match).isValid
}

const PLACEHOLDER =
  /(?:your|example|placeholder|changeme|redacted|xxxx|\*{4}|\.{4}|<|\$\{|\{\{|process\.|env\.|getenv|\(|localhost|127\.0\.0\.1|user(?:name)?:pass(?:word)?@|foo|secret['"]?$|p(?:ass)?w(?:or)?d@host)/i

/** A number may be followed by the next one in the text: the longest beginning, up to a gap, that passes. */
function longest(match: string, isRight: (piece: string) => boolean): number {
  const ends = [match.length, ...Array.from(match.matchAll(/[ -]/g), ({ index }) => index).reverse()]
  return ends.find((end) => isRight(match.slice(0, end))) ?? 0
}

/** 13 to 19 digits with a Luhn check digit, not all equal. */
function isCard(text: string): boolean {
  const digits = text.replace(/\D/g, '')
  if (digits.length < 13 || digits.length > 19 || new Set(digits).size === 1) return false
  const sum = Array.from(digits)
    .reverse()
    .reduce((total, digit, place) => {
      const value = Number(digit) * (place % 2 === 0 ? 1 : 2)
      return total + (value > 9 ? value - 9 : value)
    }, 0)
  return sum % 10 === 0
}

/** What the reader may see of it: enough to find it, too little to use it. */
export function masked({ type, group }: Exposure, value: string): string {
  if (type === 'email') {
    const [local = '', domain = ''] = value.split('@')
    return `${local.slice(0, 1)}***@${domain.slice(0, 1)}***${domain.slice(domain.lastIndexOf('.'))}`
  }
  if (group === 'secrets') return `${value.slice(0, 4)}***`
  return value.length > 8 ? `***${value.slice(-4)}` : '***'
}
