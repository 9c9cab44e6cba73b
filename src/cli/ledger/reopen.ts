import type { Call } from '../command.ts'
import { withLedger } from '../payments/open-ledger.ts'
import { comparisonOf, EXIT } from '../payments/reconcile.ts'

/**
 * Opens a ledger again that was emptied or replaced. The chains are asked first, so that an operator knows what was lost
 * before anything is sold; a payment that the ledger has forgotten is never charged again, since the chain knows it.
 */
export async function reopenLedger(call: Call): Promise<number> {
  const { flags, terminal } = call
  const compare = comparisonOf(call)
  return withLedger(
    call,
    async (ledger) => {
      const { exit, isComplete, print, report } = await compare(ledger)
      const reopened = isComplete || flags.given('unchecked')
      if (reopened) await ledger.reopen()
      if (flags.given('json')) terminal.out(JSON.stringify({ ...report, reopened }, null, 2))
      else print()
      if (reopened) terminal.err('the ledger is open again: running servers sell within seconds')
      else
        terminal.err(
          'the ledger was not reopened: not every network could be compared; set what is missing, or add --unchecked',
        )
      return reopened ? (exit === EXIT.unchecked ? EXIT.agreed : exit) : EXIT.unchecked
    },
    'create',
  )
}
