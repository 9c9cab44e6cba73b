import { parse } from 'yaml'
import { isJsonObject, parseJson, type Json, type JsonObject } from '../../engine/base/json.ts'
import { brokenReferences, type BrokenReferences } from './reference.ts'
import { joinFiles, type ReadFile } from './reference-files.ts'
import { upgradeSwagger } from './swagger.ts'

type ReadOpenapi =
  | {
      readonly kind: 'document'
      /** In the form of version 3, with the files that it refers to. */
      readonly openapi: JsonObject
      readonly broken: BrokenReferences
    }
  /** A phrase that follows the name of the file. */
  | { readonly kind: 'fault'; readonly sentence: string }

/** An OpenAPI document as it stands, and how to read the files beside it. */
export interface DocumentSource {
  readonly text: string
  readonly home: URL
  readonly read: (address: URL) => Promise<ReadFile>
}

/** Reads OpenAPI 3.0 to 3.2 or Swagger 2.0, written as JSON or YAML. */
export async function readOpenapi({ text, home, read }: DocumentSource): Promise<ReadOpenapi> {
  const root = readText(text)
  if (!isJsonObject(root)) return { kind: 'fault', sentence: 'is neither a JSON nor a YAML object' }
  const version = root['openapi']
  const is3 = typeof version === 'string' && /^3\.[0-2]\b/.test(version)
  const found = root['swagger'] ?? version
  if (!is3 && found !== '2.0' && found !== 2) {
    const named = typeof found === 'string' ? `is version ${found}` : 'names no version under "openapi"'
    return { kind: 'fault', sentence: `${named}: OpenAPI 3.0 to 3.2 and Swagger 2.0 can be imported` }
  }
  const joined = await joinFiles(root, home, read)
  const broken = brokenReferences(joined.openapi, joined.unread)
  return { kind: 'document', openapi: is3 ? joined.openapi : upgradeSwagger(joined.openapi), broken }
}

/** Undefined: neither JSON nor YAML. */
export function readText(text: string): Json | undefined {
  if (/^\s*[{[]/.test(text)) {
    const value = parseJson(text)
    if (value !== undefined) return value
  }
  try {
    // Aliases of aliases must not fill the memory. An unknown tag is no reason for a warning of Node.js.
    const value: unknown = parse(text, { maxAliasCount: 1_000, logLevel: 'error' })
    return parseJson(JSON.stringify(value))
  } catch {
    return undefined
  }
}
