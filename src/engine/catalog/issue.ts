import type { Position } from './parse.ts'

export type Severity = 'error' | 'warning'

/** One thing wrong with a catalog, at the place where it is written. */
export interface Issue {
  readonly severity: Severity
  /** Stable snake_case name of the mistake. */
  readonly code: string
  /** What is wrong and what to write instead. */
  readonly message: string
  readonly position: Position
}

export function error(code: string, position: Position, message: string): Issue {
  return { severity: 'error', code, message, position }
}

export function warning(code: string, position: Position, message: string): Issue {
  return { severity: 'warning', code, message, position }
}

export function hasErrors(issues: readonly Issue[]): boolean {
  return issues.some((issue) => issue.severity === 'error')
}

/**
 * One line that editors and people can follow, then the place in the file:
 *
 *     catalog.yaml:23:12 price_too_precise 0.0000004 has 7 decimals; …
 *       22 |   /paid/weather:
 *     > 23 |     price: 0.0000004
 *          |            ^^^^^^^^^
 */
export function formatIssue(issue: Issue, file: string, text: string): string {
  const { line, column, width } = issue.position
  const mark = issue.severity === 'warning' ? 'warning ' : ''
  const head = `${file}:${line}:${column} ${mark}${issue.code} ${issue.message}`
  const lines = text.split(/\r?\n/)
  const source = lines[line - 1]
  if (source === undefined) return head
  const gutter = String(line).length
  const frame = (number: number, content: string, sign: string): string =>
    `${sign} ${String(number).padStart(gutter)} | ${content}`
  const before = lines[line - 2]
  // A tab in the line above the caret keeps the caret under its character whatever the tab width.
  const indent = source.slice(0, column - 1).replace(/[^\t]/g, ' ')
  const carets = '^'.repeat(Math.max(1, Math.min(width, source.length - column + 1)))
  return [
    head,
    ...(before === undefined ? [] : [frame(line - 1, before, ' ')]),
    frame(line, source, '>'),
    `  ${' '.repeat(gutter)} | ${indent}${carets}`,
  ].join('\n')
}

/** The catalog cannot be used: carries every issue found, never only the first. */
export class CatalogError extends Error {
  readonly issues: readonly Issue[]
  readonly file: string
  readonly text: string

  constructor(file: string, text: string, issues: readonly Issue[]) {
    super(issues.map((issue) => formatIssue(issue, file, text)).join('\n\n'))
    this.name = 'CatalogError'
    this.file = file
    this.text = text
    this.issues = issues
  }
}
