import type { JsonObject } from '../../engine/base/json.ts'
import type { Ledger } from '../../engine/ledger/ledger.ts'
import type { Checked, Difference, Statement, Sum } from '../../engine/reconcile/compare.ts'
import type { OnchainPayment, OnchainStatus } from '../../engine/payment/reconcile-source.ts'
import { reconcile } from '../../engine/reconcile/reconcile.ts'
import { systemRuntime } from '../../engine/base/runtime.ts'
import type { Call, Terminal } from '../command.ts'
import { chainsOf, withLedger } from './open-ledger.ts'
import { isoTime, rowOf, spellAmount } from './payment-row.ts'
import { parsePastTime } from './parse-time.ts'
import { countOf } from '../../engine/base/words.ts'
import { clean } from '../../command-line/printable.ts'
import { linesFor } from '../terminal-text.ts'

/** Exit codes a script can act on. A difference outweighs a network that could not be asked. */
export const EXIT = { agreed: 0, unchecked: 1, differences: 2 } as const

export async function reconcilePayments(call: Call): Promise<number> {
  const compare = comparisonOf(call)
  return withLedger(call, async (ledger) => {
    const { exit, print, report } = await compare(ledger)
    if (call.flags.given('json')) call.terminal.out(JSON.stringify(report, null, 2))
    else print()
    return exit
  })
}

/** The result of a comparison with the chains. */
interface Comparison {
  readonly exit: number
  /** Whether every network could be asked. */
  readonly isComplete: boolean
  readonly print: () => void
  readonly report: JsonObject
}

/** Reads the flags and settings of a comparison, and returns what compares a ledger. */
export function comparisonOf(call: Call): (ledger: Ledger) => Promise<Comparison> {
  const { flags, terminal } = call
  const since = parsePastTime('since', flags.text('since') ?? '24h', systemRuntime.now())
  const chains = chainsOf(call)
  return async (ledger) => {
    const statements = await reconcile({
      ...systemRuntime,
      ...chains,
      ledger,
      since,
      progress: (network, read) => terminal.progress(`${network}: ${read}`),
    })
    terminal.progress('')
    const checked = statements.filter((statement) => statement.kind === 'checked')
    const isComplete = checked.length === statements.length && checked.length > 0
    const differ = checked.some(({ differences }) => differences.length > 0)
    return {
      exit: differ ? EXIT.differences : isComplete ? EXIT.agreed : EXIT.unchecked,
      isComplete,
      print: () => print(terminal, statements, since),
      report: reportOf(statements, since),
    }
  }
}

function print(terminal: Terminal, statements: readonly Statement[], since: number): void {
  const out = (text: string): void => terminal.out(linesFor(terminal, text))
  const err = (text: string): void => terminal.err(linesFor(terminal, text))
  const checked = statements.filter((statement) => statement.kind === 'checked')
  for (const statement of checked) printChecked(out, statement, since)
  for (const statement of statements)
    if (statement.kind === 'unchecked')
      err(`${statement.network}, ${statement.protocol}: could not be checked: ${statement.reason}`)
  if (statements.length === 0)
    err('nothing could be checked: no network has an RPC_URL_<chain id> and an address that is paid there')
  if (checked.length === 0) return
  const count = checked.reduce((all, { differences }) => all + differences.length, 0)
  const found = count === 0 ? 'no difference' : countOf(count, 'difference')
  const missed = statements.length - checked.length
  out(
    `${found}${missed === 0 ? '' : `, but ${missed} of ${statements.length} could not be checked`}; nothing was changed`,
  )
}

