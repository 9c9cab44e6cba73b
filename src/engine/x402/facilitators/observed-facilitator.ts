import type { Facilitator, FacilitatorAnswer, SettleResponse } from './facilitator-client.ts'

/** One request to a facilitator and what became of it. */
export interface FacilitatorOutcome {
  /** Its host. */
  readonly facilitator: string
  readonly request: 'verify' | 'settle'
  /**
   * `refused`: it will not take this payment. `pending`: it cannot tell yet. `declined`, `unreached` and `lost`: it has said
   * nothing about the payment.
   */
  readonly result: 'ok' | 'refused' | 'pending' | 'declined' | 'unreached' | 'lost'
}

export type OnFacilitatorOutcome = (outcome: FacilitatorOutcome) => void

/** The same facilitator; each answer about a payment is passed on. */
export function observed(facilitator: Facilitator, note: OnFacilitatorOutcome): Facilitator {
  const { host } = new URL(facilitator.url)
  return {
    ...facilitator,
    verify: async (body) => {
      const answer = await facilitator.verify(body)
      const result = resultOf(answer, ({ isValid }) => (isValid ? 'ok' : 'refused'))
      note({ facilitator: host, request: 'verify', result })
      return answer
    },
    settle: async (body) => {
      const answer = await facilitator.settle(body)
      note({ facilitator: host, request: 'settle', result: resultOf(answer, settlementIn) })
      return answer
    },
  }
}

type Result = FacilitatorOutcome['result']

function resultOf<T>(answer: FacilitatorAnswer<T>, read: (value: T) => Result): Result {
  return answer.kind === 'answer' ? read(answer.value) : answer.kind
}

function settlementIn({ success, errorReason }: SettleResponse): Result {
  if (success) return 'ok'
  return errorReason === 'settlement_pending' ? 'pending' : 'refused'
}
