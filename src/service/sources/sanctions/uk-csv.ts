import { parse } from 'csv-parse/sync'
import { isoDate, publicationDay } from './dates.ts'
import {
  distinct,
  joinName,
  ListFault,
  ODD_SHARE,
  orNull,
  type Kind,
  type ListContent,
  type ListedEntry,
  type ListedName,
} from './entry.ts'

type Row = Readonly<Record<string, string | undefined>>

/** Read by name: the list has more than fifty columns, and their order is not promised. */
const NEEDED = ['Unique ID', 'Name 6', 'Name type', 'Regime Name', 'Designation Type']
/** What a column is called in other editions of the list. */
const OTHERWISE: Readonly<Record<string, string>> = { 'Individual, Entity, Ship': 'Designation Type' }
const WANTED = new Set(
  'Name 1,Name 2,Name 3,Name 4,Name 5,Alias strength,Name non-latin script,Title,Other Information,D.O.B,Nationality(/ies),IMO number'
    .split(',')
    .concat(NEEDED),
)

/**
 * Reads the UK Sanctions List, whose first line has its date. An entry has a row for each of its names,
 * addresses and dates.
 */
export function readUkCsv(text: string): ListContent {
  const [, date, table] = /^\uFEFF?"?Report Date: *([^",\r\n]+)"?,*\r?\n([^]*)$/.exec(text) ?? []
  const publishedAt = publicationDay(date)
  if (publishedAt === null || table === undefined) throw new ListFault('does not say when it was published')
  const { rows, odd } = rowsOf(table)
  const missing = NEEDED.filter((column) => rows[0]?.[column] === undefined)
  if (missing.length > 0) throw new ListFault(`has no column "${missing.join('", "')}"`)
  const grouped = new Map<string, Row[]>()
  for (const row of rows) {
    const uid = row['Unique ID'] ?? ''
    grouped.set(uid, [...(grouped.get(uid) ?? []), row])
  }
  const entries = Array.from(grouped, ([uid, own]) => entryOf(uid, own))
  return {
    publishedAt,
    entries,
    oddities: odd === 0 ? [] : [{ where: 'row: number of columns', count: odd }],
  }
}

function entryOf(uid: string, rows: readonly Row[]): ListedEntry {
  const kind = kindOf(rows[0]?.['Designation Type'])
  const values = (column: string): string[] => distinct(rows.map((row) => row[column]))
  return {
    uid,
    kind,
    names: namesOf(rows),
    programmes: values('Regime Name'),
    datesOfBirth: distinct(values('D.O.B').map(isoDate)),
    nationalities: distinct(
      values('Nationality(/ies)').flatMap((text) => text.split(/\s*(?:\||;|\(\d\))\s*/)),
    ),
    identifiers:
      kind === 'vessel' ? values('IMO number').map((number) => number.replace(/^(?:IMO\s*)?/i, 'IMO ')) : [],
    title: orNull(values('Title').join('; ')),
    remarks: orNull(values('Other Information').join(' ')),
    url: null,
  }
}

function kindOf(type = ''): Kind {
  if (type === 'Individual') return 'individual'
  return type === 'Ship' ? 'vessel' : 'entity'
}

const GIVEN = ['Name 1', 'Name 2', 'Name 3', 'Name 4', 'Name 5', 'Name 6']

function namesOf(rows: readonly Row[]): ListedName[] {
  const names = new Map<string, ListedName>()
  for (const row of rows) {
    const text = joinName(GIVEN.map((part) => row[part]))
    const weak = /^low/i.test(row['Alias strength'] ?? '')
    if (text !== '' && !names.has(text)) names.set(text, { text, kind: nameKind(row['Name type']), weak })
    const original = orNull(row['Name non-latin script'])
    if (original !== null) names.set(original, { text: original, kind: 'original_script', weak: false })
  }
  // The rows of an alias may come before those of the name.
  return [...names.values()].toSorted(
    (one, other) => Number(other.kind === 'primary') - Number(one.kind === 'primary'),
  )
}

function nameKind(type = ''): ListedName['kind'] {
  if (/variation/i.test(type)) return 'variation'
  return /^primary/i.test(type) ? 'primary' : 'alias'
}

/** A last row with other columns shows that the file was cut off; a few others are left out. */
function rowsOf(table: string): { readonly rows: Row[]; readonly odd: number } {
  const [header = [], ...lines] = linesOf(table)
  const whole = lines.filter((line) => line.length === header.length)
  const odd = lines.length - whole.length
  if (odd > ODD_SHARE * lines.length || lines.at(-1)?.length !== header.length)
    throw new ListFault('is cut off, or is not CSV with as many columns in every row')
  const columns = header.map((name) => OTHERWISE[name] ?? name)
  const wanted = columns.flatMap((name, place) => (WANTED.has(name) ? [{ name, place }] : []))
  const rows = whole.map((line): Row =>
    Object.fromEntries(wanted.map(({ name, place }) => [name, line[place]])),
  )
  return { rows, odd }
}

function linesOf(table: string): string[][] {
  try {
    // Names hold quotation marks, and not every edition doubles them.
    return parse(table, { relax_column_count: true, relax_quotes: true, skip_empty_lines: true, trim: true })
  } catch {
    throw new ListFault('is cut off, or is not CSV')
  }
}