function printChecked(out: Terminal['out'], statement: Checked, since: number): void {
  const { protocol, network, asset, payees, span, agreed, underway, transfers, refunds, differences } =
    statement
  const { amount, token } = spellAmount(transfers.amount, network, asset)
  const spell = (sum: Sum): string =>
    `${sum.count} (${spellAmount(sum.amount, network, asset).amount} ${token})`
  out(`${network}, ${protocol}, ${token} to ${payees.join(', ')}`)
  const blocks = span === undefined ? '' : `, blocks ${span.from} to ${span.to}`
  out(`  since ${isoTime(since)}${blocks}`)
  out(`  ${agreed} agreed, ${underway} under way, ${transfers.count} other transfers (${amount} ${token})`)
  if (refunds.due.count + refunds.sent.count > 0)
    out(`  refunds: ${spell(refunds.sent)} sent, ${spell(refunds.due)} due`)
  for (const difference of differences) {
    const { title, says, advice } = findingOf(difference, network, asset)
    out(`\n  ${title}: ${nameOf(difference)}\n    ${says}\n    To do: ${advice}.`)
  }
  out('')
}

function nameOf(difference: Difference): string {
  if (difference.kind === 'not_in_ledger') return difference.payment.transaction
  const { payment, amount, token, operation } = rowOf(difference.record)
  return `${payment}, ${amount} ${token} for ${operation}`
}

/** A reconciliation for programs; names are part of the interface. */
function reportOf(statements: readonly Statement[], since: number): JsonObject {
  return { since: isoTime(since), changed: 'nothing', networks: statements.map(networkOf) }
}

function networkOf(statement: Statement): JsonObject {
  const { kind, protocol, network, asset } = statement
  const head = { network, protocol, asset, status: kind }
  if (statement.kind === 'unchecked') return { ...head, reason: statement.reason }
  const { payees, span, agreed, underway, transfers, refunds, differences } = statement
  const spell = ({ count, amount }: Sum): JsonObject => ({
    count,
    amount: spellAmount(amount, network, asset).amount,
  })
  return {
    ...head,
    payees,
    blocks: span === undefined ? null : { from: Number(span.from), to: Number(span.to) },
    agreed,
    underway,
    other_transfers: spell(transfers),
    refunds: { due: spell(refunds.due), sent: spell(refunds.sent) },
    differences: differences.map((difference) => differenceOf(difference, network, asset)),
  }
}

function differenceOf(difference: Difference, network: string, asset: string): JsonObject {
  const { says, advice } = findingOf(difference, network, asset)
  const payment = paymentOf(difference)
  return {
    kind: difference.kind,
    ledger: difference.kind === 'not_in_ledger' ? null : { ...rowOf(difference.record) },
    chain: {
      shows: showsOf(difference),
      ...(payment === undefined ? {} : spellPayment(payment, network, asset)),
    },
    ...(difference.kind === 'differs' ? { fields: difference.fields } : {}),
    says,
    advice,
  }
}

function showsOf(difference: Difference): string {
  if ('status' in difference) return difference.status.kind
  return difference.kind === 'refund_missing' ? 'no_refund' : 'moved'
}

function paymentOf(difference: Difference): OnchainPayment | undefined {
  if ('payment' in difference) return difference.payment
  if (!('status' in difference)) return undefined
  return difference.status.kind === 'moved' ? difference.status.payment : undefined
}

function spellPayment(
  { transaction, block, payer, payee, amount }: OnchainPayment,
  network: string,
  asset: string,
): JsonObject {
  return { transaction, block: Number(block), payer, payee, ...spellAmount(amount, network, asset) }
}

/** One difference in words: what each side says, and what to do about it. */
export interface Finding {
  readonly title: string
  readonly says: string
  readonly advice: string
}

const TITLES: Readonly<Record<Difference['kind'], string>> = {
  missing_on_chain: 'missing on chain',
  not_in_ledger: 'not in ledger',
  not_booked: 'charged but not booked',
  differs: 'not the same',
  unresolved: 'unresolved',
  refund_missing: 'refund missing on chain',
  refund_not_booked: 'refunded but not booked',
}

export function findingOf(difference: Difference, network: string, asset: string): Finding {
  const money = (atomic: bigint): string => {
    const { amount, token } = spellAmount(atomic, network, asset)
    return `${amount} ${token}`
  }
  return { title: TITLES[difference.kind], ...tell(difference, money) }
}

type Money = (atomic: bigint) => string

