import type { PurchaseOutcome, ReceiptMatch } from './match-charges.ts'
import type { Purchase } from './purchase-log.ts'
import {
  hasWrongAmount,
  hasWrongReceipt,
  isDoubleCharged,
  isLost,
  isRedelivered,
  isUnanswered,
  isUnpaid,
  ledgerMismatches,
  type Evidence,
} from './totals.ts'

const FINDINGS: readonly (readonly [string, (outcome: PurchaseOutcome) => boolean])[] = [
  ['lost', isLost],
  ['charged twice', isDoubleCharged],
  ['redelivered', isRedelivered],
  ['unpaid', isUnpaid],
  ['receipt of another purchase', hasWrongReceipt],
  ['wrong amount', hasWrongAmount],
  ['neither charged nor answered', isUnanswered],
]

/** Every purchase without exactly one charge and one answer, with all that is known of it, line by line. */
export function describeFindings(evidence: Evidence): string[] {
  const { outcomes, records, method } = evidence
  const { referenceOfKey } = method
  const recordOf = new Map(records.map((record) => [referenceOfKey(record.key), record]))
  const mismatches = ledgerMismatches(evidence)
  const ofPurchases = outcomes.flatMap((outcome, index) => {
    const names = FINDINGS.filter(([, holds]) => holds(outcome)).map(([name]) => name)
    const { purchase, charges, receipt } = outcome
    const references = [...purchase.payments.keys()]
    if (mismatches.some((line) => references.some((reference) => line.includes(reference))))
      names.push('ledger mismatch')
    if (names.length === 0) return []
    const title = `purchase ${index} of /paid/${purchase.route.name} with ${purchase.n}: ${names.join(', ')}`
    const payments = references.map((reference) => {
      const transactions = charges
        .filter((charge) => charge.reference === reference)
        .map((charge) => `${charge.transaction} (${charge.amount})`)
      const { id = 'no record', state = '', attempts = 0 } = recordOf.get(reference) ?? {}
      return `payment ${reference}: ${id} ${state}, ${attempts} attempts; charged by ${transactions.join(', ') || 'no transaction'}`
    })
    const lines = [...purchase.events, ...payments, ...receiptLines(outcomes, purchase, receipt)]
    return [title, ...lines.map((line) => `  ${line}`)]
  })
  return [...mismatches, ...ofPurchases]
}

function receiptLines(
  outcomes: readonly PurchaseOutcome[],
  { answer }: Purchase,
  match: ReceiptMatch | undefined,
): string[] {
  if (match === undefined || answer === undefined) return []
  const receipt = `receipt: ${answer.payment ?? 'no payment'}, ${answer.transaction ?? 'no transaction'}, run ${String(answer.run)}`
  switch (match.kind) {
    case 'own':
      return [receipt]
    case 'mismatch':
      return [receipt, match.why]
    case 'redelivered': {
      const { first, kill } = match
      const index = outcomes.findIndex(({ purchase }) => purchase === first)
      const after = kill.from - (first.answer?.receivedAt ?? 0)
      return [
        receipt,
        `paid by the equal purchase ${index} of the same buyer, whose answer came with the same receipt from ${first.answer?.from ?? ''}`,
        `${kill.target} was killed ${after} ms after that`,
      ]
    }
  }
}
