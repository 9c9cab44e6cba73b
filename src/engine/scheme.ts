/**
 * The package `ratecard/scheme`: what a scheme of x402 provides, and what it is given. A scheme is passed to
 * `createRatecard` as `payments.x402.schemes`. Unstable: names and types may change in any release until this repository
 * contains three schemes.
 */
export type { Endpoint, Operation, Parameter, Route, Tool, ToolEndpoint } from './catalog/catalog.ts'
export type { CorrectedOffer, ErrorCode, Refusal } from './base/errors.ts'
export type { Json, JsonObject } from './base/json.ts'
export type { Micros } from './base/money.ts'
export type { Addition, Change, Lease, LeaseState, Ledger } from './ledger/ledger.ts'
export type { BlockReference, PaymentRecord, Receipt, Dispatch, State } from './ledger/payment-record.ts'
export type { SchemeState, SchemeStateChange, SchemeStates } from './ledger/scheme-state.ts'
export type {
  Charge,
  CommittedPayment,
  Offer,
  PaymentTerms,
  SettledPayment,
  Verification,
} from './payment/payment.ts'
export type { Journal, Settlement } from './payment/settlement.ts'
export type { Listing } from './x402/listing.ts'
export type { PaymentPayload } from './x402/payload.ts'
export { matches, requirementsOf, toAtomic } from './x402/requirements.ts'
export type { NetworkOffer, PriceKind, Requirements } from './x402/requirements.ts'
export type {
  DecodedScheme,
  OpenScheme,
  Scheme,
  SchemeAction,
  SchemeContext,
  SchemeOffer,
  SchemePayment,
  X402Terms,
} from './x402/scheme.ts'
