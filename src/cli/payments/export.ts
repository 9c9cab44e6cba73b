import { chargeStatus, refundStateOf } from '../../engine/ledger/payment-lifecycle.ts'
import type { PaymentRecord, Receipt } from '../../engine/ledger/payment-record.ts'
import { findTransactionPage } from '../../engine/base/networks.ts'
import { systemRuntime } from '../../engine/base/runtime.ts'
import type { Call } from '../command.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import { countOf } from '../../engine/base/words.ts'
import { clean } from '../../command-line/printable.ts'
import { sandboxUrl } from '../../buyer/sandbox-file.ts'
import {
  openReceiptSigner,
  type ReceiptSigner,
  type SignedReceipts,
} from '../../engine/receipts/receipt-signer.ts'
import { baseUrlOf } from '../payment-config.ts'
import { dataDirOf, withLedger } from './open-ledger.ts'
import { feeOf, isoTime, spellAmount, usageOf } from './payment-row.ts'
import { payerFilterOf } from './payer-filter.ts'
import { parsePastTime, parseTime } from './parse-time.ts'

/** A spreadsheet takes what begins like this for a formula, and would run it. */
const FORMULA = /^[=+\-@\t\r]/

/** One line of CSV (RFC 4180), without its end: what looks like a formula is made text by an apostrophe. */
export function csvLine(cells: readonly string[]): string {
  return cells.map(csvCell).join(',')
}

function csvCell(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

export async function exportPayments(call: Call): Promise<number> {
  const isJson = call.flags.given('json')
  const { out } = call.terminal
  const covers = periodOf(call, systemRuntime.now())
  const isOfPayer = payerFilterOf(call)
  const receipts = receiptsOf(call)
  let doubts = 0
  let comma = ''
  // Written line by line: a year of payments does not have to fit into memory.
  await withLedger(call, async (ledger) => {
    out(isJson ? '[' : csvLine(COLUMNS))
    for await (const record of ledger.records()) {
      const { receipt, settledAt, createdAt } = record
      if (!covers(settledAt ?? createdAt) || !isOfPayer(record)) continue
      if (receipt === undefined) {
        if (chargeStatus(record) === 'unknown') doubts += 1
        continue
      }
      const row = { ...rowOf(record, receipt), ...signedFields(receipts?.sign(record, receipt)) }
      out(isJson ? comma + JSON.stringify(row, [...COLUMNS]) : csvLine(COLUMNS.map((column) => row[column])))
      comma = ','
    }
    if (isJson) out(']')
  })
  if (doubts > 0) call.terminal.err(`left out: ${countOf(doubts, 'payment')} whose charge is unknown`)
  return 0
}

/** The period that counts payments by their time of settlement: from `--since` on, before `--until`. */
function periodOf({ flags }: Call, now: number): (time: number) => boolean {
  const [since, until] = [flags.text('since'), flags.text('until')]
  const start = since === undefined ? 0 : parsePastTime('since', since, now)
  const end = until === undefined ? Infinity : parseTime('until', until, now)
  if (start >= end) throw new UsageError('--until has to be later than --since')
  return (time) => time >= start && time < end
}

/**
 * Columns of a charged payment. Their names are part of the interface: columns may be added at the end, and none is
 * renamed.
 */
const COLUMNS = [
  'payment',
  'taken_at',
  'settled_at',
  'state',
  'protocol',
  // CAIP-2.
  'network',
  'token',
  'asset',
  'amount',
  'amount_atomic',
  'payer',
  'payee',
  'transaction',
  'operation',
  // Revision of the catalog that named the price.
  'revision',
  // `due`, `sending` or `sent`; empty when the money stays.
  'refund',
  'refund_transaction',
  // Paid by the signer: for a transaction that settles several payments, the share of this one. Empty when another
  // account paid it.
  'gas_cost_wei',
  'payments_in_transaction',
  // The account that the refund was sent from.
  'refund_sender',
  // JWS, with RECEIPT_PRIVATE_KEY: that of x402’s extension offer-receipt, and that of Ratecard.
  'x402_receipt',
  'ratecard_receipt',
  // What the payer has signed for: more than `amount` where the price was known after the work.
  'authorized',
  'authorized_atomic',
  // What such an amount consists of.
  'usage',
  // `gas_cost_wei` in units of the coin.
  'fee',
  // Where an explorer shows the transaction.
  'transaction_page',
] as const

type ChargeRecord = Readonly<Record<(typeof COLUMNS)[number], string>>

/** The signer of a server with these settings: its receipts are the same here. */
function receiptsOf({ env, flags }: Call): ReceiptSigner | undefined {
  const sandbox = flags.given('sandbox') ? sandboxUrl(dataDirOf({ env, flags })) : undefined
  return openReceiptSigner(env.receiptKeys, sandbox ?? baseUrlOf(env))
}

type SignedFields = Pick<ChargeRecord, 'x402_receipt' | 'ratecard_receipt'>

function signedFields(signed: SignedReceipts | undefined): SignedFields {
  return { x402_receipt: signed?.x402 ?? '', ratecard_receipt: signed?.ratecard ?? '' }
}

function rowOf(
  record: PaymentRecord,
  { amount: atomic, transaction, gasCost }: Receipt,
): Omit<ChargeRecord, keyof SignedFields> {
  const { id, createdAt, settledAt, state, protocol, network, asset, refund, dispatch } = record
  const { amount, token } = spellAmount(BigInt(atomic), network, asset)
  return {
    payment: id,
    taken_at: isoTime(createdAt),
    settled_at: isoTime(settledAt ?? createdAt),
    state,
    protocol,
    network,
    token,
    asset: clean(asset),
    amount,
    amount_atomic: atomic,
    payer: clean(record.payer),
    payee: clean(record.payee),
    transaction: clean(transaction),
    operation: clean(record.operation),
    revision: clean(record.revision),
    refund: refundStateOf(record, systemRuntime.now()) ?? '',
    refund_transaction: refund?.kind === 'sent' ? clean(refund.hash) : '',
    gas_cost_wei: gasCost ?? '',
    payments_in_transaction: String((dispatch?.kind === 'own' ? dispatch.members : undefined) ?? 1),
    refund_sender: refund === undefined || refund.kind === 'due' ? '' : clean(refund.sender ?? ''),
    authorized: spellAmount(BigInt(record.authorizedAmount), network, asset).amount,
    authorized_atomic: record.authorizedAmount,
    usage: usageOf(record) ?? '',
    fee: feeOf(record) ?? '',
    transaction_page: findTransactionPage(network, transaction) ?? '',
  }
}
