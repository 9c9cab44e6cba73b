import type { Refusal } from '../protocol.ts'
import type { Bench } from './bench.ts'
import { bid } from '../../chains/evm/fees.ts'
import type { Order } from './order.ts'
import { exposureOf, findMovement, gasFor, resume, settle } from './settlement.ts'
import type { Settler } from './settler.ts'
import { askWallet, simulate } from './simulation.ts'
import type { SignedAuthorization } from './token.ts'
import { FEES_TOO_HIGH, SENDER_UNFUNDED, STUCK } from '../../chains/evm/transaction.ts'

/** How long a payment’s own code may keep its buyer waiting. */
const SIMULATION_MS = 5_000
/** Seconds after which a network that cannot settle may be able to. */
const RETRY_AFTER = 10

/** Settles with signers of this process, over a node of our choice. */
export function createOwnSettler(bench: Bench): Settler {
  return {
    askWallet: ({ payload: { payload } }, digest) =>
      askWallet(bench, payload.authorization.from, digest, payload.signature),
    simulate: (order) => preflight(bench, order),
    release: ({ movement }) => bench.payers.release({ payer: movement.from, nonce: movement.nonce }),
    settle: (order, journal) => settle(bench, order.movement, signedOf(order), journal),
    resolve: (movement, dispatch, validBefore, since) => {
      if (dispatch?.kind === 'own') return resume(bench, movement, dispatch, validBefore, since)
      // When nothing was sent for it, an authorization that is unused now has failed, whatever its end.
      return findMovement(bench, movement, dispatch === undefined ? 0 : validBefore, since)
    },
  }
}

/** Before the work: whether this payment could be sent now and would be carried out, beside others of its payer. */
async function preflight(bench: Bench, order: Order): Promise<Refusal | undefined> {
  const { limits, losses, payers, signers } = bench
  const signed = signedOf(order)
  const exposure = exposureOf(order.movement, signed)
  const { ready } = signers
  if (ready.length === 0) return unavailable(STUCK.detail)
  const [suspended, fees] = await Promise.all([
    losses.refuse(exposure.payer, signed.signedBy, limits.maxGasLoss),
    bench.fees.current(),
  ])
  if (suspended !== undefined) return suspended
  if (fees === undefined) return unavailable('the payment network cannot be reached now')
  const price = bid(fees, limits.maxFeePerGas)
  if (price === undefined) return unavailable(FEES_TOO_HIGH.detail)
  const short = await payers.reserve(exposure)
  if (short !== undefined) return short
  let refusal: Refusal | undefined = SENDER_UNFUNDED
  for (const from of ready) {
    refusal = await simulate(bench, signed, { from, gas: gasFor(signed), ...price }, SIMULATION_MS)
    if (refusal !== SENDER_UNFUNDED) break
  }
  if (refusal !== undefined) payers.release(exposure)
  return refusal
}

function unavailable(detail: string): Refusal {
  return { code: 'chain_unavailable', detail: `${detail}; nothing was charged`, retryAfter: RETRY_AFTER }
}

function signedOf({ payload: { payload }, signedBy }: Order): SignedAuthorization {
  return { authorization: payload.authorization, signature: payload.signature, signedBy }
}
