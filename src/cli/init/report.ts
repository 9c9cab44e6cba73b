import { CHANGES, type Converted, REASONS } from './operation.ts'

/** What became of each operation, counted; an operation that differs in several ways is counted under each. */
export function importTable(converted: readonly Converted[]): string[] {
  const routes = converted.filter((each) => each.kind === 'route')
  const left = converted.filter((each) => each.kind === 'left')
  const same = routes.filter(({ notes }) => notes.length === 0).length
  const rows: [string, number][] = [
    ['imported', routes.length],
    ['  unchanged', same],
    ...countsOf(
      CHANGES,
      routes.flatMap(({ notes }) => [...new Set(notes.map(({ change }) => change))]),
    ),
    ['left out', left.length],
    ...countsOf(
      REASONS,
      left.map(({ why }) => why),
    ),
  ]
  const shown = rows.filter(([text, count]) => count > 0 || !text.startsWith(' '))
  const width = Math.max(...shown.map(([text]) => text.length))
  const digits = Math.max(...shown.map(([, count]) => String(count).length))
  return shown.map(([text, count]) => `${text.padEnd(width)}  ${String(count).padStart(digits)}`)
}

function countsOf<Key extends string>(
  labels: Readonly<Record<Key, string>>,
  keys: readonly Key[],
): [string, number][] {
  return Object.entries<string>(labels).map(([key, label]) => [
    `  ${label}`,
    keys.filter((each) => each === key).length,
  ])
}
