import type { PaymentPayload } from '../payload.ts'
import { requirementsFor, type Requirements } from '../requirements.ts'
import type { SchemeOffer } from '../scheme.ts'
import { offerOf, type AcceptedNetwork } from './accepted-network.ts'
import type { ExactPayload } from './exact-payload.ts'
import type { SignedAuthorization } from '../../chains/evm/eip3009/authorization.ts'
import { BY_AUTHORIZATION, type ExpectedPayment } from '../../chains/evm/transfer-proof.ts'

/** A payment to settle: one object for its whole life. */
export interface SettlementRequest {
  readonly payload: PaymentPayload<ExactPayload>
  readonly signedBy: SignedAuthorization['signedBy']
  readonly requirements: Requirements
  readonly expected: ExpectedPayment
  /** Id of the operation that a facilitator may list; undefined when none is named to it. */
  readonly operation: string | undefined
}

/**
 * Makes the request from our offer and what was signed. Members that a buyer has added, or echoed differently than when
 * the payment was taken, are left out: a facilitator would settle on another token for it, or list it under our name.
 * `sold` is what is bought, once it is known.
 */
export function settlementRequestOf(
  network: AcceptedNetwork,
  { accepted, payload: { signature, authorization } }: PaymentPayload<ExactPayload>,
  sold?: Pick<SchemeOffer, 'settle' | 'listed'>,
): SettlementRequest {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const echoed = accepted.extra?.['paymentFlow'] === 'upfront' ? 'upfront' : 'after'
  const { settle = echoed, listed } = sold ?? {}
  const requirements = requirementsFor(offerOf({ ...network, payTo: to }), value, settle)
  return {
    payload: {
      x402Version: 2,
      ...(listed === undefined ? {} : { resource: { ...listed.resource, url: listed.url } }),
      accepted: requirements,
      payload: { signature, authorization: { from, to, value, validAfter, validBefore, nonce } },
      ...(listed === undefined ? {} : { extensions: listed.extensions }),
    },
    // Until the signature shows otherwise.
    signedBy: 'key',
    requirements,
    operation: listed?.operation,
    expected: {
      token: network.network.token.address,
      from,
      to,
      value: BigInt(value),
      nonce,
      proof: BY_AUTHORIZATION,
    },
  }
}
