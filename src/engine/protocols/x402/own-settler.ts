import type { Bench } from './bench.ts'
import { findMovement, resume, settle } from './settlement.ts'
import type { Settler } from './settler.ts'
import { askWallet, simulate } from './simulation.ts'

/** Settles with a signer of this process, over a node of our choice. */
export function createOwnSettler(bench: Bench): Settler {
  return {
    askWallet: (wallet, digest, signature) => askWallet(bench, wallet, digest, signature),
    simulate: ({ payload: { payload } }) => simulate(bench, payload.authorization, payload.signature),
    settle: ({ payload: { payload }, movement }, journal) =>
      settle(bench, movement, payload.authorization, payload.signature, journal),
    resolve: (movement, dispatch, validBefore) =>
      // Without a transaction of ours somebody else's is looked for.
      dispatch?.kind === 'own'
        ? resume(bench, movement, dispatch, validBefore)
        : findMovement(bench, movement),
  }
}
