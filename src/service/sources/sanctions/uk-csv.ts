import { parse } from 'csv-parse/sync'
import { isoDate, publicationDay } from './dates.ts'
import {
  distinct,
  joinName,
  ListFault,
  orNull,
  type Kind,
  type ListContent,
  type ListedEntry,
  type ListedName,
} from './entry.ts'

type Row = Readonly<Record<string, string | undefined>>

/** Read by name: the list has more than fifty columns, and their order is not promised. */
const NEEDED = ['Unique ID', 'Name 6', 'Name type', 'Regime Name', 'Designation Type']
const WANTED = new Set(
  'Name 1,Name 2,Name 3,Name 4,Name 5,Alias strength,Name non-latin script,Title,Other Information,D.O.B,Nationality(/ies),IMO number'
    .split(',')
    .concat(NEEDED),
)

/**
 * Reads the UK Sanctions List, whose first line says of which day it is. An entry has a row for each of its names,
 * addresses and dates.
 */
export function readUkCsv(text: string): ListContent {
  const [, date, table] = /^\uFEFF?"?Report Date: *([^",\r\n]+)"?,*\r?\n([^]*)$/.exec(text) ?? []
  const publishedAt = publicationDay(date)
  if (publishedAt === null || table === undefined) throw new ListFault('does not say when it was published')
  const rows = rowsOf(table)
  const missing = NEEDED.filter((column) => rows[0]?.[column] === undefined)
  if (missing.length > 0) throw new ListFault(`has no column "${missing.join('", "')}"`)
  const grouped = new Map<string, Row[]>()
  for (const row of rows) {
    const uid = row['Unique ID'] ?? ''
    grouped.set(uid, [...(grouped.get(uid) ?? []), row])
  }
  return { publishedAt, entries: Array.from(grouped, ([uid, own]) => entryOf(uid, own)) }
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
    identifiers: kind === 'vessel' ? values('IMO number').map((number) => `IMO ${number}`) : [],
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
  return [...names.values()]
}

function nameKind(type = ''): ListedName['kind'] {
  if (/variation/i.test(type)) return 'variation'
  return /^primary/i.test(type) ? 'primary' : 'alias'
}

function rowsOf(table: string): Row[] {
  try {
    return parse<Row>(table, {
      columns: (header: string[]) => header.map((name) => WANTED.has(name.trim()) && name.trim()),
      skip_empty_lines: true,
      trim: true,
    })
  } catch {
    throw new ListFault('is cut off, or is not CSV with as many columns in every row')
  }
}
