/**
 * The package `ratecard/protocol`: the interface of a payment protocol. Unstable: names and types may change in any
 * release until this repository contains three protocols.
 */
export type { Endpoint, Operation, Parameter, Route, Tool, ToolEndpoint } from './catalog/catalog.ts'
export type { ErrorCode } from './base/errors.ts'
export type { Json, JsonObject } from './base/json.ts'
export type { PaymentRecord, Receipt, SettlementAttempt, State } from './ledger/payment-record.ts'
export type { Micros } from './base/money.ts'
export type {
  Capabilities,
  Challenge,
  ChallengeRequest,
  Detection,
  IssuedChallenge,
  Journal,
  Offer,
  OfferTerms,
  Payment,
  Protocol,
  Refusal,
  Settlement,
  ToolBinding,
  ToolDemand,
  Verification,
} from './payment/protocol.ts'
