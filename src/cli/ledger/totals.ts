import { countOf } from '../../engine/base/words.ts'
import type { Call } from '../command.ts'
import { withLedger } from '../payments/open-ledger.ts'

/** Works the totals out again from the records. Each change of a record changes them, so they differ after a fault only. */
export async function rebuildTotals(call: Call): Promise<number> {
  const { flags, terminal } = call
  return withLedger(call, async (ledger) => {
    const records = await ledger.totals.rebuild()
    if (flags.given('json')) terminal.out(JSON.stringify({ records }))
    else terminal.out(`the totals are those of ${countOf(records, 'record')}`)
    return 0
  })
}
