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
import { factsFor, linesFor } from '../terminal-text.ts'
import { clean } from '../../command-line/printable.ts'
import { withLedger } from './open-ledger.ts'
import { feeOf, isoTime, rowOf } from './payment-row.ts'

export async function showPayment(call: Call): Promise<number> {
  const { positionals, flags, terminal } = call
  const [id] = positionals
  const wanted = 'the id of a payment, pay_ and 22 characters, as "ratecard payments list" shows it'
  if (id === undefined) throw new UsageError(`missing argument: ${wanted}`)
  if (!/^pay_[A-Za-z0-9_-]{22}$/.test(id)) throw new UsageError(`"${clean(id)}" is not ${wanted}`)
  return withLedger(call, async (ledger) => {
    const record = await ledger.find(id)
    if (record === undefined) {
      terminal.err(`ratecard payments show: this ledger has no payment ${id}`)
      return 1
    }
    const pages = flags.given('sandbox') ? NO_PAGES : pagesOf(record)
    const facts = { ...factsOf(await withBytes(ledger, record), systemRuntime.now()), ...pages }
    const { means, advice } = paymentStory(record, systemRuntime.now())
    const story = { means: clean(means), advice: clean(advice) }
    if (flags.given('json')) terminal.out(JSON.stringify({ ...facts, ...story }, null, 2))
    else {
      const text = linesFor(terminal, `${story.means}\nTo do: ${story.advice}.`)
      terminal.out(`${factsFor(terminal, rowsOf(facts))}\n\n${text}`)
    }
    return 0
  })
}

/** Adds the bytes of a batch, which are kept once for all its payments. */
async function withBytes(ledger: Ledger, record: PaymentRecord): Promise<PaymentRecord> {
  const { dispatch } = record
  if (dispatch?.kind !== 'own' || dispatch.members === undefined) return record
  const raw = await findBatch(ledger, dispatch.hash)
  return raw === undefined ? record : { ...record, dispatch: { ...dispatch, raw } }
}

/** All an operator may need; what was sold, what the buyer signed and what proves their right stay where they are. */
function factsOf(record: PaymentRecord, now: number): JsonObject {
  const { settledAt, leaseUntil, due, pendingWrite: prepared } = record
  return {
    ...rowOf(record),
    amount_atomic: record.receipt?.amount ?? record.amount,
    authorized_atomic: record.authorizedAmount,
    gas_cost_wei: record.receipt?.gasCost ?? null,
    fee: feeOf(record),
    asset: clean(record.asset),
    payee: clean(record.payee),
    authorization_nonce: readPaymentKey(record.key)?.nonce ?? null,
    settle: record.settle,
    revision: clean(record.revision),
    settled_at: optionalTime(settledAt),
    undone: undoneOf(record),
    changed_at: isoTime(record.updatedAt),
    expires_at: isoTime(record.validBefore),
    answer_kept_until: settledAt === undefined ? null : isoTime(settledAt + record.redeliver),
    looked_after_at: optionalTime(due),
    attempts: record.attempts,
    worked_on_by: leaseUntil > now && !DONE.has(record.state) ? clean(record.owner) : null,
    prepared: prepared === true,
    dispatch: dispatchOf(record),
    answer: answerOf(record),
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
    case 'handed over': {
      const { kind, signer, raw } = dispatch
      return { kind, signer: clean(signer), can_be_sent_again: raw !== undefined }
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

function rowsOf(facts: JsonObject): [string, string][] {
  return Object.entries(facts).flatMap(([name, value]): [string, string][] =>
    value === null || value === false ? [] : [[spaced(name), spell(value)]],
  )
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
