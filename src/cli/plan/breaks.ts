import { isJsonObject, type Json, type JsonObject } from '../../engine/index.ts'
import type { Item } from './snapshot.ts'

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
    case 'exclusiveMinimum':
    case 'minLength':
      return Number(now) > Number(old ?? -Infinity)
    case 'maximum':
    case 'maxLength':
      return Number(now) < Number(old ?? Infinity)
    case 'pattern':
    case 'format':
      return old !== now
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
  before: ReadonlyMap<string, string> | undefined,
  after: ReadonlyMap<string, string> | undefined,
): string[] {
  if (before === undefined || after === undefined) return []
  return ['x402', 'mpp'].flatMap((name) => {
    const [old = 'none', now = 'none'] = [before.get(name), after.get(name)]
    if (old === 'none' || old === now) return []
    if (now === 'none') return [name]
    if (name === 'mpp') return [old]
    const kept = now.split(', ')
    return old.split(', ').filter((network) => !kept.includes(network))
  })
}