function tell(difference: Difference, money: Money): Omit<Finding, 'title'> {
  switch (difference.kind) {
    case 'missing_on_chain': {
      const { receipt } = difference.record
      return {
        says: `The ledger says charged in ${clean(receipt?.transaction ?? '')}; on the chain ${STATUSES[difference.status.kind]}.`,
        advice:
          'ask another node first, because this one may be incomplete; if it agrees, the answer was not paid for: remove the payment from the accounts',
      }
    }
    case 'not_in_ledger': {
      const { payment } = difference
      return {
        says: `${seen(payment, money)}; this ledger has no record of it.`,
        advice: `check whether another service is paid at this address, or the ledger was lost or moved since; if not, refund ${money(payment.amount)} to ${payment.payer}`,
      }
    }
    case 'not_booked': {
      const { record, payment } = difference
      const refund = `refund ${money(payment.amount)} to ${payment.payer}`
      return {
        says: `${seen(payment, money)}; the ledger has it as ${record.state}, not charged.`,
        advice:
          record.state === 'fulfilled'
            ? `the payer gets the answer by sending the same payment again, which also records it; otherwise ${refund}`
            : `the payer has no answer for it: ${refund}, and book both`,
      }
    }
    case 'differs': {
      const { record, payment, fields } = difference
      const { receipt } = record
      const ledger = {
        amount: money(BigInt(receipt?.amount ?? record.amount)),
        payer: receipt?.payer ?? record.payer,
        payee: record.payee,
        transaction: receipt?.transaction ?? '',
      }
      const chain = { ...payment, amount: money(payment.amount) }
      const differing = fields.map(
        (field) => `${field}: ledger ${clean(ledger[field])}, chain ${chain[field]}`,
      )
      return {
        says: `Ledger and chain differ: ${differing.join('; ')}.`,
        advice:
          'the chain is right: use its amounts in the accounts, and settle the difference with the payer',
      }
    }
    case 'refund_missing':
    case 'refund_not_booked': {
      const { id, refund, receipt } = difference.record
      const hash = refund === undefined || refund.kind === 'due' ? '' : clean(refund.hash)
      const again = `run "ratecard payments refund ${id}" again: it is never sent twice`
      const back = `${money(BigInt(receipt?.amount ?? 0))} to ${clean(receipt?.payer ?? '')}`
      if (difference.kind === 'refund_not_booked')
        return {
          says: `The chain shows a refund of ${back} in ${hash}; the ledger has it as being sent.`,
          advice: again,
        }
      return {
        says: `The ledger says ${refund?.kind === 'sent' ? 'refunded' : 'being refunded'} in ${hash}; the chain shows no refund of ${back} there.`,
        advice:
          refund?.kind === 'sent'
            ? `ask another node first; if it agrees, run "ratecard payments refund ${id}", which sends the same transaction again until it expires; after that, send the money from your wallet`
            : again,
      }
    }
    case 'unresolved': {
      const { record, status } = difference
      return {
        says: `The ledger has it as ${record.state} since ${isoTime(record.createdAt)}; on the chain ${STATUSES[status.kind]}.`,
        advice: NEXT[status.kind],
      }
    }
  }
}

function seen({ amount, payer, transaction }: OnchainPayment, money: Money): string {
  return `The chain shows ${money(amount)} from ${payer} in ${transaction}`
}

/** Completes the sentence "on the chain …". */
const STATUSES: Readonly<Record<OnchainStatus['kind'], string>> = {
  moved: 'it was charged',
  elsewhere: 'it was used, and its money did not go to this payee',
  canceled: 'the payer has withdrawn it',
  reverted: 'its transaction has failed',
  expired: 'it was never used and has expired',
  open: 'it has not been used and is still valid',
  unclear: 'the node does not show whether it was used',
}

const SERVER = 'a running server checks this again automatically; start one if none is running'

const NEXT: Readonly<Record<OnchainStatus['kind'], string>> = {
  moved: `${SERVER}, and the buyer gets the answer by sending the same payment again`,
  elsewhere: SERVER,
  canceled: SERVER,
  reverted: SERVER,
  expired: SERVER,
  open: 'nothing yet: check again once it has expired',
  unclear: 'ask another node that keeps older logs',
}
