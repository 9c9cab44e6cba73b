import { chargeStatus, type PaymentRecord, type Receipt, world } from '../../engine/internal.ts'
import { type Call, UsageError } from '../command.ts'
import { clean } from '../terminal-text.ts'
import { openBooks } from './books.ts'
import { isoTime, spellAmount } from './row.ts'
import { parsePastTime, parseTime } from './when.ts'

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
  const sheet = sheetOf(call)
  const covers = periodOf(call, world.now())
  const ledger = await openBooks(call)
  let doubts = 0
  try {
    sheet.begin()
    for await (const entry of ledger.entries()) {
      const { receipt, settledAt, createdAt } = entry
      if (!covers(settledAt ?? createdAt)) continue
      if (receipt !== undefined) sheet.add(recordOf(entry, receipt))
      else if (chargeStatus(entry) === 'unknown') doubts += 1
    }
    sheet.end()
  } finally {
    await ledger.close()
  }
  if (doubts > 0)
    call.terminal.err(`left out: ${doubts} ${doubts === 1 ? 'payment' : 'payments'} whose charge is unknown`)
  return 0
}

/** When a payment was settled decides, from the first moment on, up to the last and without it. */
function periodOf({ flags }: Call, now: number): (time: number) => boolean {
  const [since, until] = [flags.text('since'), flags.text('until')]
  const start = since === undefined ? 0 : parsePastTime('since', since, now)
  const end = until === undefined ? Infinity : parseTime('until', until, now)
  if (start >= end) throw new UsageError('--until has to be later than --since')
  return (time) => time >= start && time < end
}

/** Of a charged payment. The names are part of the interface: columns may be added at the end, and none is renamed. */
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
  // Of the catalog that named the price.
  'revision',
  // `due`, `sending` or `sent`; empty when the money stays.
  'refund',
  'refund_transaction',
] as const

type ChargeRecord = Readonly<Record<(typeof COLUMNS)[number], string>>

function recordOf(entry: PaymentRecord, { amount: atomic, transaction }: Receipt): ChargeRecord {
  const { id, createdAt, settledAt, state, protocol, network, asset, refund } = entry
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
    payer: clean(entry.payer),
    payee: clean(entry.payee),
    transaction: clean(transaction),
    operation: clean(entry.operation),
    revision: clean(entry.revision),
    refund: refund?.kind ?? '',
    refund_transaction: refund?.kind === 'sent' ? clean(refund.hash) : '',
  }
}

/** Is written line by line: a year of payments does not have to fit into memory. */
interface Sheet {
  begin(): void
  add(record: ChargeRecord): void
  end(): void
}

function sheetOf({ flags, terminal: { out } }: Call): Sheet {
  switch (flags.text('format') ?? 'csv') {
    case 'csv':
      return {
        begin: () => out(csvLine(COLUMNS)),
        add: (record) => out(csvLine(COLUMNS.map((column) => record[column]))),
        end: () => undefined,
      }
    case 'json': {
      let comma = ''
      return {
        begin: () => out('['),
        add: (record) => {
          out(comma + JSON.stringify(record))
          comma = ','
        },
        end: () => out(']'),
      }
    }
    default:
      throw new UsageError('--format takes csv or json')
  }
}
