import type { Want } from './diary.ts'
import {
  isAgain,
  isCrossed,
  isDoubled,
  isLeft,
  isLost,
  isUncharged,
  misbookedIn,
  type Evidence,
} from './tally.ts'
import type { Proof, Verdict } from './verdict.ts'

const NAMES: readonly (readonly [string, (verdict: Verdict) => boolean])[] = [
  ['lost', isLost],
  ['doubled', isDoubled],
  ['given again', isAgain],
  ['given without a charge', isUncharged],
  ['crossed', isCrossed],
  ['neither charged nor fetched', isLeft],
]

/** Every want that did not come to one charge and one answer, with all that is known of it. */
export function tell(evidence: Evidence): string[] {
  const { verdicts, entries, markOfKey } = evidence
  const ofMark = new Map(entries.map((entry) => [markOfKey(entry.key), entry]))
  const misbooked = misbookedIn(evidence)
  const ofWants = verdicts.flatMap((verdict, place) => {
    const names = NAMES.filter(([, holds]) => holds(verdict)).map(([name]) => name)
    const { want, charges, proof } = verdict
    const marks = [...want.payments.keys()]
    if (misbooked.some((proof) => marks.some((mark) => proof.includes(mark)))) names.push('misbooked')
    if (names.length === 0) return []
    const title = `want ${place} of /paid/${want.route}?n=${want.n}: ${names.join(', ')}`
    const payments = marks.map((mark) => {
      const transactions = charges
        .filter((charge) => charge.mark === mark)
        .map((charge) => charge.transaction)
      const { id = 'no entry', state = '', attempts = 0 } = ofMark.get(mark) ?? {}
      return `payment ${mark}: ${id} ${state}, taken up ${attempts} times; charged by ${transactions.join(', ') || 'nothing'}`
    })
    return [
      title,
      ...[...want.story, ...payments, ...reasons(verdicts, want, proof)].map((line) => `  ${line}`),
    ]
  })
  return [...misbooked, ...ofWants]
}

function reasons(verdicts: readonly Verdict[], { received }: Want, proof: Proof | undefined): string[] {
  if (proof === undefined || received === undefined) return []
  const receipt = `receipt: ${received.payment ?? 'no payment'}, ${received.transaction ?? 'no transaction'}, run ${String(received.run)}`
  switch (proof.kind) {
    case 'own':
      return [receipt]
    case 'none':
      return [receipt, proof.why]
    case 'again': {
      const { first, blow } = proof
      const place = verdicts.findIndex(({ want }) => want === first)
      const after = blow.begun - (first.received?.at ?? 0)
      return [
        receipt,
        `paid for by want ${place} of the same buyer for the same thing, whose answer came with the same receipt from ${first.received?.from ?? ''}`,
        `${blow.to} was killed ${after} ms after that`,
      ]
    }
  }
}
