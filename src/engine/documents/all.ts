import type { DocumentName } from './directory.ts'
import type { Document } from './document.ts'
import { index } from './index-json.ts'
import { llms } from './llms.ts'
import { openapi } from './openapi.ts'
import { x402Resources } from './x402-resources.ts'

/** Every document the engine can render. */
export const documents: readonly Document[] = [index, openapi, llms, x402Resources]

/** Served under `documents` like the others, but answered live. */
export const liveDocuments = [
  'health',
  'status',
  'status-json',
  'stats',
] as const satisfies readonly DocumentName[]

export type LiveDocument = (typeof liveDocuments)[number]

export const documentNames: readonly string[] = [...documents.map(({ name }) => name), ...liveDocuments]
