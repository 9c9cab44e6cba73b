/**
 * The package `ratecard/protocol`: the interface of a payment protocol. Unstable: names and types may change in any
 * release until this repository contains three protocols.
 */
export type { Endpoint, Operation, Parameter, Route, Tool, ToolEndpoint } from './catalog/catalog.ts'
export type { ErrorCode } from './base/errors.ts'
export type { Json, JsonObject } from './base/json.ts'
export type { PaymentRecord, Receipt, SettlementAttempt, State } from './ledger/payment-record.ts'
export type { Micros } from './base/money.ts'
export type { Capabilities, Protocol, ToolBinding } from './payment/protocol.ts'
export type { Challenge, ChallengeRequest, IssuedChallenge, ToolDemand } from './payment/challenge.ts'
export type { Detection, Offer, OfferTerms, Payment, Verification } from './payment/payment.ts'
export type { Journal, Settlement } from './payment/settlement.ts'
export type { Refusal } from './base/errors.ts'
