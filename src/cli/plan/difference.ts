import { formatPrice, isJsonObject, type Json, type JsonObject, type Micros } from '../../engine/internal.ts'
import { spell } from '../route-yaml.ts'
import type { Item, Snapshot } from './snapshot.ts'

/** What becomes of one thing that is sold or shown. */
export interface Change {
  readonly kind: 'added' | 'removed' | 'changed'
  readonly name: string
  /** In words: `0.005000 → 0.005500 USD (+10.0 %)`. */
  readonly price: string
  /** One line for each parameter that differs. */
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
  const told = names.map((name) => judge(name, before, after))
  return {
    changes: told.flatMap(({ change }) => change ?? []),
    lines: [...documentLines(before, after), ...termLines(before, after)],
    alarms: [...alarmLines(told), ...termAlarms(before, after)],
  }
}

interface Judgement {
  readonly name: string
  readonly change?: Change
  readonly alarm?: Alarm
  /** Why calls of it break. */
  readonly breaks: readonly string[]
}

/** Changes that cost buyers something, and how the report says so. */
const ALARMS = { raised: 'buyers pay more for', gone: 'buyers lose', free: 'given away from now on' } as const
type Alarm = keyof typeof ALARMS

function alarmLines(told: readonly Judgement[]): string[] {
  return (['raised', 'gone', 'free'] as const)
    .flatMap((kind) => {
      const names = told.flatMap(({ name, alarm }) => (alarm === kind ? [name] : []))
      return names.length === 0 ? [] : [`${ALARMS[kind]}: ${names.join(', ')}`]
    })
    .concat(
      told.flatMap(({ name, breaks }) =>
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
  if (now === undefined) {
    const price = priceOf(old?.price)
    return {
      name,
      breaks: [],
      alarm: 'gone',
      change: { kind: 'removed', name, price, parameters: [] },
    }
  }
  if (old === undefined)
    return {
      name,
      breaks: [],
      change: { kind: 'added', name, price: priceOf(now.price), parameters: [] },
    }
  const parameters = parameterLines(old, now)
  const breaks = breaksOf(old, now)
  if (old.price === now.price && parameters.length === 0 && breaks.length === 0) return { name, breaks }
  const price = priceChange(old.price, now.price)
  const alarm = alarmOf(old.price, now.price)
  const change: Change = { kind: 'changed', name, price, parameters }
  return alarm === undefined ? { name, change, breaks } : { name, change, breaks, alarm }
}

function alarmOf(old: Micros | undefined, now: Micros | undefined): Alarm | undefined {
  if (old !== undefined && now === undefined) return 'free'
  return now !== undefined && (old === undefined || now > old) ? 'raised' : undefined
}

function priceOf(price: Micros | undefined): string {
  return price === undefined ? 'free' : `${formatPrice(price)} USD`
}

function priceChange(old: Micros | undefined, now: Micros | undefined): string {
  if (old === now) return priceOf(now)
  if (old === undefined || now === undefined) return `${priceOf(old)} → ${priceOf(now)}`
  return `${formatPrice(old)} → ${priceOf(now)} (${percent(old, now)} %)`
}

/** To a tenth, rounded; what is less is shown as more than nothing. */
function percent(old: bigint, now: bigint): string {
  const [sign, step] = now > old ? ['+', now - old] : ['-', old - now]
  const tenths = (step * 2000n + old) / (old * 2n)
  return tenths === 0n ? `${sign}<0.1` : `${sign}${tenths / 10n}.${tenths % 10n}`
}

function parameterLines(old: Item, now: Item): string[] {
  const names = [...new Set([...old.parameters.keys(), ...now.parameters.keys()])]
  return names.flatMap((name) => {
    const [before, after] = [old, now].map(({ parameters }) => {
      const rules = parameters.get(name)
      return rules === undefined ? undefined : spell(rules)
    })
    if (before === after) return []
    if (before === undefined) return [`+ ${name}: ${after}`]
    return after === undefined ? [`- ${name}: ${before}`] : [`~ ${name}: ${before} → ${after}`]
  })
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
export function breaksOf(old: Item, now: Item): string[] {
  const names = [...new Set([...old.parameters.keys(), ...now.parameters.keys()])]
  return [
    ...names.flatMap((name) => parameterBreaks(name, old.parameters.get(name), now.parameters.get(name))),
    ...(old.settle === 'after' && now.settle === 'upfront' ? ['charged before the work'] : []),
    ...(old.example === undefined || now.example === undefined
      ? []
      : removedMembers(old.example, now.example, '').map((member) => `the answer loses ${member}`)),
  ]
}

function parameterBreaks(name: string, old: JsonObject | undefined, now: JsonObject | undefined): string[] {
  if (now === undefined) return [`${name} is removed`]
  if (old === undefined) return now['required'] === true ? [`${name} is required`] : []
  const narrowed = Object.keys(now).filter((rule) => isNarrower(rule, old[rule], now[rule]))
  return [
    ...(now['required'] === true && old['required'] !== true ? [`${name} is required`] : []),
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
export function lostPayments(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): string[] {
  return ['x402', 'mpp'].flatMap((name) => {
    const [old = 'none', now = 'none'] = [before, after].map((terms) => terms.get(`payments ${name}`))
    if (old === 'none' || old === now) return []
    if (now === 'none') return [name]
    if (name === 'mpp') return [old]
    const kept = now.split(', ')
    return old.split(', ').filter((network) => !kept.includes(network))
  })
}
