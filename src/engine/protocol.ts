/**
 * The package `ratecard/protocol`: what a way to be paid implements. Unstable: names and shapes may change in any release
 * until there are three protocols in this repository.
 */
export type { Endpoint, Operation, Parameter, Route, Tool, ToolEndpoint } from './catalog/catalog.ts'
export type { ErrorCode } from './errors.ts'
export type { Json, JsonObject } from './json.ts'
export type { PaymentRecord, Receipt, SettlementAttempt, State } from './ledger/payment-record.ts'
export type { Micros } from './money.ts'
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
} from './protocols/protocol.ts'
