import type { Charged } from '../errors.ts'
import type { Entry } from './entry.ts'

/** What an entry says of the money: a receipt is the proof, and without one only an order that was sent leaves a doubt. */
export function chargedBy({ state, receipt }: Pick<Entry, 'state' | 'receipt'>): Charged {
  if (receipt !== undefined) return 'yes'
  return state === 'settling' || state === 'unknown' ? 'unknown' : 'no'
}
