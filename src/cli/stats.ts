import { systemRuntime } from '../engine/base/runtime.ts'
import { UsageStore } from '../engine/usage/usage-store.ts'
import { figureRows, type FigureRow } from '../engine/usage/figures.ts'
import { passedStatus } from '../engine/usage/counts.ts'
import { columnsFor, tableFor } from './terminal-text.ts'
import type { Call, Terminal } from './command.ts'
import { withLedger } from './payments/open-ledger.ts'

export async function stats(call: Call): Promise<number> {
  const { flags, terminal } = call
  return withLedger(call, async (ledger) => {
    const usageStore = new UsageStore({ ledger, owner: READER, now: systemRuntime.now })
    const rows = figureRows(await usageStore.read())
    if (flags.given('json')) terminal.out(JSON.stringify(rows, null, 2))
    else if (rows.length === 0)
      terminal.err('no requests counted yet; a server stores its counts every minute')
    else terminal.out(tablesOf(terminal, rows).join('\n\n'))
    return 0
  })
}

/** What the catalog serves, and what has passed to the site behind it. */
function tablesOf(terminal: Terminal, rows: readonly FigureRow[]): string[] {
  const passed = rows.flatMap((row) => passedCells(row))
  const served = rows.filter(({ name }) => passedStatus(name) === undefined).map(cellsOf)
  return [
    ...(served.length === 0 ? [] : [tableFor(terminal, { heads: HEAD, short: SHORT_HEAD, rows: served })]),
    ...(passed.length === 0 ? [] : [columnsFor(terminal, [PASSED_HEAD, ...passed])]),
  ]
}

const PASSED_HEAD = ['PASSTHROUGH', 'REQUESTS', 'P50 MS', 'P95 MS', 'LAST ANSWER']

function passedCells({ name, answers, p50_ms, p95_ms, last_success }: FigureRow): string[][] {
  const status = passedStatus(name)
  return status === undefined
    ? []
    : [[status, String(answers), String(p50_ms ?? '-'), String(p95_ms ?? '-'), last_success ?? '-']]
}

/** It writes nothing. */
const READER = 'reader'

/** What fits beside each other on a terminal. */
const SHORT_HEAD = ['NAME', 'UNPAID', 'SETTLED', 'SENT', 'FAILED', 'P95 MS']
const HEAD = [
  'NAME',
  'UNPAID',
  'PRESENTED',
  'VERIFIED',
  'SETTLED',
  'SENT',
  'UNCHARGED',
  'WITH KEY',
  'ANSWERS',
  'FAILED',
  'P50 MS',
  'P95 MS',
  'LAST ANSWER',
]

function cellsOf(row: FigureRow): string[] {
  const { name, unpaid, presented, verified, settled, sent, uncharged, keyed, answers, failed } = row
  const numbers = [unpaid, presented, verified, settled, sent, uncharged, keyed, answers, failed]
  return [name, ...[...numbers, row.p50_ms ?? '-', row.p95_ms ?? '-'].map(String), row.last_success ?? '-']
}
