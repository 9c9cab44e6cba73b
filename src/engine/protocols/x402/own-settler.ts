import type { Bench } from './bench.ts'
import { findMovement, resume, settle } from './settlement.ts'
import type { Settler } from './settler.ts'
import { askWallet, simulate } from './simulation.ts'

/** Settles with signers of this process, over a node of our choice. */
export function createOwnSettler(bench: Bench): Settler {
  return {
    askWallet: ({ payload: { payload } }, digest) =>
      askWallet(bench, payload.authorization.from, digest, payload.signature),
    simulate: ({ payload: { payload } }) => simulate(bench, payload.authorization, payload.signature),
    settle: ({ payload: { payload }, movement }, journal) =>
      settle(bench, movement, payload.authorization, payload.signature, journal),
    resolve: (movement, dispatch, validBefore, since) => {
      if (dispatch?.kind === 'own') return resume(bench, movement, dispatch, validBefore, since)
      // When nothing was sent for it, an authorization that is unused now has failed, whatever its end.
      return findMovement(bench, movement, dispatch === undefined ? 0 : validBefore, since)
    },
  }
}
