/** What is to be said of one thing before real money is taken. */
export interface Verdict {
  /** `warn`: it may be intended, and an operator should confirm it. */
  readonly level: 'ok' | 'warn' | 'fails'
  readonly subject: string
  /** What is so, and what to do about it. */
  readonly says: string
}

export const ok = (subject: string, says: string): Verdict => ({ level: 'ok', subject, says })
export const warns = (subject: string, says: string): Verdict => ({ level: 'warn', subject, says })
export const fails = (subject: string, says: string): Verdict => ({ level: 'fails', subject, says })
