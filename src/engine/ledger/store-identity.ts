import { randomUUID } from 'node:crypto'

/**
 * Which store it is: `MAKER:TIME:ID`, stored in it. A process remembers the identity of the store that it has opened: an
 * emptied store has none, and one that has taken its place has another.
 */
export type StoreIdentity = string

/**
 * `start`: a process has found an empty store. `operator`: it was compared with the chain. `at` is in milliseconds since
 * the epoch.
 */
export function newIdentity(maker: 'start' | 'operator', at: number): StoreIdentity {
  return `${maker}:${at}:${randomUUID()}`
}

/** Whether a process that has opened `known` may go on with `found`: an operator has reopened the store since. */
export function isReopened(known: StoreIdentity, found: StoreIdentity): boolean {
  const [maker, at] = found.split(':')
  return maker === 'operator' && Number(at) > Number(known.split(':')[1])
}
