import { isValidBIC } from 'ibantools'
import type { JsonObject } from 'ratecard/handler'

interface Reading {
  readonly type: string
  readonly country: string | null
  readonly valid: boolean
  /** A format proves little: most codes of the right length have it. */
  readonly verified_by: 'checksum' | 'format'
  readonly details?: JsonObject
}

/** Federal Reserve districts by the first two digits, 01 to 12. */
const DISTRICTS = [
  'Boston',
  'New York',
  'Philadelphia',
  'Cleveland',
  'Richmond',
  'Atlanta',
  'Chicago',
  'St. Louis',
  'Minneapolis',
  'Kansas City',
  'Dallas',
  'San Francisco',
] as const

/**
 * Recognizes a bank routing code and checks what can be checked offline: US ABA, UK sort code, Australian BSB, Canadian
 * transit number, Indian IFSC, BIC. Six bare digits are a sort code or a BSB alike: `possible_types` names both.
 */
export function checkRouting(input: string): JsonObject {
  const written = input.trim().toUpperCase()
  const code = written.replaceAll(/[\s-]/g, '')
  const readings = readingsOf(written, code)
  const [best] = readings
  return {
    valid: best?.valid ?? false,
    type: best?.type ?? null,
    country: best?.country ?? null,
    code,
    possible_types: readings.map((reading) => reading.type),
    verified_by: best?.verified_by ?? null,
    details: best?.details ?? null,
    errors: best === undefined ? ['unknown_format'] : best.valid ? [] : [`invalid_${best.type}`],
  }
}

/** What the code may be, likeliest first. */
function readingsOf(written: string, code: string): readonly Reading[] {
  if (/^\d{9}$/.test(code)) return [aba(code)]
  if (/^\d{8}$/.test(code)) {
    const details = { institution: code.slice(5), transit: code.slice(0, 5) }
    return [{ ...formatted('ca_transit', 'CA'), details }]
  }
  if (/^\d{6}$/.test(code)) {
    const both = [formatted('uk_sort_code', 'GB'), formatted('au_bsb', 'AU')]
    if (/^\d{3}-\d{3}$/.test(written)) return both.slice(1)
    return /^\d\d([ -])\d\d\1\d\d$/.test(written) ? both.slice(0, 1) : both
  }
  if (/^[A-Z]{4}0[A-Z0-9]{6}$/.test(code)) {
    return [{ ...formatted('ifsc', 'IN'), details: { bank: code.slice(0, 4), branch: code.slice(5) } }]
  }
  if (/^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$/.test(code)) return [bic(code)]
  return []
}

function formatted(type: string, country: string): Reading {
  return { type, country, valid: true, verified_by: 'format' }
}

function bic(code: string): Reading {
  const valid = isValidBIC(code)
  const details = { bank: code.slice(0, 4), location: code.slice(6, 8), branch: code.slice(8) || null }
  return { type: 'bic', country: valid ? code.slice(4, 6) : null, valid, verified_by: 'format', details }
}

/** American Bankers Association: the weighted sum 3-7-1 is a multiple of ten, and the first two digits are in use. */
function aba(code: string): Reading {
  const sum = Array.from(code).reduce(
    (total, digit, place) => total + Number(digit) * ([3, 7, 1][place % 3] ?? 0),
    0,
  )
  const { kind, district } = abaPrefix(Number(code.slice(0, 2)))
  return {
    type: 'aba',
    country: 'US',
    // Nine zeros have the right sum and are nobody's number.
    valid: sum % 10 === 0 && kind !== null && /[1-9]/.test(code),
    verified_by: 'checksum',
    details: { kind, district },
  }
}

function abaPrefix(prefix: number): { readonly kind: string | null; readonly district: string | null } {
  if (prefix === 0) return { kind: 'us_government', district: null }
  if (prefix === 80) return { kind: 'travelers_cheque', district: null }
  const kinds = { bank: 0, thrift: 20, electronic: 60 }
  for (const [kind, offset] of Object.entries(kinds)) {
    const district = DISTRICTS[prefix - offset - 1]
    if (district !== undefined) return { kind, district }
  }
  return { kind: null, district: null }
}
