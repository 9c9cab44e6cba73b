import { isDeepStrictEqual } from 'node:util'
import { ruleNote, spellPrice } from '../../engine/catalog/price/text.ts'
import type { Price } from '../../engine/catalog/price/price.ts'
import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { formatDuration } from '../../engine/base/duration.ts'
import { formatPrice, type Micros } from '../../engine/base/money.ts'
import { spell } from '../route-yaml.ts'
import { findMeterRises, findRises, type Rise } from './price-change.ts'
import type { Item, Snapshot } from './snapshot.ts'

/** What becomes of one thing that is sold or shown. */
export interface Change {
  readonly kind: 'added' | 'removed' | 'changed'
  readonly name: string
  /** In words: `0.005000 → 0.005500 USD (+10.0 %)`. */
  readonly price: string
  /** One line for each argument by which a computed price rises, and each parameter that differs. */
  readonly parameters: readonly string[]
}

export interface Difference {
  readonly changes: readonly Change[]
  /** Documents and terms of payment, one line for each that differs. */
  readonly lines: readonly string[]
  /** Changes that cost buyers something, one line for each kind. */
  readonly alarms: readonly string[]
}

export function compare(before: Snapshot, after: Snapshot): Difference {
  const names = [...new Set([...after.items.keys(), ...before.items.keys()])]
  const judgements = names.map((name) => judge(name, before, after))
  return {
    changes: judgements.flatMap(({ change }) => change ?? []),
    lines: [...documentLines(before, after), ...termLines(before, after)],
    alarms: [...alarmLines(judgements), ...termAlarms(before, after)],
  }
}

interface Judgement {
  readonly name: string
  readonly change?: Change
  readonly alarm?: Alarm | undefined
  /** Arguments with which the price rises. */
  readonly by?: readonly string[]
  /** Why calls of it break. */
  readonly breaks: readonly string[]
}

/** Changes that cost buyers something, and how the report says so. */
const ALARMS = { raised: 'buyers pay more for', gone: 'buyers lose', free: 'given away from now on' } as const
type Alarm = keyof typeof ALARMS

function alarmLines(judgements: readonly Judgement[]): string[] {
  return (['raised', 'gone', 'free'] as const)
    .flatMap((kind) => {
      const names = judgements.flatMap(({ name, alarm, by = [] }) =>
        alarm === kind ? [by.length === 0 ? name : `${name} (by ${by.join(' and ')})`] : [],
      )
      return names.length === 0 ? [] : [`${ALARMS[kind]}: ${names.join(', ')}`]
    })
    .concat(
      judgements.flatMap(({ name, breaks }) =>
        breaks.length === 0 ? [] : [`breaks calls of ${name}: ${breaks.join(', ')}`],
      ),
    )
}

function termAlarms({ terms: before }: Snapshot, { terms: after }: Snapshot): string[] {
  const lost = lostPayments(before, after)
  const [old, now] = [before, after].map((terms) => terms.get('unknown parameters'))
  return [
    ...(lost.length === 0 ? [] : [`buyers can no longer pay by: ${lost.join(', ')}`]),
    ...(old === 'ignore' && now === 'refuse' ? ['breaks calls with parameters that no route declares'] : []),
  ]
}

function judge(name: string, before: Snapshot, after: Snapshot): Judgement {
  const [old, now] = [before.items.get(name), after.items.get(name)]
  const whole = (kind: 'added' | 'removed', item: Item | undefined): Change => {
    return { kind, name, price: priceOf(item), parameters: [] }
  }
  if (now === undefined) return { name, breaks: [], alarm: 'gone', change: whole('removed', old) }
  if (old === undefined) return { name, breaks: [], change: whole('added', now) }
  const parameters = [...parameterLines(old, now), ...sourceLines(old, now)]
  const breaks = breaksOf(old, now)
  if (isSamePrice(old, now) && parameters.length === 0 && breaks.length === 0) return { name, breaks }
  const price = priceChange(old, now)
  const rises = [
    ...(old.price === undefined || now.price === undefined ? [] : findRises(old.price, now.price)),
    ...findMeterRises(old.meter, now.meter),
  ]
  const alarm = alarmOf(old.price, now.price, rises)
  const lines = [...rises.map(({ line }) => `↑ ${line}`), ...parameters]
  const change: Change = { kind: 'changed', name, price, parameters: lines }
  const by = alarm === 'raised' ? rises.flatMap(({ parameter }) => parameter ?? []) : []
  return { name, change, breaks, alarm, by }
}

