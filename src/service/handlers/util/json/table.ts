import { CsvError, parse } from 'csv-parse/sync'
import { Failure, InvalidParameter, isJsonObject } from 'ratecard/handler'
import type { Json, JsonObject } from 'ratecard/handler'

/** A sparse list of objects can name a column per row: the square of what came in. */
const MAX_CELLS = 200_000

/**
 * CSV (RFC 4180: commas, CRLF, quotes where needed). Objects give a header, its columns in the order they first appear;
 * arrays give rows without one. null and absent members become an empty cell, containers their JSON.
 */
export function toCsv(document: Json): string {
  if (!Array.isArray(document)) throw notTabular()
  const rows: readonly Json[] = document
  if (rows.every((row) => Array.isArray(row))) return rows.map((row) => line(row)).join('')
  if (!rows.every(isJsonObject)) throw notTabular()
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  if (columns.length * rows.length > MAX_CELLS) {
    throw new Failure('answer_too_large', `The table would have more than ${MAX_CELLS} cells`)
  }
  const cells = rows.map((row) =>
    columns.map((column) => (Object.hasOwn(row, column) ? (row[column] ?? null) : null)),
  )
  return [columns, ...cells].map(line).join('')
}

function line(cells: readonly Json[]): string {
  const text = cells.map(cell).join(',')
  // a lone empty cell must not look like a blank line
  return `${cells.length === 1 && text === '' ? '""' : text}\r\n`
}

function cell(value: Json): string {
  const text = value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function notTabular(): InvalidParameter {
  return new InvalidParameter('data', "data must be an array of objects, or of arrays, for op 'to_csv'")
}

/** Objects from CSV whose first record is the header. Cells stay text: `007` and `1e3` are not numbers for everyone. */
export function fromCsv(text: string): readonly JsonObject[] {
  if (text === '') throw new InvalidParameter('data', 'data is required')
  const [header = [], ...records] = recordsOf(text)
  const repeated = header.find((name, index) => header.indexOf(name) !== index)
  if (repeated !== undefined) {
    throw new InvalidParameter('data', `data is not valid CSV: the header names '${repeated}' twice`)
  }
  return records.map((record, index) => {
    if (record.length !== header.length) {
      throw new InvalidParameter(
        'data',
        `data is not valid CSV: record ${index + 2} has ${count(record.length)}, the header has ${header.length}`,
        { record: index + 2 },
      )
    }
    return Object.fromEntries(header.map((name, column) => [name, record[column] ?? '']))
  })
}

function recordsOf(text: string): readonly (readonly string[])[] {
  try {
    return parse(text, {
      delimiter: delimiterOf(text),
      bom: true,
      relax_column_count: true,
      skip_empty_lines: true,
    })
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new InvalidParameter('data', 'data is not valid CSV: a quote is misplaced or never closed')
  }
}

/** What separates the fields of the header: the comma, or what spreadsheets write where the comma is the decimal sign. */
function delimiterOf(text: string): string {
  const header = /^\uFEFF?(?:"(?:[^"]|"")*"|[^"\r\n])*/.exec(text)?.[0].replace(/"(?:[^"]|"")*"/g, '') ?? ''
  const counted = [',', ';', '\t'].map((mark) => ({ mark, times: header.split(mark).length }))
  return counted.reduce((best, each) => (each.times > best.times ? each : best)).mark
}

function count(fields: number): string {
  return fields === 1 ? '1 field' : `${fields} fields`
}
