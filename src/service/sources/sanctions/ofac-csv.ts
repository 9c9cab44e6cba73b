import { parse } from 'csv-parse/sync'
import { isoDate } from './dates.ts'
import {
  distinct,
  ListFault,
  ODD_SHARE,
  orNull,
  type Kind,
  type ListContent,
  type ListedEntry,
  type ListedName,
} from './entry.ts'
import { ofacPage } from './ofac-page.ts'

/** Columns of SDN.CSV and ALT.CSV, which have no header. */
const COLUMNS = 12
const ALIAS_COLUMNS = 5

/**
 * Reads OFAC's SDN.CSV with its aliases in ALT.CSV. `-0-` stands for nothing, and the byte 0x1A for the end: without it
 * a file was cut off. The files do not say when they were published.
 */
export function readOfacCsv(list: string, aliases: string): Pick<ListContent, 'entries' | 'oddities'> {
  const aliasesOf = new Map<string, ListedName[]>()
  const [main, beside] = [rowsOf(list, COLUMNS), rowsOf(aliases, ALIAS_COLUMNS)]
  for (const [uid = '', , type, name] of beside.rows) {
    const text = orNull(name)
    if (text === null) continue
    const alias: ListedName = {
      text: naturalOrder(text),
      kind: type === 'fka' ? 'former' : 'alias',
      weak: false,
    }
    aliasesOf.set(uid, [...(aliasesOf.get(uid) ?? []), alias])
  }
  const oddities = [main, beside].flatMap(({ odd }) =>
    odd === 0 ? [] : [{ where: 'row: number of columns', count: odd }],
  )
  return { entries: main.rows.map((row) => entryOf(row, aliasesOf)), oddities }
}

function entryOf(row: readonly string[], aliasesOf: ReadonlyMap<string, readonly ListedName[]>): ListedEntry {
  const [uid = '', name = '', type, programmes, title, callSign, , , , , , remarks = ''] = row
  const kind = kindOf(type)
  return {
    uid,
    kind,
    names: [
      { text: kind === 'individual' ? naturalOrder(name) : name, kind: 'primary', weak: false },
      ...(aliasesOf.get(uid) ?? []),
      ...weakAliases(remarks),
    ],
    programmes: distinct((programmes ?? '').split(/\]\s*\[|[[\]]/)),
    datesOfBirth: distinct(remarked(remarks, 'DOB').map(isoDate)),
    nationalities: distinct([...remarked(remarks, 'nationality'), ...remarked(remarks, 'citizen')]),
    identifiers: distinct([
      callSign && `Call sign ${callSign}`,
      ...(kind === 'vessel' ? remarked(remarks, 'Vessel Registration Identification') : []),
    ]),
    title: orNull(title),
    remarks: orNull(remarks),
    url: ofacPage(uid),
  }
}

function kindOf(type = ''): Kind {
  return type === 'individual' || type === 'vessel' || type === 'aircraft' ? type : 'entity'
}

/** `MADURO MOROS, Nicolas` as `Nicolas MADURO MOROS`. */
function naturalOrder(name: string): string {
  return name.replace(/^([^,]+), ([^,]+)$/, '$2 $1')
}

/** What the remarks say after a word, once or often: `DOB 23 Nov 1962; alt. DOB 1963;`. */
function remarked(remarks: string, word: string): string[] {
  return remarks
    .split(/;\s*/)
    .map((part) => part.replace(/^alt\. /, '').replace(/\.$/, ''))
    .flatMap((part) => (part.startsWith(`${word} `) ? part.slice(word.length + 1) : []))
}

/** Names the list doubts are in the remarks only: `a.k.a. 'BNC'`. */
function weakAliases(remarks: string): ListedName[] {
  return Array.from(remarks.matchAll(/(?:a|f|n)\.k\.a\. '([^']+)'/g), ([, text = '']) => ({
    text,
    kind: 'alias' as const,
    weak: true,
  }))
}

const END = '\u001a'

function rowsOf(file: string, columns: number): { readonly rows: string[][]; readonly odd: number } {
  const text = file.trimEnd()
  if (!text.endsWith(END)) throw new ListFault('is cut off: its end mark is missing')
  const rows = read(text.slice(0, -1))
  const whole = rows.filter((row) => row.length === columns)
  const odd = rows.length - whole.length
  if (odd > ODD_SHARE * rows.length) throw new ListFault(`has rows of other than ${columns} columns`)
  return { rows: whole, odd }
}

function read(text: string): string[][] {
  try {
    return parse(text, {
      bom: true,
      relax_quotes: true,
      relax_column_count: true,
      skip_empty_lines: true,
      cast: (value) => (value.trim() === '-0-' ? '' : value.trim()),
    })
  } catch {
    throw new ListFault('is not CSV')
  }
}
