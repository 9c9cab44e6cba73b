/**
 * What speaks against an address, what it costs of 100 points, and the best that can still be said of the address.
 * Points are our own measure, not a probability.
 */
const REASONS = {
  invalid_syntax: [100, 'undeliverable'],
  domain_not_public: [100, 'undeliverable'],
  domain_not_found: [100, 'undeliverable'],
  null_mx: [100, 'undeliverable'],
  no_mail_server: [100, 'undeliverable'],
  mail_servers_not_public: [100, 'undeliverable'],
  disposable: [60, 'risky'],
  disposable_reported: [40, 'risky'],
  address_literal: [60, 'risky'],
  possible_typo: [40, 'risky'],
  implicit_mx: [25, 'risky'],
  role_account: [15, 'risky'],
  quoted_local_part: [10, 'risky'],
  needs_smtputf8: [10, 'risky'],
  mail_servers_unknown: [10, 'risky'],
  no_dmarc: [3, 'domain_accepts_mail'],
} as const satisfies Record<string, readonly [number, Status]>

/** Of the best nothing is known beyond the domain: no server was asked for the mailbox. */
export type Status = 'domain_accepts_mail' | 'risky' | 'undeliverable'
export type Reason = keyof typeof REASONS

export interface Verdict {
  readonly status: Status
  /** 0 to 100; 0 for what cannot be delivered. */
  readonly score: number
  /** The weightiest first. */
  readonly reasons: readonly Reason[]
}

/** Weighs what was found. An address against which nothing speaks may still have no mailbox: nobody was asked. */
export function judge(found: Readonly<Partial<Record<Reason, boolean>>>): Verdict {
  const reasons = (Object.keys(REASONS) as Reason[]).filter((reason) => found[reason] === true)
  const of = (status: Status): boolean => reasons.some((reason) => REASONS[reason][1] === status)
  const cost = reasons.reduce((sum, reason) => sum + REASONS[reason][0], 0)
  return {
    status: of('undeliverable') ? 'undeliverable' : of('risky') ? 'risky' : 'domain_accepts_mail',
    score: Math.max(0, 100 - cost),
    reasons,
  }
}
