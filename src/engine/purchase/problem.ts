import {
  type ErrorCode,
  ERRORS,
  type Charged,
  Failure,
  LedgerError,
  LedgerLostError,
  InvalidParameter,
} from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'

const PAYMENT_PROBLEMS = 'https://paymentauth.org/problems/'

/** Errors with a problem type of the Payment authentication scheme, by which its clients distinguish them. */
const PAYMENT_TYPES: Partial<Record<ErrorCode, string>> = {
  payment_required: 'payment-required',
  malformed_credential: 'malformed-credential',
  invalid_challenge: 'invalid-challenge',
  payment_expired: 'payment-expired',
  method_unsupported: 'method-unsupported',
  multiple_payments: 'bad-request',
}

/** A 402 that asks for no payment. */
const UNPAID_402: ReadonlySet<ErrorCode> = new Set(['sign_in_required', 'sign_in_refused'])

/** URI of an error's type. Every 402 about a payment has one of the scheme, whatever its protocol. */
function problemType(code: ErrorCode): string {
  const isPayment = ERRORS[code].status === 402 && !UNPAID_402.has(code)
  const type = PAYMENT_TYPES[code] ?? (isPayment ? 'verification-failed' : undefined)
  return type === undefined ? `/docs/errors#${code}` : PAYMENT_PROBLEMS + type
}

/** RFC 9457 problem with the service's own members: what happened, what was charged, what to do. */
export function problemMembers(code: ErrorCode, detail: string, charged: Charged): JsonObject {
  const { status, title, hint, retryable } = ERRORS[code]
  return { type: problemType(code), title, status, detail, code, hint, charged, retryable }
}

/** Every network or facilitator that the price could be paid through has been withdrawn. */
export const NO_OFFER = new Failure('not_configured', 'no way to pay is offered at present', {
  retryAfter: 60,
})

export interface FaultDeps {
  /** Called with every failure nobody has foreseen. */
  readonly report: (fault: unknown) => void
}

/** Why the ledger takes no payment, for callers. */
export function ledgerCode(fault: LedgerError): 'ledger_unavailable' | 'ledger_lost' {
  return fault instanceof LedgerLostError ? 'ledger_lost' : 'ledger_unavailable'
}

/** What a handler has thrown, as far as the caller may know it. */
export function toPublicError(
  { report }: FaultDeps,
  fault: unknown,
  charged: 'no' | 'yes',
): Failure | InvalidParameter {
  if (fault instanceof Failure || fault instanceof InvalidParameter) return fault
  report(fault)
  if (fault instanceof LedgerError)
    return new Failure(ledgerCode(fault), 'the payment could not be recorded; nothing was charged', {
      retryAfter: 2,
    })
  const money = charged === 'no' ? 'nothing was charged' : 'send the same payment again: it is charged once'
  return new Failure('internal', `something went wrong here; ${money}`)
}

/** An InvalidParameter of a handler in the form of the 422. */
export function toValidationError({ sentence, ctx }: InvalidParameter): {
  readonly type: string
  readonly msg: string
  readonly ctx: InvalidParameter['ctx']
} {
  return { type: 'value_error', msg: sentence, ctx: { ...ctx, error: {} } }
}
