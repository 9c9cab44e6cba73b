import { once } from '../base/once.ts'
import type { Micros } from '../base/money.ts'
import type { Endpoint } from '../catalog/catalog.ts'
import type { Challenge } from './challenge.ts'
import type { Protocol } from './protocol.ts'

/** Most kept challenges of one endpoint, for the amounts that were requested last. */
const KEPT_AMOUNTS = 100

/** The challenges of an endpoint in every protocol it can be paid with, by the amount of a call. */
export function challengesOf(
  endpoint: Endpoint,
  protocols: readonly Protocol[],
): (amount: Micros) => ReadonlyMap<string, Challenge> {
  const made = (amount?: Micros): ReadonlyMap<string, Challenge> => {
    const named = protocols.flatMap((protocol): [string, Challenge][] => {
      const challenge = protocol.challenge(endpoint, amount)
      return challenge === undefined ? [] : [[protocol.name, challenge]]
    })
    return new Map(named)
  }
  if (typeof endpoint.operation.price !== 'object') {
    return once(() => made())
  }
  const known = new Map<Micros, ReadonlyMap<string, Challenge>>()
  return (amount) => {
    const found = known.get(amount) ?? made(amount)
    known.delete(amount)
    known.set(amount, found)
    const [oldest] = known.keys()
    if (known.size > KEPT_AMOUNTS && oldest !== undefined) known.delete(oldest)
    return found
  }
}
