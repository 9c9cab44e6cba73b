/** One thing somebody wants once, and all that its buyer knows about it. */
export interface Want {
  readonly url: (base: string) => string
  readonly n: number
  /** Of the payments that were signed for it: what is charged for any of these was charged for this. */
  readonly marks: Set<string>
  fetched: boolean
}

/** What the buyers have met together. */
export interface Diary {
  readonly wants: Want[]
  readonly statuses: Map<number, number>
  /** Requests without a whole answer. */
  cutOff: number
  /** Answers to another question than the one that was asked. */
  wrong: number
}

export function openDiary(): Diary {
  return { wants: [], statuses: new Map(), cutOff: 0, wrong: 0 }
}
