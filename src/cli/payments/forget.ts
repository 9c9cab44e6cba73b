import { payerKeys } from '../../engine/app/payer-keys.ts'
import { systemRuntime } from '../../engine/base/runtime.ts'
import { forgetPayer, type ForgetResult } from '../../engine/ledger/forget-payer.ts'
import type { Call } from '../command.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import { countOf } from '../../engine/base/words.ts'
import { withLedger } from './open-ledger.ts'
import { parsePastTime } from './parse-time.ts'
import { isoTime } from './payment-row.ts'

/** Deletes what a payer has bought, and says what stays. Exits 1 when some payments are not finished. */
export async function forgetPayments(call: Call): Promise<number> {
  const { positionals, flags, terminal } = call
  const [payer = ''] = positionals
  const keys = payerKeys(payer)
  if (keys.length === 0)
    throw new UsageError(
      `name the payer by its address, 0x and 40 hexadecimal digits or one of Solana; not "${payer}"`,
    )
  const text = flags.text('before')
  const before = text === undefined ? 0 : parsePastTime('before', text, systemRuntime.now())
  return withLedger(call, async (ledger) => {
    const isPayer = (recorded: string): boolean => payerKeys(recorded).some((key) => keys.includes(key))
    const result = await forgetPayer(ledger, { isPayer, before })
    if (flags.given('json')) {
      const { newest, ...counts } = result
      const report = { payer, ...counts, newest: newest === undefined ? null : isoTime(newest) }
      terminal.out(JSON.stringify(report, null, 2))
    } else for (const line of linesOf(payer, result)) terminal.out(line)
    return result.open === 0 ? 0 : 1
  })
}

function linesOf(payer: string, { answers, deleted, reduced, kept, open, newest }: ForgetResult): string[] {
  if (answers + deleted + reduced + kept + open === 0) return [`this ledger has no payment of ${payer}`]
  const lines = [
    `deleted of ${payer}: ${countOf(answers, 'answer')}, ${countOf(deleted, 'record')}, and in ${countOf(reduced, 'record')} everything but the money side`,
  ]
  const stay = reduced + kept
  if (stay > 0 && newest !== undefined)
    lines.push(
      `kept: ${countOf(stay, 'record')} with amount, network, addresses, transaction, times and refund, because charges and refunds have to be accounted for; the newest is of ${isoTime(newest).slice(0, 10)}. When your accounting period is over, "ratecard payments prune" deletes them, or this command with --before`,
    )
  if (open > 0) lines.push(`not finished: ${countOf(open, 'payment')}; run this command again in a minute`)
  lines.push(
    'not part of the ledger: log files, backups, what your handlers have stored, and the transactions on the chain',
  )
  return lines
}