function alarmOf(old: Price | undefined, now: Price | undefined, rises: readonly Rise[]): Alarm | undefined {
  if (old !== undefined && now === undefined) return 'free'
  if (now === undefined) return undefined
  return old === undefined || highest(now) > highest(old) || rises.length > 0 ? 'raised' : undefined
}

function highest(price: Price): Micros {
  return typeof price === 'object' ? price.highest : price
}

/** The call of the examples may be another; nobody pays more or less for that. */
function isSame(old: Price | undefined, now: Price | undefined): boolean {
  if (typeof old !== 'object' || typeof now !== 'object') return old === now
  return old.lowest === now.lowest && old.highest === now.highest && isDeepStrictEqual(old.rule, now.rule)
}

type Priced = Pick<Item, 'price' | 'meter'>

function isSamePrice(old: Priced, now: Priced): boolean {
  const [before, after] = [old, now].map(({ meter }) => ({ ...meter, example: undefined }))
  return isSame(old.price, now.price) && isDeepStrictEqual(before, after)
}

function priceOf(item: Priced | undefined): string {
  if (item?.price === undefined) return 'free'
  const { price, meter } = item
  return `${spellPrice(price, meter)} USD${ruleNote(price, meter)}`
}

function priceChange(before: Priced, after: Priced): string {
  if (isSamePrice(before, after)) return priceOf(after)
  const [old, now] = [before.price, after.price]
  const isMetered = before.meter !== undefined || after.meter !== undefined
  if (isMetered || typeof old !== 'bigint' || typeof now !== 'bigint')
    return `${priceOf(before)} → ${priceOf(after)}`
  return `${formatPrice(old)} → ${spellPrice(now)} USD (${percent(old, now)} %)`
}

/** A change in percent, rounded to a tenth; a smaller change is `<0.1`. */
function percent(old: bigint, now: bigint): string {
  const [sign, step] = now > old ? ['+', now - old] : ['-', old - now]
  const tenths = (step * 2000n + old) / (old * 2n)
  return tenths === 0n ? `${sign}<0.1` : `${sign}${tenths / 10n}.${tenths % 10n}`
}

function parameterLines(old: Item, now: Item): string[] {
  const names = [...new Set([...old.parameters.keys(), ...now.parameters.keys()])]
  return names.flatMap((name) => {
    const rules = [old, now].map(({ parameters }) => parameters.get(name))
    if (isDeepStrictEqual(rules[0], rules[1])) return []
    const [before, after] = rules.map((each) => (each === undefined ? undefined : spell(each)))
    if (before === undefined) return [`+ ${name}: ${after}`]
    return after === undefined ? [`- ${name}: ${before}`] : [`~ ${name}: ${before} → ${after}`]
  })
}

/** Where an answer comes from, and how old it may be. */
function sourceLines(old: Item, now: Item): string[] {
  const spellTtl = (ttl: number): string => (ttl === 0 ? 'none' : formatDuration(ttl))
  return [
    ...(old.host === undefined || now.host === undefined || old.host === now.host
      ? []
      : [`~ upstream host: ${old.host} → ${now.host}`]),
    ...(old.ttl === undefined || now.ttl === undefined || old.ttl === now.ttl
      ? []
      : [`~ cache: ${spellTtl(old.ttl)} → ${spellTtl(now.ttl)}`]),
  ]
}

function documentLines(before: Snapshot, after: Snapshot): string[] {
  const names = [...new Set([...after.documents.keys(), ...before.documents.keys()])]
  const of = (fits: (name: string) => boolean): string => names.filter(fits).join(', ')
  const isNew = of((name) => !before.documents.has(name))
  const isGone = of((name) => !after.documents.has(name))
  const isOther = of((name) => {
    const [old, now] = [before.documents.get(name), after.documents.get(name)]
    return old !== undefined && now !== undefined && old !== now
  })
  return [
    ...(isOther === '' ? [] : [`documents changed: ${isOther}`]),
    ...(isNew === '' ? [] : [`documents added: ${isNew}`]),
    ...(isGone === '' ? [] : [`documents removed: ${isGone}`]),
  ]
}

