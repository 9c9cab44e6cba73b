import { parseArgs } from 'node:util'
import { runChaos, type ChaosResult } from './chaos-run.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    processes: { type: 'string', default: '2' },
    ledger: { type: 'string', default: 'lmdb' },
    protocol: { type: 'string', default: 'x402' },
    reorg: { type: 'string', default: '60' },
    buyers: { type: 'string', default: '48' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const seed = Number(values.seed)
const kills = Number(values.kills)
const processes = Number(values.processes)
const reorgSeconds = Number(values.reorg)
const store = oneOf(['lmdb', 'redis'] as const, values.ledger)
const protocol = oneOf(['x402', 'svm', 'upto', 'channels', 'mpp'] as const, values.protocol)
const of = `${processes} process${processes === 1 ? '' : 'es'}`
console.log(
  `seed ${seed}: ${kills} kills of ${of}, paid by ${protocol}, ledger in ${store}, ${reorgSeconds === 0 ? 'no reorganization' : `a reorganization every ${reorgSeconds} s`}`,
)

const result = await runChaos({
  kills,
  processes,
  store,
  protocol,
  seed,
  reorgMs: reorgSeconds * 1_000,
  buyers: Number(values.buyers),
  onProgress: ({ kills: killed, log: { purchases, cutOff } }) => {
    const answered = purchases.filter(({ answer }) => answer !== undefined).length
    const line = `${killed}/${kills} kills, ${answered} of ${purchases.length} purchases answered, ${cutOff} requests cut off`
    if (process.stdout.isTTY) process.stdout.write(`\r${line}\u001b[K`)
  },
})
report(result)
const { totals } = result
const violations = [
  totals.lost,
  totals.doubleCharged,
  totals.unpaid,
  totals.wrongReceipts,
  totals.wrongAmounts,
  totals.unknownCharges,
  totals.unresolved,
  totals.ledgerMismatches,
  totals.writeMismatches,
  totals.unkeyed,
  totals.withoutEffect,
  result.log.wrongAnswers,
  result.consoleMismatches.length,
]
process.exitCode = violations.every((count) => count === 0) ? 0 : 1

function report({
  totals,
  findings,
  log,
  recoveryMs,
  longestStallMs,
  pagesRead,
  shown,
  consoleMismatches,
  leaked,
  unexpected,
}: ChaosResult): void {
  const statuses = [...log.statuses].sort(([a], [b]) => a - b)
  const rows: [string, string | number][] = [
    ['kills', kills],
    ['reorganizations', log.reorganizations.length],
    ['transactions they dropped', sum(log.reorganizations.map(({ dropped }) => dropped.length))],
    ['of these back in the pool', sum(log.reorganizations.map(({ returned }) => returned.length))],
    ['purchases', totals.purchases],
    ['answered', totals.answered],
    ['payments signed', totals.signed],
    ['charges on chain', totals.charges],
    ['transactions of the charges', totals.transactions],
    ['handler runs', totals.runs],
    ['lost', totals.lost],
    ['charged twice', totals.doubleCharged],
    ['redelivered, not charged', totals.redelivered],
    ['unpaid', totals.unpaid],
    ['receipts of other purchases', totals.wrongReceipts],
    ['receipts of undone blocks', totals.undoneReceipts],
    ['charges of wrong amounts', totals.wrongAmounts],
    ['charges without a purchase', totals.unknownCharges],
    ['records unresolved', totals.unresolved],
    ['ledger and chain differ', totals.ledgerMismatches],
    ['writes and charges differ', totals.writeMismatches],
    ['effects', totals.effects],
    ['repeated calls, same key', totals.repeated],
    ['calls without their own key', totals.unkeyed],
    ['charges without an effect', totals.withoutEffect],
    ['answers for other arguments', log.wrongAnswers],
    ['requests cut off', log.cutOff],
    ['responses', statuses.map(([status, times]) => `${status}: ${times}`).join(', ')],
    ['5xx', statuses.reduce((sum, [status, times]) => (status >= 500 ? sum + times : sum), 0)],
    ['recovered after', `${(recoveryMs / 1000).toFixed(1)} s`],
    ['longest stall of buyers', `${longestStallMs} ms`],
    ['pages of the console read', pagesRead],
    ['settled, in the console', shown.settled],
    ['delivered, in the console', shown.delivered],
    ['console, list, chain differ', consoleMismatches.length],
    ['leaked', leaked.length === 0 ? 'nothing' : leaked.join(', ')],
    ['unexpected errors', unexpected.length],
  ]
  console.log()
  for (const [name, value] of rows) console.log(`${name.padEnd(27)} ${value}`)
  for (const line of new Set(unexpected)) console.log(`  ${line}`)
  for (const line of consoleMismatches) console.log(line)
  for (const line of findings) console.log(line)
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}

function oneOf<T extends string>(names: readonly T[], given: string): T {
  const found = names.find((name) => name === given)
  if (found === undefined) throw new Error(`${given} is none of ${names.join(', ')}`)
  return found
}
