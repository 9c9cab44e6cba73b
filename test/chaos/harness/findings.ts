import type { PurchaseOutcome, ReceiptMatch } from './match-charges.ts'
import type { Purchase, PurchaseLog } from './purchase-log.ts'
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
export async function describeFindings(evidence: Evidence, log: PurchaseLog): Promise<string[]> {
  const { outcomes, records, method } = evidence
  const { referenceOfKey } = method
  const recordOf = new Map(records.map((record) => [referenceOfKey(record.key), record]))
  const mismatches = ledgerMismatches(evidence)
  const ofPurchases: string[] = []
  for (const [index, outcome] of outcomes.entries()) {
    const names = FINDINGS.filter(([, holds]) => holds(outcome)).map(([name]) => name)
    const { purchase, charges, receipt } = outcome
    const references = [...purchase.payments.keys()]
    if (mismatches.some((line) => references.some((reference) => line.includes(reference))))
      names.push('ledger mismatch')
    if (names.length === 0) continue
    const title = `purchase ${index} of /paid/${purchase.route.name} with ${purchase.n}: ${names.join(', ')}`
    const payments = references.map((reference) => {
      const transactions = charges
        .filter((charge) => charge.reference === reference)
        .map((charge) => `${charge.transaction} (${charge.amount})`)
      const { id = 'no record', state = '', attempts = 0, receipt: paid } = recordOf.get(reference) ?? {}
      const block = paid?.block === undefined ? '' : `, in block ${paid.block.number} ${paid.block.hash}`
      return `payment ${reference}: ${id} ${state}, ${attempts} attempts${block}; charged by ${transactions.join(', ') || 'no transaction'}`
    })
    const isUnclear = isUnpaid(outcome) || hasWrongReceipt(outcome)
    const history = isUnclear ? await transactionLines(evidence, log, purchase) : []
    const lines = [...purchase.events, ...payments, ...receiptLines(outcomes, purchase, receipt), ...history]
    ofPurchases.push(title, ...lines.map((line) => `  ${line}`))
  }
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
    case 'undone':
      return [receipt, 'a reorganization has undone the block of its transaction']
    case 'mismatch':
      return [receipt, match.why]
    case 'redelivered': {
      const { first, kill } = match
      const index = outcomes.findIndex(({ purchase }) => purchase === first)
      const after = kill.from - (first.answer?.receivedAt ?? 0)
      return [
        receipt,
        `paid by the equal purchase ${index} of the same buyer, whose answer came with the same receipt from ${first.answer?.from ?? ''}`,
        `${kill.target} was killed ${after < 0 ? `${-after} ms before` : `${after} ms after`} that`,
      ]
    }
  }
}

/** How long before the answer of an unpaid purchase, and after it, its transaction may have been sent and undone. */
const AROUND_MS = 40_000

/** What has become of the transaction in a receipt, and what was killed meanwhile, in order. */
async function transactionLines(
  { method }: Pick<Evidence, 'method'>,
  { kills, reorganizations }: PurchaseLog,
  { answer }: Purchase,
): Promise<string[]> {
  const { transaction, receivedAt } = answer ?? {}
  if (transaction === undefined || receivedAt === undefined) return []
  const happened = [
    ...method.broadcastsOf(transaction).map(({ at, refusal }) => ({
      at,
      line: refusal === undefined ? 'its transaction is sent' : `its transaction is refused: ${refusal}`,
    })),
    ...reorganizations.map(({ at, dropped, returned }) => {
      if (!dropped.includes(transaction)) return { at, line: 'a reorganization without it' }
      const line = returned.includes(transaction) ? 'comes back into the pool' : 'is gone'
      return { at, line: `a reorganization undoes its block; it ${line}` }
    }),
    ...kills.map(({ target, from }) => ({ at: from, line: `${target} is killed` })),
  ]
  const lines = happened
    .filter(({ at }) => Math.abs(at - receivedAt) < AROUND_MS)
    .sort((one, other) => one.at - other.at)
    .map(({ at, line }) => `${new Date(at).toISOString().slice(11, 23)} ${line}`)
  return [...lines, await method.standingOf(transaction)]
}
