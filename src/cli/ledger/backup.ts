import { existsSync } from 'node:fs'
import { backupLines } from '../../engine/ledger/backup.ts'
import type { Call } from '../command.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import { countOf } from '../../engine/base/words.ts'
import { withLedger } from '../payments/open-ledger.ts'
import { writeLines } from './backup-file.ts'

/** Writes the records of all payments to a file, also while servers use the ledger. */
export async function backUpLedger(call: Call): Promise<number> {
  const { flags, terminal, version } = call
  const file = fileOf(call)
  if (existsSync(file)) throw new UsageError(`${file} exists already: a backup is written to a new file`)
  return withLedger(call, async (ledger) => {
    // The head and the last line are no records.
    let records = -2
    const lines = async function* (): AsyncGenerator<string> {
      for await (const line of backupLines(ledger, { version, now: ledger.now() })) {
        records += 1
        yield line
      }
    }
    await writeLines(file, lines())
    if (flags.given('json')) terminal.out(JSON.stringify({ file, records }, null, 2))
    else
      terminal.out(
        `wrote ${countOf(records, 'payment record')} to ${file}; keep it as you keep keys: it names payers and contains signed payments`,
      )
    return 0
  })
}

/** The file that the command names. Throws `UsageError`. */
export function fileOf({ positionals }: Pick<Call, 'positionals'>): string {
  const [file] = positionals
  if (file === undefined) throw new UsageError('name the file of the backup')
  return file
}
