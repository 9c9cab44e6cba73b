import { readFileSync } from 'node:fs'
import type { JSONSchemaType } from 'ajv/dist/2020.js'
import { parse } from 'yaml'
import { compileShape, whereItDiffers } from '../sources/answer-shape.ts'

/** The tables stay where they are edited: the path is the same from the sources and from what is built of them. */
const FOLDER = new URL('../../../src/service/data/', import.meta.url)

/**
 * A dated table of the service, checked against its schema and read into the form it is used in: once, by the first that
 * asks, for all tables together would double the time of the start.
 *
 * @example
 * const limits = openTable('platform-specs.yaml', SCHEMA, (table) => table)
 * limits().version
 */
export function openTable<Table, Form>(
  file: string,
  schema: JSONSchemaType<Table>,
  read: (table: Table) => Form,
): () => Form {
  let known: { readonly form: Form } | undefined
  return () => {
    known ??= { form: read(parseTable(file, schema)) }
    return known.form
  }
}

function parseTable<Table>(file: string, schema: JSONSchemaType<Table>): Table {
  const table: unknown = parse(readFileSync(new URL(file, FOLDER), 'utf8'))
  const isTable = compileShape(schema)
  if (!isTable(table)) throw new Error(`src/service/data/${file} differs at ${whereItDiffers(isTable)}`)
  return table
}
