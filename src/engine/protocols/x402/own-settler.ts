import type { Bench } from './bench.ts'
import type { Order } from './order.ts'
import { findMovement, resume, settle } from './settlement.ts'
import type { Settler } from './settler.ts'
import { askWallet, simulate } from './simulation.ts'
import type { SignedAuthorization } from './token.ts'

/** Settles with signers of this process, over a node of our choice. */
export function createOwnSettler(bench: Bench): Settler {
  return {
    askWallet: ({ payload: { payload } }, digest) =>
      askWallet(bench, payload.authorization.from, digest, payload.signature),
    simulate: (order) => simulate(bench, signedOf(order)),
    settle: (order, journal) => settle(bench, order.movement, signedOf(order), journal),
    resolve: (movement, dispatch, validBefore, since) => {
      if (dispatch?.kind === 'own') return resume(bench, movement, dispatch, validBefore, since)
      // When nothing was sent for it, an authorization that is unused now has failed, whatever its end.
      return findMovement(bench, movement, dispatch === undefined ? 0 : validBefore, since)
    },
  }
}

function signedOf({ payload: { payload }, signedBy }: Order): SignedAuthorization {
  return { authorization: payload.authorization, signature: payload.signature, signedBy }
}
