import { isAddress, sameAddress, type Entry, type State } from '../../engine/index.ts'
import { world } from '../compose.ts'
import { columns } from '../terminal-text.ts'
import { UsageError, type Call, type Terminal } from '../command.ts'
import { openBooks } from './books.ts'
import { brief, rowOf, type PaymentRow } from './row.ts'
import { STATES, Totals } from './totals.ts'
import { parsePastTime } from './when.ts'

/** As many as a person looks at. */
const SHOWN = 50

export async function listPayments(call: Call): Promise<number> {
  const { flags, terminal } = call
  const fits = filterOf(call, world.now())
  const limit = limitOf(call)
  const ledger = await openBooks(call)
  try {
    const totals = new Totals()
    const newest = new Newest(limit)
    for await (const entry of ledger.entries()) {
      if (!fits(entry)) continue
      totals.add(entry)
      newest.add(rowOf(entry))
    }
    const rows = newest.rows()
    if (flags.given('totals')) printTotals(call, totals)
    else if (flags.given('json')) terminal.out(JSON.stringify(rows, null, 2))
    else print(terminal, rows, totals)
    return 0
  } finally {
    await ledger.close()
  }
}

function filterOf({ flags }: Call, now: number): (entry: Entry) => boolean {
  const state = stateOf(flags.text('state'))
  const route = flags.text('route')
  if (route !== undefined && !/^[^/\s]\S*$/.test(route))
    throw new UsageError(
      `--route takes an operation as the list names it, such as util/workday; not "${route}"`,
    )
  const payer = flags.text('payer')
  if (payer !== undefined && !isAddress(payer))
    throw new UsageError(`--payer takes an address, 0x and 40 hexadecimal digits; not "${payer}"`)
  const since = flags.text('since')
  const start = since === undefined ? 0 : parsePastTime('since', since, now)
  return (entry) =>
    entry.createdAt >= start &&
    (state === undefined || entry.state === state) &&
    (route === undefined || entry.operation === route) &&
    (payer === undefined || sameAddress(entry.payer, payer))
}

function stateOf(text: string | undefined): State | undefined {
  if (text === undefined) return undefined
  const state = STATES.find((each) => each === text)
  if (state === undefined) throw new UsageError(`--state takes one of ${STATES.join(', ')}; not "${text}"`)
  return state
}

/** A program that asks for no number gets every payment. */
function limitOf({ flags }: Call): number {
  const text = flags.text('limit')
  if (text === undefined) return flags.given('json') ? Infinity : SHOWN
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`--limit takes a number from 1; not "${text}"`)
  return Number(text)
}

/** Keeps the last that came, of many. */
class Newest {
  readonly #limit: number
  #rows: PaymentRow[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  add(row: PaymentRow): void {
    this.#rows.push(row)
    if (this.#rows.length > 2 * this.#limit) this.#rows = this.#rows.slice(-this.#limit)
  }

  rows(): PaymentRow[] {
    return (this.#limit === Infinity ? this.#rows : this.#rows.slice(-this.#limit)).toReversed()
  }
}

const HEAD = ['TIME', 'ID', 'STATE', 'CHARGED', 'AMOUNT', 'NETWORK', 'OPERATION', 'PAYER', 'TRANSACTION']

function print({ out, err, reader }: Terminal, rows: readonly PaymentRow[], totals: Totals): void {
  if (rows.length === 0) {
    err('no payments')
    return
  }
  const lines = [HEAD, ...rows.map((row) => cellsOf(row, reader))]
  out(reader === 'person' ? columns(lines) : lines.map((line) => line.join('\t')).join('\n'))
  if (rows.length < totals.count) out(`… the newest ${rows.length} of ${totals.count}; --limit shows more`)
  out(`\n${totals.text()}`)
}

function printTotals({ terminal, flags }: Call, totals: Totals): void {
  if (flags.given('json')) terminal.out(JSON.stringify(totals.report(), null, 2))
  else if (totals.count === 0) terminal.err('no payments')
  else terminal.out(totals.text())
}

function cellsOf(row: PaymentRow, reader: Terminal['reader']): string[] {
  const { payment, time, state, charged, amount, token, network, operation, payer, transaction } = row
  const money = `${amount} ${token}`
  const [at, hex] =
    reader === 'person' ? [`${time.slice(0, 19)}Z`, brief] : [time, (text: string): string => text]
  return [at, payment, state, charged, money, network, operation, hex(payer), hex(transaction ?? '-')]
}
