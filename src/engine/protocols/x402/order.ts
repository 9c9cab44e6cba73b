import { offerOf, type Listing, type Till } from './challenge.ts'
import type { PaymentPayload, Requirements } from './payload.ts'
import type { Movement, SignedAuthorization } from './token.ts'

/** One payment to be carried out, one object for its whole life: made of our offer and what was signed, of nothing else. */
export interface Order {
  readonly payload: PaymentPayload
  readonly signedBy: SignedAuthorization['signedBy']
  readonly requirements: Requirements
  readonly movement: Movement
}

/** What was bought, where a facilitator may list it. */
export interface Listed extends Listing {
  readonly url: string
}

/**
 * What a buyer has added, or echoed differently than when the payment was taken, stays out: a facilitator would settle on
 * another token for it, or list it under our name.
 */
export function orderOf(
  till: Till,
  { accepted, payload: { signature, authorization } }: PaymentPayload,
  listed?: Listed,
): Order {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const flow = accepted.extra?.['paymentFlow'] === 'upfront' ? 'upfront' : 'after'
  const requirements = offerOf({ ...till, payTo: to }, value, flow)
  return {
    payload: {
      x402Version: 2,
      ...(listed === undefined ? {} : { resource: { ...listed.resource, url: listed.url } }),
      accepted: requirements,
      payload: { signature, authorization: { from, to, value, validAfter, validBefore, nonce } },
      ...(listed === undefined ? {} : { extensions: listed.extensions }),
    },
    // Until the signature says otherwise.
    signedBy: 'key',
    requirements,
    movement: { token: till.network.token.address, from, to, value: BigInt(value), nonce },
  }
}
