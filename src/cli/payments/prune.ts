import { measurePrune, prune } from '../../engine/ledger/clean-up.ts'
import { systemRuntime } from '../../engine/base/runtime.ts'
import type { Call } from '../command.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import { countOf } from '../../engine/base/words.ts'
import { withLedger } from './open-ledger.ts'
import { isoTime } from './payment-row.ts'
import { parsePastTime } from './parse-time.ts'

export async function prunePayments(call: Call): Promise<number> {
  const { flags, terminal } = call
  const text = flags.text('before')
  if (text === undefined) throw new UsageError('--before is missing: name a time, such as 90d or 2026-10-01')
  const before = parsePastTime('before', text, systemRuntime.now())
  const isDryRun = flags.given('dry-run')
  return withLedger(call, async (ledger) => {
    const pruneOrMeasure = isDryRun ? measurePrune : prune
    const { records, bytes, kept } = await pruneOrMeasure({ ledger, now: ledger.now }, before)
    if (flags.given('json')) {
      const report = { before: isoTime(before), dry_run: isDryRun, records, bytes, kept }
      terminal.out(JSON.stringify(report, null, 2))
      return 0
    }
    terminal.out(
      `${isDryRun ? 'would delete' : 'deleted'} ${countOf(records, 'payment record')} from before ${isoTime(before)}: ${bytes} bytes`,
    )
    if (kept > 0)
      terminal.out(
        `${countOf(kept, 'payment record')} as old: kept, not finished, owed an answer or still answered again`,
      )
    return 0
  })
}
