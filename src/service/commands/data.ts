import type { ServiceCall } from 'ratecard/service'
import type { Settings } from '../settings.ts'
import { runtimeOf } from '../shop.ts'
import { LISTS } from '../sources/sanctions/lists.ts'
import type { ListStatus } from '../sources/sanctions/list-status.ts'
import { Sanctions } from '../sources/sanctions.ts'
import { MetricsBySource } from '../sources/source-metrics.ts'

type Call = ServiceCall<Settings>

function openLists({ context }: Call): Sanctions {
  const runtime = runtimeOf(context)
  return new Sanctions(
    { lists: LISTS, ...context.settings.sanctions },
    runtime,
    new MetricsBySource(runtime.now),
  )
}

/** Fetches the lists that answers are looked up in, so that a server starts with them. */
export async function updateData(call: Call): Promise<number> {
  const { terminal } = call
  const lists = openLists(call)
  try {
    const outcomes = await lists.update((id, bytes) => terminal.progress(`${id}: ${megabytes(bytes)}`))
    terminal.progress('')
    let failed = 0
    for (const { id, kind, reason } of outcomes) {
      if (kind === 'failed') failed++
      terminal.err(`${id}: ${kind}${reason === undefined ? '' : `, the list ${reason}`}`)
    }
    if (failed > 0) terminal.err(KEPT)
    print(call, await lists.status())
    return failed > 0 ? 1 : 0
  } finally {
    await lists.close()
  }
}

const KEPT =
  'What was there before is kept. If a list has truly become so small or so old, remove its file, update again and restart the servers.'

export async function dataStatus(call: Call): Promise<number> {
  const { terminal, flags } = call
  const lists = openLists(call)
  try {
    const reports = await lists.status()
    if (flags.given('json')) terminal.out(JSON.stringify(reports, null, 2))
    else print(call, reports)
    const isSound = reports.every(({ problem }) => problem === null)
    return isSound && reports.some(({ configured }) => configured) ? 0 : 1
  } finally {
    await lists.close()
  }
}

const HEAD = ['LIST', 'AS OF', 'ENTRIES', 'AGE', 'STATE']

function print({ terminal, table }: Call, reports: readonly ListStatus[]): void {
  const rows = reports.map(({ id, configured, variable, published_at, entries, age_seconds, problem }) => [
    id,
    published_at ?? '-',
    entries === null ? '-' : String(entries),
    age_seconds === null ? '-' : `${(age_seconds / 3600).toFixed(1)} h`,
    configured
      ? (problem ?? 'in use')
      : `not configured: set ${variable}, or put its file into SANCTIONS_DIR`,
  ])
  terminal.out(table([HEAD, ...rows]))
}

function megabytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`
}
