/** One thing somebody wants once, and all that its buyer knows about it. */
export interface Want {
  /** Address of the wallet. */
  readonly buyer: string
  readonly route: string
  readonly n: number
  /** Headers signed for it, by the mark of their payment: what is charged for any of these was charged for this. */
  readonly payments: Map<string, string>
  /** What was asked and what came, for people. */
  readonly story: string[]
  received: Received | undefined
}

/** The answer that was wanted, with what came beside it. */
export interface Received {
  /** Base address of the process. */
  readonly from: string
  readonly asked: number
  readonly at: number
  /** Name of the payment it says it was bought with. */
  readonly payment: string | null
  /** Transaction of the receipt. */
  readonly transaction: string | undefined
  /** Which run of the work it is. */
  readonly run: unknown
}

/** A kill, and how long nobody could use what was killed. */
export interface Blow {
  /** Base address of a process, or the store. */
  readonly to: string
  readonly begun: number
  readonly over: number
}

/** What the buyers have met together. */
export interface Diary {
  readonly wants: Want[]
  readonly blows: Blow[]
  readonly statuses: Map<number, number>
  /** Requests without a whole answer. */
  cutOff: number
  /** Answers to another question than the one that was asked. */
  wrong: number
}

export function openDiary(): Diary {
  return { wants: [], blows: [], statuses: new Map(), cutOff: 0, wrong: 0 }
}
