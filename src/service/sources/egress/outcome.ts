import { Failure, InvalidParameter, type ErrorCode } from 'ratecard/handler'
import { REFUSALS, type Refusal } from './target.ts'

export interface Reply {
  /** Final address after redirects. */
  readonly url: URL
  readonly status: number
  /** One text for each name, in lower case; repeated fields are joined with a comma. */
  readonly header: (name: string) => string | undefined
  readonly body: Uint8Array
  /** There was more than the measure allows. */
  readonly cut: boolean
  readonly redirects: readonly Redirect[]
}

export interface Redirect {
  readonly status: number
  readonly to: string
}

/** Why an address that may be asked gave nothing. */
export type Mishap =
  | 'unreachable'
  | 'unresolved'
  | 'timeout'
  | 'certificate'
  | 'broken'
  | 'too_large'
  | 'encoding'
  | 'redirects'
  | 'robots'
  | 'limited'

export type Outcome =
  | { readonly kind: 'answered'; readonly reply: Reply }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly redirected: boolean }
  | { readonly kind: 'failed'; readonly mishap: Mishap; readonly retryAfter?: number }

const MISHAPS: Readonly<Record<Mishap, readonly [ErrorCode | 'invalid', string]>> = {
  unreachable: ['source_error', 'cannot be reached'],
  unresolved: ['source_error', 'has a name that cannot be resolved now'],
  timeout: ['source_timeout', 'did not answer in time'],
  certificate: ['source_error', 'shows a certificate that is not valid for it'],
  broken: ['source_error', 'sent something that is not a whole HTTP answer'],
  too_large: ['invalid', 'leads to more than can be read'],
  encoding: ['source_error', 'sent a body whose compression is damaged or unknown'],
  redirects: ['source_error', 'redirects too often'],
  robots: ['source_error', 'has a robots.txt that cannot be read now, so nothing may be read'],
  limited: ['source_limited', 'was asked too often through this service'],
}

/** The answer, or a throw that tells the caller about the parameter that named the address; nothing is charged then. */
export function answerOf(outcome: Outcome, parameter: string): Reply {
  if (outcome.kind === 'answered') return outcome.reply
  if (outcome.kind === 'refused') {
    const { refusal, redirected } = outcome
    const where = redirected ? `${parameter} redirects to an address that` : parameter
    throw new InvalidParameter(parameter, `${where} ${REFUSALS[refusal]}`, { reason: refusal })
  }
  const { mishap, retryAfter } = outcome
  const [code, verb] = MISHAPS[mishap]
  if (code === 'invalid') throw new InvalidParameter(parameter, `${parameter} ${verb}`, { reason: mishap })
  const wait = retryAfter === undefined ? {} : { retryAfter }
  throw new Failure(code, `The address in ${parameter} ${verb}`, { ...wait, extra: { reason: mishap } })
}
