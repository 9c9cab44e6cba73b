import { isJsonObject, type Json, type JsonObject } from '../../json.ts'
import { PRICE_DECIMALS } from '../../money.ts'

/** Undefined for what is no JSON object. */
export function readObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The value at a path of keys, whatever stands there. */
export function at(value: Json | undefined, ...keys: readonly string[]): Json | undefined {
  return keys.reduce<Json | undefined>(
    (found, key) => (isJsonObject(found) && Object.hasOwn(found, key) ? found[key] : undefined),
    value,
  )
}

export function textAt(value: Json | undefined, ...keys: readonly string[]): string | undefined {
  const found = at(value, ...keys)
  return typeof found === 'string' ? found : undefined
}

export function listAt(value: Json | undefined, ...keys: readonly string[]): readonly Json[] {
  const found = at(value, ...keys)
  return Array.isArray(found) ? found : []
}

export function membersAt(value: Json | undefined, ...keys: readonly string[]): [string, Json][] {
  const found = at(value, ...keys)
  return isJsonObject(found) ? Object.entries(found) : []
}

/**
 * `limit*` must be given, `country=US` has a default, the rest may be left out. White space is as one space, and no
 * default by itself: what is written in Markdown keeps no more of it.
 */
export function spellParameter(name: string, required: boolean, value: Json | undefined): string {
  if (required) return `${name}*`
  const shown = value === undefined ? '' : spellValue(value).replace(/\s+/g, ' ')
  return shown.trim() === '' ? name : `${name}=${shown}`
}

export function spellValue(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** `none` when there are none: it differs from not being spoken of. */
export function spellParameters(spelled: readonly string[]): string {
  return spelled.length === 0 ? NONE : spelled.join(', ')
}

export const NONE = 'none'

export function spellAvailable(available: boolean): string {
  return available ? 'yes' : 'no'
}

/** An address of this service as its path, templates in braces. */
export function pathOf(url: string): string {
  const path = url.replace(/^https?:\/\/[^/]+/, '').replace(/[?#].*$/, '')
  return path.replaceAll('%7B', '{').replaceAll('%7D', '}')
}

/** Atomic units of a token as a price with at least six decimals; undefined for what is no amount. */
export function priceOfAmount(amount: string | undefined, decimals: number): string | undefined {
  if (amount === undefined || !/^\d+$/.test(amount)) return undefined
  const digits = amount.padStart(decimals + 1, '0')
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '')
  return `${digits.slice(0, digits.length - decimals)}.${fraction.padEnd(PRICE_DECIMALS, '0')}`
}
