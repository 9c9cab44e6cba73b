import { backupRecords, backupStates, verifyBackup } from '../../engine/ledger/backup.ts'
import { restoreRecords, restoreStates, type RestoreResult } from '../../engine/ledger/restore.ts'
import type { Call } from '../command.ts'
import { countOf } from '../../engine/base/words.ts'
import { withLedger } from '../payments/open-ledger.ts'
import { fileOf } from './backup.ts'
import { readLines } from './backup-file.ts'

/** Merges a backup into the ledger, also while servers use it. Exits 1 when some payments were in work. */
export async function restoreLedger(call: Call): Promise<number> {
  const { flags, terminal } = call
  const file = fileOf(call)
  // The whole file is checked before the first record is restored.
  const { records } = await verifyBackup(file, readLines(file))
  return withLedger(
    call,
    async (ledger) => {
      const result = await restoreRecords(ledger, backupRecords(readLines(file)))
      const states = await restoreStates(ledger, backupStates(readLines(file)))
      const report = { file, records, ...result, ...(states > 0 && { states }) }
      if (flags.given('json')) terminal.out(JSON.stringify(report, null, 2))
      else {
        for (const line of linesOf(records, result)) terminal.out(line)
        if (states > 0) terminal.out(`${countOf(states, 'state')} of channels put back`)
      }
      return result.busy === 0 ? 0 : 1
    },
    'create',
  )
}

function linesOf(records: number, { added, advanced, kept, uncharged, busy }: RestoreResult): string[] {
  const lines = [
    `${countOf(records, 'payment record')} in the backup: ${added} added, ${advanced} advanced, ${kept} kept as they are in the ledger, ${uncharged} left out because nothing was charged`,
  ]
  if (busy > 0)
    lines.push(`a server works on ${countOf(busy, 'payment')} of them at present: run the restore again`)
  if (added > 0)
    lines.push(
      'payments and refunds after the backup are not in it: "ratecard payments reconcile" compares with the chains',
    )
  return lines
}
