import { ERRORS, type Charged, type ErrorCode } from '../errors.ts'
import type { JsonObject } from '../json.ts'

const PAYMENT_PROBLEMS = 'https://paymentauth.org/problems/'

/** Failures the Payment authentication scheme has a problem type for; its clients tell them apart by it. */
const PAYMENT_TYPES: Partial<Record<ErrorCode, string>> = {
  payment_required: 'payment-required',
  malformed_credential: 'malformed-credential',
  invalid_challenge: 'invalid-challenge',
  payment_expired: 'payment-expired',
  method_unsupported: 'method-unsupported',
  payments_conflict: 'bad-request',
}

/** URI of a failure’s kind. Every 402 has one of the scheme, whichever protocol the payment came by. */
export function problemType(code: ErrorCode): string {
  const type = PAYMENT_TYPES[code] ?? (ERRORS[code].status === 402 ? 'verification-failed' : undefined)
  return type === undefined ? `/docs/errors#${code}` : PAYMENT_PROBLEMS + type
}

/** RFC 9457 problem with the service's own members: what happened, what was charged, what to do. */
export function problemMembers(code: ErrorCode, detail: string, charged: Charged): JsonObject {
  const { status, title, hint, retryable } = ERRORS[code]
  return { type: problemType(code), title, status, detail, code, hint, charged, retryable }
}
