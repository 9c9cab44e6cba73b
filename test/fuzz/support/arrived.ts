import { isJsonObject, type Json } from '../../../src/engine/base/json.ts'
import type { HandlerCall, UpstreamCall } from './recording-shop.ts'
import { isList, type Rate, type Rule, type Sold } from './price-declarations.ts'

/** One argument as the one who serves the call reads it. */
interface Arrived {
  readonly text?: string
  /** Items of a list; an upstream takes everything between two separators for one. */
  readonly items?: readonly string[]
  readonly json?: Json
  readonly bytes?: number
}

const fromText = (text: string): Arrived => ({ text })
const split = (texts: readonly string[]): string[] =>
  texts.flatMap((text) => text.split(/[\s,;|]/u)).filter((item) => item !== '')

function fromTexts(name: string, texts: readonly string[]): Arrived | undefined {
  const [text] = texts
  if (text === undefined) return undefined
  return isList(name) ? { items: split(texts) } : { text }
}

/** `whole`: a list of a body that one schema describes, whose items may be anything. */
function fromJson(value: Json | undefined, form: 'declared' | 'whole'): Arrived | undefined {
  if (value === undefined || value === null) return undefined
  if (Array.isArray(value)) {
    const items = value.map((item) => (typeof item === 'string' ? item : JSON.stringify(item)))
    return { items: form === 'whole' ? items : split(items), json: value }
  }
  if (isJsonObject(value)) return { json: value }
  return { text: typeof value === 'string' ? value : JSON.stringify(value), json: value }
}

/** What arrived of one argument. */
export function arrivedOf(sold: Sold, call: UpstreamCall | HandlerCall, name: string): Arrived | undefined {
  const { form, renamed, defaults } = sold
  const isWhole = form === 'whole' || form === 'array' || form === 'text' || form === 'bytes'
  if (isWhole) {
    const body = bodyOf(sold, call)
    if (body instanceof Uint8Array) return { bytes: body.length }
    if (name === 'body') return typeof body === 'string' ? fromText(body) : fromJson(body, 'whole')
    const given = isJsonObject(body) && Object.hasOwn(body, name) ? body[name] : undefined
    return fromJson(given ?? defaults[name], 'whole')
  }
  const key = renamed[name] ?? name
  if (call.kind === 'handler') {
    const value = call.args[key]
    if (value instanceof Uint8Array) throw new Error('bytes as an argument')
    return fromJson(value, 'declared')
  }
  const { url, headers, bytes } = call
  if (form === 'json') {
    const sent: Json = JSON.parse(bytes.toString())
    return fromJson(isJsonObject(sent) ? sent[key] : undefined, 'declared')
  }
  if (form === 'form') return fromTexts(name, new URLSearchParams(bytes.toString()).getAll(key))
  if (form === 'path' && name === sold.names[0])
    return fromTexts(name, [decodeURIComponent(url.pathname.split('/').at(-1) ?? '')])
  if (form === 'header' && name === 'text') {
    const sent = headers['x-text']
    return typeof sent === 'string' ? fromText(sent) : undefined
  }
  return fromTexts(name, url.searchParams.getAll(key))
}

function bodyOf({ form }: Sold, call: UpstreamCall | HandlerCall): Json | Uint8Array | undefined {
  if (call.kind === 'handler') return call.args['body']
  if (form === 'bytes') return call.bytes
  if (form === 'text') return call.bytes.toString()
  const sent: Json = JSON.parse(call.bytes.toString())
  return sent
}

/** Twelve places, as rates have; parts of the last one count whole. Of negative numbers nothing is paid. */
const FINE = 12

function fine(number: string): bigint {
  const [mantissa = '', power = '0'] = number.toLowerCase().split('e')
  if (mantissa.startsWith('-')) return 0n
  const [whole = '', places = ''] = mantissa.split('.')
  const shift = FINE + Number(power) - places.length
  const digits = whole + places
  if (shift >= 0) return BigInt(digits + '0'.repeat(shift))
  const kept = digits.slice(0, Math.max(0, digits.length + shift))
  const dropped = digits.slice(Math.max(0, digits.length + shift))
  return BigInt(kept || '0') + (/[1-9]/.test(dropped) ? 1n : 0n)
}

const utf8 = (text: string): number => new TextEncoder().encode(text).length
const points = (text: string): number => Array.from(text).length

function counted(rate: Rate, arrived: (name: string) => Arrived | undefined): string {
  const { items_of: items, characters_of: characters, bytes_of: bytes, value_of: value } = rate
  const found = arrived(items ?? characters ?? bytes ?? value ?? '')
  if (found === undefined) return '0'
  if (items !== undefined) return String(found.items?.length ?? 0)
  if (characters !== undefined)
    return String((found.items ?? [found.text ?? '']).reduce((sum, text) => sum + points(text), 0))
  if (bytes !== undefined) return String(found.bytes ?? utf8(found.text ?? JSON.stringify(found.json)))
  return found.text ?? '0'
}

/** What a call costs in millionths of a dollar, by what has arrived: a computation of its own. */
export function costOf(rule: Rule, arrived: (name: string) => Arrived | undefined): bigint {
  let sum = fine(rule.base)
  for (const [name, prices] of Object.entries(rule.by ?? {})) {
    const value = arrived(name)?.text ?? ''
    sum += Object.hasOwn(prices, value) ? fine(prices[value] ?? '0') : 0n
  }
  for (const rate of rule.per ?? []) {
    const above = fine(counted(rate, arrived)) - fine(rate.included)
    const unit = fine(rate.unit)
    const units = above <= 0n ? 0n : above / unit + (above % unit === 0n ? 0n : 1n)
    sum += units * fine(rate.price)
  }
  const micros = sum / 1_000_000n + (sum % 1_000_000n === 0n ? 0n : 1n)
  const most = fine(rule.max) / 1_000_000n
  return micros > most ? most : micros
}
