import { GAS, GAS_CONTRACT_WALLET } from '../../chains/evm/account.ts'
import { bid, type Bid } from '../../chains/evm/fees.ts'
import type { Fees } from '../../chains/evm/chain.ts'
import { STUCK, FEES_TOO_HIGH, SENDER_UNFUNDED } from '../../chains/evm/transaction.ts'
import type { Refusal } from '../../base/errors.ts'
import type { Exposure } from './payer-limits.ts'
import type { SettlementContext } from './settlement-context.ts'
import type { SettlementRequest } from './settlement-request.ts'
import type { TokenReader } from '../../chains/evm/eip3009/token-state.ts'
import { nonceName, type ExpectedPayment } from '../../chains/evm/transfer-proof.ts'
import type { Order } from './order.ts'
import type { SignedAuthorization } from '../../chains/evm/eip3009/authorization.ts'
import { transferCall } from '../../chains/evm/eip3009/transfer-call.ts'
import { simulate } from './simulation.ts'

/** How long a payment’s own code may keep its buyer waiting. */
const SIMULATION_MS = 5_000

/** Seconds after which a network that cannot settle may be able to. */
const RETRY_AFTER = 10

/** Before the work: whether this payment could be sent now and would succeed, besides others of its payer. */
export async function preflight(context: SettlementContext, order: Order): Promise<Refusal | undefined> {
  const { limits, losses, payers, signers } = context
  const { expected, signedBy, call, sender } = order
  const exposure = exposureOf(expected, order)
  // Of an account of another process nothing is known here but what the simulation shows.
  const ready =
    sender === undefined || signers.has(sender)
      ? signers.ready.filter((account) => account === (sender ?? account))
      : [sender]
  const [from] = ready
  if (from === undefined) return unavailable(STUCK.detail)
  const asked = context.fees.current()
  signers.prepare()
  const suspended = await losses.refuse(exposure.payer, payers.standing(exposure), limits.maxGasLoss)
  if (suspended !== undefined) return suspended
  const bidFor = (fees: Fees | undefined): Bid | undefined => fees && bid(fees, limits.maxFeePerGas)
  // Old fees will do for a simulation, which then does not wait for those of now.
  const price = bidFor(context.fees.last) ?? bidFor(await asked)
  if (price === undefined) return withoutBid(await asked)
  const short = await payers.reserve(exposure)
  if (short !== undefined) return short
  const alone = async (): Promise<Refusal | undefined> => {
    let refusal: Refusal | undefined = SENDER_UNFUNDED
    for (const from of ready) {
      refusal = await order.simulate({ from, gas: call.gas, ...price }, SIMULATION_MS)
      if (refusal !== SENDER_UNFUNDED) break
    }
    return refusal
  }
  const refusal =
    signedBy === 'key' && sender === undefined && context.multicall.isAvailable
      ? await context.simulations.simulate({ call, sender: { from, ...price }, alone })
      : await alone()
  const passed = refusal === undefined || refusal === 'passed'
  if (passed && bidFor(await asked) !== undefined) return undefined
  payers.release(exposure)
  return passed ? withoutBid(await asked) : refusal
}

function withoutBid(fees: Fees | undefined): Refusal {
  return unavailable(fees === undefined ? 'the payment network cannot be reached now' : FEES_TOO_HIGH.detail)
}

function unavailable(detail: string): Refusal {
  return { code: 'chain_unavailable', detail: `${detail}; nothing was charged`, retryAfter: RETRY_AFTER }
}

export function signedOf({ payload: { payload }, signedBy }: SettlementRequest): SignedAuthorization {
  return { ...payload, signedBy }
}

/** How a signed authorization is carried out: by a call of the token. */
export function orderOf(context: TokenReader, expected: ExpectedPayment, signed: SignedAuthorization): Order {
  return {
    expected,
    signedBy: signed.signedBy,
    validBefore: Number(signed.authorization.validBefore) * 1000,
    call: { to: expected.token, data: transferCall(signed), gas: gasFor(signed) },
    simulate: (sender, timeout) => simulate(context, signed, sender, timeout),
    usedCode: 'invalid_exact_evm_nonce_already_used',
  }
}

/** Gas of the transaction that carries an authorization out. */
export function gasFor({ signedBy }: Pick<SignedAuthorization, 'signedBy'>): bigint {
  return signedBy === 'key' ? GAS : GAS_CONTRACT_WALLET
}

/** What a payment puts at risk for its payer. */
export function exposureOf(
  expected: ExpectedPayment,
  { signedBy }: Pick<SignedAuthorization, 'signedBy'>,
): Exposure {
  const { from, value } = expected
  return { payer: from, nonce: nonceName(expected), value, signedBy }
}
