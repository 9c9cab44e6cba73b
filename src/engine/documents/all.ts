import { agentCard } from './agent-card.ts'
import { ard } from './ard.ts'
import { categories, index } from './index-json.ts'
import { llms } from './llms.ts'
import { docsMarkdown } from './manual.ts'
import { openapi } from './openapi.ts'
import { docs, docsErrors, privacy, renderHome } from './site-pages.ts'
import { robots } from './robots.ts'
import type { Document, DocumentName } from './registry.ts'
import { apiCatalog, mcpRegistryAuth, securityTxt, sitemap } from './well-known.ts'
import { x402Manifest, x402Resources } from './x402-documents.ts'

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
  agentCard,
  x402Manifest,
  categories,
  ard,
  apiCatalog,
  robots,
  sitemap,
  securityTxt,
  mcpRegistryAuth,
]

/** Served under `documents` like the others, but rendered for each request. */
export const liveDocuments = [
  'health',
  'status',
  'status-json',
  'stats',
] as const satisfies readonly DocumentName[]

export type LiveDocument = (typeof liveDocuments)[number]

export const documentNames: readonly string[] = [...documents.map(({ name }) => name), ...liveDocuments]
