import { distance } from 'fastest-levenshtein'

/** A place in the file: line and column count from 1, width in characters. */
export interface Position {
  readonly line: number
  readonly column: number
  readonly width: number
}

/** Position of a word in a text that begins at `position`; the whole text when it cannot be determined. */
export function wordIn(position: Position, text: string, word: string): Position {
  const index = text.indexOf(word)
  const quotes = position.width - text.length
  if (index < 0 || (quotes !== 0 && quotes !== 2)) return position
  return { ...position, column: position.column + index + quotes / 2, width: word.length }
}

type Severity = 'error' | 'warning'

/** One error or warning in a catalog, with its position. */
export interface Issue {
  readonly severity: Severity
  /** Stable snake_case name of the error. */
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
  const lines = linesOf(text)
  const source = lines[line - 1]
  if (source === undefined) return head
  const gutter = String(line).length
  const frame = (number: number, content: string, sign: string): string =>
    `${sign} ${String(number).padStart(gutter)} | ${content}`
  const before = lines[line - 2]
  const cut = Math.max(0, column - LEAD)
  const shown = crop(source, cut)
  const left = column - 1 - cut + (cut > 0 ? 1 : 0)
  // A tab in the line above is repeated before the caret, so that both align at any tab width.
  const indent = shown.slice(0, left).replace(/[^\t]/g, ' ')
  const carets = '^'.repeat(Math.max(1, Math.min(width, source.length - column + 1, shown.length - left)))
  return [
    head,
    ...(before === undefined ? [] : [frame(line - 1, crop(before, 0), ' ')]),
    frame(line, shown, '>'),
    `  ${' '.repeat(gutter)} | ${indent}${carets}`,
  ].join('\n')
}

/** The text that was split last: thousands of issues may concern one large file. */
let known: { readonly text: string; readonly lines: readonly string[] } = { text: '', lines: [''] }

function linesOf(text: string): readonly string[] {
  if (known.text !== text) known = { text, lines: text.split(/\r?\n/) }
  return known.lines
}

/** Most characters of a line that are shown, and most of those before the error. */
const SHOWN = 160
const LEAD = 120

/** The part of a line that fits a terminal, without control characters. */
function crop(line: string, from: number): string {
  const start = from > 0 ? '…' : ''
  const end = line.length > from + SHOWN ? '…' : ''
  // eslint-disable-next-line no-control-regex
  return start + line.slice(from, from + SHOWN).replace(/[\0-\x08\x0b-\x1f\x7f-\x9f]/g, '\ufffd') + end
}

/**
 * The catalog cannot be used: carries every issue found, never only the first.
 *
 * @example
 * import { CatalogError, createRatecard, type RatecardOptions } from 'ratecard'
 *
 * export async function start(options: RatecardOptions) {
 *   try {
 *     return await createRatecard(options)
 *   } catch (fault) {
 *     if (!(fault instanceof CatalogError)) throw fault
 *     for (const { code, position } of fault.issues) console.error(`${position.line}: ${code}`)
 *   }
 * }
 */
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

/** The candidate that the reader most likely meant; undefined when none is similar. */
export function suggest(word: string, candidates: Iterable<string>): string | undefined {
  const limit = Math.max(1, Math.floor(word.length / 3))
  let best: string | undefined
  let nearest = limit + 1
  for (const candidate of candidates) {
    const steps = slips(word.toLowerCase(), candidate.toLowerCase())
    if (steps < nearest) {
      nearest = steps
      best = candidate
    }
  }
  return best
}

/** Whether a name is taken for a misspelt `suggestion`. One or two letters are near too many others. */
export function isNearly(name: string, suggestion: string): boolean {
  return name.length >= 3 || name.toLowerCase() === suggestion.toLowerCase()
}

/** Swapped letters (`tpye`) and a truncated word (`int`) count as one mistake, whatever their length. */
function slips(word: string, candidate: string): number {
  const cut = word.length >= 3 && candidate.startsWith(word)
  return cut || letters(word) === letters(candidate)
    ? Math.min(1, distance(word, candidate))
    : distance(word, candidate)
}

function letters(word: string): string {
  return Array.from(word).sort().join('')
}

/** ` — did you mean "price"?`, or an empty text. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const found = suggest(word, candidates)
  return found === undefined ? '' : ` — did you mean "${found}"?`
}
