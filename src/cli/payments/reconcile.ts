import { type Checked, type Difference, reconcile, type Statement } from '../../engine/index.ts'
import { world } from '../compose.ts'
import type { Call, Terminal } from '../command.ts'
import { findingOf } from './advice.ts'
import { chainsOf, openBooks } from './books.ts'
import { reportOf } from './report.ts'
import { isoTime, rowOf, spellAmount } from './row.ts'
import { parsePastTime } from './when.ts'

/** Exit codes a script can act on. */
const UNCHECKED = 1
const DIFFERENCES = 2

export async function reconcilePayments(call: Call): Promise<number> {
  const { flags, terminal } = call
  const now = world.now()
  const since = parsePastTime('since', flags.text('since') ?? '24h', now)
  const chains = chainsOf(call)
  const ledger = await openBooks(call)
  try {
    const statements = await reconcile({
      ...world,
      ...chains,
      ledger,
      since,
      progress: (network, done, all) => terminal.progress(`${network}: ${done} of ${all} blocks`),
    })
    terminal.progress('')
    if (flags.given('json')) terminal.out(JSON.stringify(reportOf(statements, since), null, 2))
    else print(terminal, statements, since)
    return exitOf(statements)
  } finally {
    await ledger.close()
  }
}

/** A difference outweighs a network that could not be asked: it is there whatever that one says. */
function exitOf(statements: readonly Statement[]): number {
  const checked = statements.filter((statement) => statement.kind === 'checked')
  if (checked.some(({ differences }) => differences.length > 0)) return DIFFERENCES
  return checked.length === statements.length && checked.length > 0 ? 0 : UNCHECKED
}

function print(terminal: Terminal, statements: readonly Statement[], since: number): void {
  const { out, err } = terminal
  const checked = statements.filter((statement) => statement.kind === 'checked')
  for (const statement of checked) printChecked(terminal, statement, since)
  for (const statement of statements)
    if (statement.kind === 'unchecked')
      err(`${statement.network}, ${statement.protocol}: could not be checked: ${statement.reason}`)
  if (statements.length === 0)
    err('nothing could be checked: no network has an RPC_URL_<chain id> and an address that is paid there')
  if (checked.length === 0) return
  const count = checked.reduce((all, { differences }) => all + differences.length, 0)
  const found = count === 0 ? 'no difference' : count === 1 ? '1 difference' : `${count} differences`
  const missed = statements.length - checked.length
  out(
    `${found}${missed === 0 ? '' : `, but ${missed} of ${statements.length} could not be checked`}; nothing was changed`,
  )
}

function printChecked({ out }: Terminal, statement: Checked, since: number): void {
  const { protocol, network, asset, payees, span, agreed, underway, transfers, differences } = statement
  const { amount, token } = spellAmount(transfers.amount, network, asset)
  out(`${network}, ${protocol}, ${token} to ${payees.join(', ')}`)
  out(`  since ${isoTime(since)}, blocks ${span.from} to ${span.to}`)
  out(`  ${agreed} agreed, ${underway} under way, ${transfers.count} other transfers (${amount} ${token})`)
  for (const difference of differences) {
    const { title, says, advice } = findingOf(difference, network, asset)
    out(`\n  ${title}: ${nameOf(difference)}\n    ${says}\n    To do: ${advice}.`)
  }
  out('')
}

function nameOf(difference: Difference): string {
  if (difference.kind === 'not_in_ledger') return difference.payment.transaction
  const { payment, amount, token, operation } = rowOf(difference.entry)
  return `${payment}, ${amount} ${token} for ${operation}`
}
