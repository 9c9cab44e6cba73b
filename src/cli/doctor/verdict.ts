/** What is to be said of one thing before real money is taken. */
export interface Verdict {
  /** `look`: it may be meant so, and somebody should have decided it. */
  readonly level: 'ok' | 'look' | 'fails'
  readonly subject: string
  /** What is so, and what to do about it. */
  readonly says: string
}

export const ok = (subject: string, says: string): Verdict => ({ level: 'ok', subject, says })
export const look = (subject: string, says: string): Verdict => ({ level: 'look', subject, says })
export const fails = (subject: string, says: string): Verdict => ({ level: 'fails', subject, says })