function termLines({ terms: before }: Snapshot, { terms: after }: Snapshot): string[] {
  return [...after].flatMap(([name, now]) => {
    const old = before.get(name) ?? now
    return old === now ? [] : [`${name}: ${old} → ${now}`]
  })
}

/** Why calls that work now would fail or read less after the change, one clause each. */
function breaksOf(old: Item, now: Item): string[] {
  const names = [...new Set([...old.parameters.keys(), ...now.parameters.keys()])]
  return [
    ...names.flatMap((name) => parameterBreaks(name, old.parameters.get(name), now.parameters.get(name))),
    ...(old.settle === 'after' && now.settle === 'upfront' ? ['charged before the work'] : []),
    ...(old.ttl !== undefined && now.ttl !== undefined && now.ttl > old.ttl
      ? [`answers may be ${formatDuration(now.ttl)} old`]
      : []),
    ...(['body', 'answer'] as const).flatMap((part) => {
      const [before, after] = [old.media[part], now.media[part]]
      return before === undefined || before === after ? [] : [`the ${part} is no longer ${before}`]
    }),
    ...(old.example === undefined || now.example === undefined
      ? []
      : removedMembers(old.example, now.example, '').map((member) => `the answer loses ${member}`)),
  ]
}

function parameterBreaks(name: string, old: JsonObject | undefined, now: JsonObject | undefined): string[] {
  if (now === undefined) return [`${name} is removed`]
  if (old === undefined) return now['required'] === true ? [`${name} is required`] : []
  const narrowed = Object.keys(now).filter((rule) => isNarrower(rule, old[rule], now[rule]))
  const isOther = old['default'] !== undefined && !isDeepStrictEqual(old['default'], now['default'])
  return [
    ...(now['required'] === true && old['required'] !== true ? [`${name} is required`] : []),
    ...(isOther ? [`${name} has another default`] : []),
    ...narrowed.map((rule) => `${name} has a narrower ${rule}`),
  ]
}

/** Whether values that the old rule allows may break the new one. */
function isNarrower(rule: string, old: Json | undefined, now: Json | undefined): boolean {
  switch (rule) {
    case 'type':
      return old !== now && !(old === 'integer' && now === 'number')
    case 'enum':
      return !Array.isArray(old) || (Array.isArray(now) && old.some((value) => !now.includes(value)))
    case 'minimum':
    case 'minLength':
    case 'minItems':
      return Number(now) > Number(old ?? -Infinity)
    case 'maximum':
    case 'maxLength':
    case 'maxItems':
      return Number(now) < Number(old ?? Infinity)
    case 'items': {
      const before = isJsonObject(old) ? old : {}
      return isJsonObject(now) && Object.keys(now).some((each) => isNarrower(each, before[each], now[each]))
    }
    // What these allow cannot be compared: another rule is taken for a narrower one.
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
    case 'pattern':
    case 'format':
    case 'multipleOf':
    case 'uniqueItems':
    case 'properties':
      return JSON.stringify(old) !== JSON.stringify(now)
    default:
      return false
  }
}

/** Members of an example answer that a later one lacks; of lists the first entry counts. */
function removedMembers(old: Json, now: Json, path: string): string[] {
  if (Array.isArray(old) && Array.isArray(now)) {
    const [before, after] = [old[0], now[0]]
    return before === undefined || after === undefined ? [] : removedMembers(before, after, `${path}[]`)
  }
  if (!isJsonObject(old) || !isJsonObject(now)) return []
  return Object.entries(old).flatMap(([name, before]) => {
    const member = path === '' ? name : `${path}.${name}`
    const after = now[name]
    return after === undefined ? [member] : removedMembers(before, after, member)
  })
}

/** Networks and protocols that buyers can no longer pay with, by the terms of payment before and after. */
function lostPayments(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return ['x402', 'mpp'].flatMap((name) => {
    const [old = 'none', now = 'none'] = [before, after].map((terms) => terms.get(`payments ${name}`))
    if (old === 'none' || old === now) return []
    if (now === 'none') return [name]
    if (name === 'mpp') return [old]
    const kept = now.split(', ')
    return old.split(', ').filter((network) => !kept.includes(network))
  })
}
