/** The door of the framework: everything outside the engine imports from here. */
export { Failure, InvalidParameter, ERRORS, type ErrorCode } from './errors.ts'
export type {
  Answer,
  Context,
  EnvelopedAnswer,
  Handler,
  HandlerMap,
  Handlers,
  Operation,
  PaymentFacts,
  Source,
  VerbatimAnswer,
  Warning,
} from './handler.ts'
export { canonicalJson, digestJson, isJsonObject, type Json, type JsonObject } from './json.ts'
