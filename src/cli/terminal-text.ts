import { stripVTControlCharacters } from 'node:util'
import type { Call, Terminal } from './command.ts'

/** What settings that are missing come to: `A and B are set`. */
export function areSet(names: readonly string[]): string {
  return `${names.join(' and ')} ${names.length > 1 ? 'are' : 'is'} set`
}

export type Color = 'red' | 'yellow' | 'green' | 'grey'

const CODES: Readonly<Record<Color, number>> = { red: 31, yellow: 33, green: 32, grey: 90 }

export type Paint = (color: Color | undefined, text: string) => string

/** Colours a text, or leaves it as it is. */
export function painter(isColored: boolean): Paint {
  return (color, text) =>
    isColored && color !== undefined ? `\u001b[${CODES[color]}m${text}\u001b[0m` : text
}

/** For standard output: colours where a person reads, unless NO_COLOR or FORCE_COLOR says otherwise. */
export function painterFor({ env, terminal }: Pick<Call, 'env' | 'terminal'>): Paint {
  return painter(env.color ?? terminal.reader === 'person')
}

/** What a terminal shows beside each other. */
const WIDTH = 80
/** Fewer characters of a last column are not readable. */
const NARROWEST = 16

/** A table: for a program every value complete, for a person within 80 columns. */
export function columnsFor({ reader }: Pick<Terminal, 'reader'>, rows: readonly Row[]): string {
  return columns(rows, reader === 'person' ? WIDTH : Infinity)
}

/** Lines of a text: for a person broken at words to fit 80 columns, what follows as far in as the line began. */
export function linesFor({ reader }: Pick<Terminal, 'reader'>, text: string): string {
  if (reader === 'program') return text
  return text
    .split('\n')
    .flatMap((line) => {
      const [indent = ''] = /^ */.exec(line) ?? []
      return broken(line.slice(indent.length), WIDTH - indent.length).map((part) => indent + part)
    })
    .join('\n')
}

/** Names and their values: for a person, what does not fit beside its name is below it, so that a hash stays whole. */
export function factsFor(
  terminal: Pick<Terminal, 'reader'>,
  facts: readonly (readonly [name: string, value: string])[],
): string {
  const width = Math.max(...facts.map(([name]) => name.length))
  return facts
    .map(([name, value]) => {
      const beside = `${name.padEnd(width)}  ${value}`.trimEnd()
      const fits = terminal.reader === 'program' || beside.length <= WIDTH
      return fits ? beside : linesFor(terminal, `${name}\n  ${value}`)
    })
    .join('\n')
}

type Row = readonly string[]

interface Table {
  readonly heads: Row
  /** The heads of the columns that fit beside each other on a terminal. */
  readonly short: Row
  readonly rows: readonly Row[]
}

/** A table with heads: for a program all of it, for a person the most important columns. */
export function tableFor(terminal: Pick<Terminal, 'reader'>, { heads, short, rows }: Table): string {
  const shown = terminal.reader === 'person' ? short : heads
  const places = shown.map((head) => heads.indexOf(head))
  return columnsFor(
    terminal,
    [heads, ...rows].map((row) => places.map((place) => row[place] ?? '')),
  )
}

/** A table in plain text: every column as wide as its widest cell; the last one is broken at words to fit the width. */
export function columns(rows: readonly Row[], width = Infinity): string {
  const widths = new Map<number, number>()
  for (const row of rows)
    for (const [column, cell] of row.entries())
      widths.set(column, Math.max(widths.get(column) ?? 0, shownLength(cell)))
  const last = widths.size - 1
  const before = [...widths].reduce((sum, [column, size]) => (column === last ? sum : sum + size + 2), 0)
  const room = Math.max(NARROWEST, width - before)
  return rows.flatMap((row) => lines(row, widths, last, room)).join('\n')
}

function lines(row: Row, widths: ReadonlyMap<number, number>, last: number, room: number): string[] {
  const [first = '', ...more] = broken(row[last] ?? '', room)
  const fixed = row.slice(0, last).map((cell, column) => {
    const missing = (widths.get(column) ?? 0) - shownLength(cell)
    return cell + ' '.repeat(missing)
  })
  const indent = ' '.repeat(fixed.reduce((sum, cell) => sum + shownLength(cell) + 2, 0))
  return [[...fixed, first].join('  ').trimEnd(), ...more.map((line) => indent + line)]
}

/** Without the codes of colours. */
function shownLength(cell: string): number {
  return stripVTControlCharacters(cell).length
}

/** The lines of a text that is broken at words and in paths; what is still longer than a line, anywhere. */
function broken(text: string, room: number): string[] {
  if (shownLength(text) <= room) return [text]
  const pieces = text
    .split(/(?<=[ /])/)
    .flatMap((piece) => piece.match(new RegExp(`.{1,${room}}`, 'gs')) ?? [])
  const found: string[] = []
  for (const piece of pieces) {
    const line = found.at(-1)
    if (line !== undefined && (line + piece).trimEnd().length <= room) found[found.length - 1] = line + piece
    else found.push(piece)
  }
  return found.map((line) => line.trimEnd())
}
