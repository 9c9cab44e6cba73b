import { readFileSync } from 'node:fs'
import type { JSONSchemaType } from 'ajv/dist/2020.js'
import { parse } from 'yaml'
import { compileShape, whereItDiffers } from '../sources/shape.ts'

/** The tables stay where they are edited: the path is the same from the sources and from what is built of them. */
const FOLDER = new URL('../../../src/service/data/', import.meta.url)

/**
 * A dated table of the service, checked against its schema.
 *
 * @example
 * readTable('platform-specs.yaml', SCHEMA)
 */
export function readTable<Table>(file: string, schema: JSONSchemaType<Table>): Table {
  const table: unknown = parse(readFileSync(new URL(file, FOLDER), 'utf8'))
  const isTable = compileShape(schema)
  if (!isTable(table)) throw new Error(`src/service/data/${file} differs at ${whereItDiffers(isTable)}`)
  return table
}
