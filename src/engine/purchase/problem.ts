import { ERRORS, Failure, InvalidParameter, type Charged, type ErrorCode } from '../errors.ts'
import type { JsonObject } from '../json.ts'
import { LedgerError } from '../ledger/ledger.ts'
import { chargedBy } from '../ledger/lifecycle.ts'
import type { PaidCallResult } from './purchase.ts'

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

/** Why a purchase has no answer, where neither the work has failed nor a fresh offer is made. */
export interface PurchaseProblem {
  readonly code: ErrorCode
  readonly detail: string
  readonly charged: Charged
  /** Public id of the payment. */
  readonly payment?: string
  /** Seconds. */
  readonly retryAfter?: number
}

type Problematic = Extract<
  PaidCallResult,
  { readonly kind: 'refused' | 'replayRejected' | 'pending' | 'disconnected' | 'unavailable' }
>

export function problemOf(result: Problematic): PurchaseProblem {
  switch (result.kind) {
    case 'refused': {
      const { code, detail, retryAfter = 5 } = result.refusal
      return { code, detail, charged: 'no', ...(ERRORS[code].retryable ? { retryAfter } : {}) }
    }
    case 'replayRejected': {
      const { code, entry } = result
      return { code, detail: REJECTED[code], charged: chargedBy(entry), payment: entry.id }
    }
    case 'pending': {
      const detail = 'whether the payment has settled is not known yet'
      return { code: 'payment_pending', detail, charged: 'unknown', payment: result.id, retryAfter: 2 }
    }
    case 'disconnected':
      return { code: 'payment_pending', detail: 'the request was given up', charged: 'no' }
    case 'unavailable': {
      const detail = 'the record of payments cannot be reached now'
      return { code: 'ledger_unavailable', detail, charged: 'unknown', retryAfter: 2 }
    }
  }
}

/** For senders of a payment, or its identifier, that was used for something else. */
const REJECTED = {
  payment_reused:
    'this payment was used before, for another request or for an answer that was delivered; it is charged once at most',
  identifier_reused:
    'this payment-identifier belongs to another request of the same payer; nothing was charged now',
} as const

export interface FaultDeps {
  /** Called with every failure nobody has foreseen. */
  readonly report: (fault: unknown) => void
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
    return new Failure('ledger_unavailable', 'the payment could not be recorded; nothing was charged', {
      retryAfter: 2,
    })
  const money = charged === 'no' ? 'nothing was charged' : 'send the same payment again: it is charged once'
  return new Failure('internal', `something went wrong here; ${money}`)
}

/** What a handler says of one of its parameters, in the words of the 422. */
export function toValidationError({ sentence, ctx }: InvalidParameter): {
  readonly type: string
  readonly msg: string
  readonly ctx: InvalidParameter['ctx']
} {
  return { type: 'value_error', msg: `Value error, ${sentence}`, ctx: { ...ctx, error: {} } }
}
