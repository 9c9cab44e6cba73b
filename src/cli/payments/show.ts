import { findBatch } from '../../engine/chains/evm/kept-batch.ts'
import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { paymentStory } from '../../engine/ledger/payment-story.ts'
import type { Ledger } from '../../engine/ledger/ledger.ts'
import type { PaymentRecord, State } from '../../engine/ledger/payment-record.ts'
import { findTransactionPage } from '../../engine/base/networks.ts'
import { readPaymentKey } from '../../engine/x402/exact-evm/payment-key.ts'
import { systemRuntime } from '../../engine/base/runtime.ts'
import type { Call } from '../command.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import { columns } from '../terminal-text.ts'
import { clean } from '../../command-line/printable.ts'
import { withLedger } from './open-ledger.ts'
import { feeOf, isoTime, rowOf } from './row.ts'

export async function showPayment(call: Call): Promise<number> {
  const { positionals, flags, terminal } = call
  const [id] = positionals
  if (id === undefined || !/^pay_[A-Za-z0-9_-]{22}$/.test(id))
    throw new UsageError(
      'missing argument: the id of a payment, pay_ and 22 characters, as "ratecard payments list" shows it',
    )
  return withLedger(call, async (ledger) => {
    const entry = await ledger.find(id)
    if (entry === undefined) {
      terminal.err(`ratecard payments show: this ledger has no payment ${id}`)
      return 1
    }
    const pages = flags.given('sandbox') ? NO_PAGES : pagesOf(entry)
    const facts = { ...factsOf(await withBytes(ledger, entry), systemRuntime.now()), ...pages }
    const { means, advice } = paymentStory(entry, systemRuntime.now())
    const story = { means: clean(means), advice: clean(advice) }
    if (flags.given('json')) terminal.out(JSON.stringify({ ...facts, ...story }, null, 2))
    else terminal.out(`${tableOf(facts)}\n\n${story.means}\nTo do: ${story.advice}.`)
    return 0
  })
}

/** Adds the bytes of a batch, which are kept once for all its payments. */
async function withBytes(ledger: Ledger, entry: PaymentRecord): Promise<PaymentRecord> {
  const { dispatch } = entry
  if (dispatch?.kind !== 'own' || dispatch.members === undefined) return entry
  const raw = await findBatch(ledger, dispatch.hash)
  return raw === undefined ? entry : { ...entry, dispatch: { ...dispatch, raw } }
}

/** All an operator may need; what was sold, what the buyer signed and what proves their right stay where they are. */
function factsOf(entry: PaymentRecord, now: number): JsonObject {
  const { settledAt, leaseUntil, due, pendingWrite: prepared } = entry
  return {
    ...rowOf(entry),
    amount_atomic: entry.receipt?.amount ?? entry.amount,
    authorized_atomic: entry.authorizedAmount,
    gas_cost_wei: entry.receipt?.gasCost ?? null,
    fee: feeOf(entry),
    asset: clean(entry.asset),
    payee: clean(entry.payee),
    authorization_nonce: readPaymentKey(entry.key)?.nonce ?? null,
    settle: entry.settle,
    revision: clean(entry.revision),
    settled_at: optionalTime(settledAt),
    undone: undoneOf(entry),
    changed_at: isoTime(entry.updatedAt),
    expires_at: isoTime(entry.validBefore),
    answer_kept_until: settledAt === undefined ? null : isoTime(settledAt + entry.redeliver),
    looked_after_at: optionalTime(due),
    attempts: entry.attempts,
    worked_on_by: leaseUntil > now && !DONE.has(entry.state) ? clean(entry.owner) : null,
    prepared: prepared === true,
    dispatch: dispatchOf(entry),
    answer: answerOf(entry),
  }
}

/** Where explorers show the transactions of a payment; no explorer knows those of a sandbox. */
function pagesOf({ network, receipt, refund }: PaymentRecord): JsonObject {
  const pageOf = (transaction: string): string | null => findTransactionPage(network, transaction) ?? null
  return {
    transaction_page: pageOf(receipt?.transaction ?? ''),
    refund_page: pageOf(refund === undefined || refund.kind === 'due' ? '' : refund.hash),
  }
}

const NO_PAGES: JsonObject = { transaction_page: null, refund_page: null }

/** A lease that is left over from the last change says nothing. */
const DONE: ReadonlySet<State> = new Set<State>(['sent', 'voided'])

function optionalTime(ms: number | undefined): string | null {
  return ms === undefined ? null : isoTime(ms)
}

/** How the money was asked for, without anything that would move it. */
function dispatchOf({ dispatch }: PaymentRecord): JsonObject | null {
  switch (dispatch?.kind) {
    case undefined:
      return null
    case 'own': {
      const { kind, hash, signer, nonce, members, raw } = dispatch
      return {
        kind,
        transaction: clean(hash),
        signer: clean(signer),
        nonce,
        payments_in_transaction: members ?? 1,
        can_be_sent_again: raw !== undefined,
      }
    }
    case 'payer': {
      const { kind, hash, raw } = dispatch
      return { kind, transaction: clean(hash), can_be_sent_again: raw !== undefined }
    }
    case 'facilitator': {
      const { kind, url, request } = dispatch
      // Its path may hold a key.
      const host = URL.canParse(url) ? new URL(url).host : ''
      return { kind, host, can_be_sent_again: request !== undefined }
    }
  }
}

/** The transaction that had charged it, until a reorganization. */
function undoneOf({ undone }: PaymentRecord): JsonObject | null {
  return undone === undefined ? null : { transaction: clean(undone.transaction) }
}

function answerOf({ answer }: PaymentRecord): JsonObject | null {
  if (answer === undefined) return null
  return { type: clean(answer.mediaType), bytes: answer.size }
}

function tableOf(facts: JsonObject): string {
  const rows = Object.entries(facts).flatMap(([name, value]) =>
    value === null || value === false ? [] : [[spaced(name), spell(value)]],
  )
  return columns(rows)
}

function spell(value: Json): string {
  if (typeof value === 'string') return value
  if (!isJsonObject(value)) return JSON.stringify(value)
  return Object.entries(value)
    .flatMap(([name, each]) => (each === null ? [] : [`${spaced(name)} ${spell(each)}`]))
    .join(', ')
}

function spaced(name: string): string {
  return name.replaceAll('_', ' ')
}
