import { ERRORS, type ErrorCode } from './errors.ts'
import type { Micros } from './money.ts'
import type { UpstreamCause } from './upstream-cause.ts'

/**
 * One answered request as its operator may see it, without arguments and answer. All names come from the catalog and its
 * file of API keys, so no caller can make up a value.
 */
export interface AccessRecord {
  /** What `X-Request-Id` of the answer says: visible ASCII, at most 128 characters, without quotes and backslashes. */
  readonly requestId: string
  readonly method: string
  /** Route template, document path, `tool <name>` or `passthrough`; `unknown` when the catalog has no such entry. */
  readonly place: string
  readonly status: number
  /** `ok` below 400 and for every answer of the site behind a passthrough, else the code of the problem. */
  readonly outcome: 'ok' | ErrorCode
  /**
   * Why the status is 500 or above, in the words of the service and never in those of a handler, which may contain arguments:
   * several reasons have one code. Undefined below 500.
   */
  readonly detail: string | undefined
  /** Why an upstream or source has failed. */
  readonly cause: UpstreamCause | undefined
  /** Price of the paid operation; undefined for everything free. */
  readonly price: Micros | undefined
  /** Whether the answer came from the cache; undefined when unknown. */
  readonly cached: boolean | undefined
  /** Name of the API key that the request was served for. */
  readonly customer: string | undefined
  /** What a request to something that is sold was; undefined for everything free, and for callers who need not pay. */
  readonly sale: SaleRequest | undefined
  /** Milliseconds from the arrival of the request to its answer. */
  readonly ms: number
  /** Public id of the payment, if the request carried one. */
  readonly payment: string | undefined
}

/** A request to something that is sold. */
export interface SaleRequest {
  /** Id of the operation. */
  readonly operation: string
  /** Whether it carried a payment, good or not. */
  readonly paid: boolean
  /** Whether it is by its own words from a crawler or a monitor: HEAD, or a `User-Agent` of one. */
  readonly probe: boolean
  /** Why the 402 said that it would fail even if it were paid for: a code, and of arguments the name of a parameter. */
  readonly wouldFail?: string | undefined
}

const PROBES = /bot\b|crawl|spider|probe|monitor|uptime|health.?check|scan(?:ner)?\b/i

export function isProbe(method: string, userAgent = ''): boolean {
  return method === 'HEAD' || PROBES.test(userAgent)
}

/** Called for every request once it is answered; must be quick and must not throw. */
export type Observe = (access: AccessRecord) => void

/** The detail of an access; the title of its code when the failure has no detail of its own. */
export function detailOf(
  status: number,
  outcome: AccessRecord['outcome'],
  detail?: string,
): string | undefined {
  if (status < 500 || outcome === 'ok') return undefined
  return detail ?? ERRORS[outcome].title
}
