import type { DocumentName } from './directory.ts'
import { docsErrors } from './docs-errors.ts'
import { docsMarkdown } from './docs-md.ts'
import { docs } from './docs.ts'
import type { Document } from './document.ts'
import { renderHome } from './home.ts'
import { index } from './index-json.ts'
import { llms } from './llms.ts'
import { openapi } from './openapi.ts'
import { privacy } from './privacy.ts'
import { x402Resources } from './x402-resources.ts'

/** Every document the engine can render. */
export const documents: readonly Document[] = [
  { ...index, page: renderHome },
  openapi,
  llms,
  x402Resources,
  docs,
  docsMarkdown,
  docsErrors,
  privacy,
]

/** Served under `documents` like the others, but answered live. */
export const liveDocuments = [
  'health',
  'status',
  'status-json',
  'stats',
] as const satisfies readonly DocumentName[]

export type LiveDocument = (typeof liveDocuments)[number]

export const documentNames: readonly string[] = [...documents.map(({ name }) => name), ...liveDocuments]
