import { columns } from './terminal-text.ts'
import type { Call, ListReport, Terminal } from './command.ts'

/** Fetches the lists that answers are looked up in, so that a server starts with them. */
export async function updateData({ services, terminal }: Call): Promise<number> {
  const lists = (await services()).lists()
  try {
    const outcomes = await lists.update((id, bytes) => terminal.progress(`${id}: ${megabytes(bytes)}`))
    terminal.progress('')
    let failed = 0
    for (const { id, kind, reason } of outcomes) {
      if (kind === 'failed') failed++
      terminal.err(`${id}: ${kind}${reason === undefined ? '' : `, the list ${reason}`}`)
    }
    if (failed > 0) terminal.err(KEPT)
    print(terminal, await lists.status())
    return failed > 0 ? 1 : 0
  } finally {
    await lists.close()
  }
}

const KEPT =
  'What was there before is kept. If a list has truly become so small or so old, remove its file, update again and restart the servers.'

export async function dataStatus({ services, terminal, flags }: Call): Promise<number> {
  const lists = (await services()).lists()
  try {
    const reports = await lists.status()
    if (flags.given('json')) terminal.out(JSON.stringify(reports, null, 2))
    else print(terminal, reports)
    const isSound = reports.every(({ problem }) => problem === null)
    return isSound && reports.some(({ configured }) => configured) ? 0 : 1
  } finally {
    await lists.close()
  }
}

const HEAD = ['LIST', 'AS OF', 'ENTRIES', 'AGE', 'STATE']

function print({ out, reader }: Terminal, reports: readonly ListReport[]): void {
  const rows = reports.map(({ id, configured, variable, published_at, entries, age_seconds, problem }) => [
    id,
    published_at ?? '-',
    entries === null ? '-' : String(entries),
    age_seconds === null ? '-' : `${(age_seconds / 3600).toFixed(1)} h`,
    configured
      ? (problem ?? 'in use')
      : `not configured: set ${variable}, or put its file into SANCTIONS_DIR`,
  ])
  const lines = [HEAD, ...rows]
  out(reader === 'person' ? columns(lines) : lines.map((line) => line.join('\t')).join('\n'))
}

function megabytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`
}
