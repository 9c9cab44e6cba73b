import type { Weekday } from './day.ts'

const USUAL: readonly Weekday[] = ['saturday', 'sunday']

/**
 * Where the week does not end on Saturday and Sunday: today's rule, also for past dates. Written down instead of asked
 * from the runtime, whose CLDR data changes between Node versions, has no entry for BD, BN, DJ, NP and SO, and gives
 * India Sunday alone, which is not when its offices close.
 */
const ELSEWHERE: Readonly<Record<string, readonly Weekday[]>> = {
  BD: ['friday', 'saturday'],
  BH: ['friday', 'saturday'],
  BN: ['friday', 'sunday'],
  DJ: ['friday'],
  DZ: ['friday', 'saturday'],
  EG: ['friday', 'saturday'],
  IL: ['friday', 'saturday'],
  IR: ['friday'],
  LY: ['friday', 'saturday'],
  NP: ['saturday'],
  SA: ['friday', 'saturday'],
  SD: ['friday', 'saturday'],
  SO: ['friday'],
  UG: ['sunday'],
}

export function weekendOf(country: string): readonly Weekday[] {
  return Object.hasOwn(ELSEWHERE, country) ? (ELSEWHERE[country] ?? USUAL) : USUAL
}
