import { agentCard } from './agent-card.ts'
import { apiCatalog } from './api-catalog.ts'
import { ard } from './ard.ts'
import { categories } from './categories.ts'
import type { DocumentName } from './directory.ts'
import { docsErrors } from './docs-errors.ts'
import { docsMarkdown } from './docs-md.ts'
import { docs } from './docs.ts'
import type { Document } from './document.ts'
import { renderHome } from './home.ts'
import { index } from './index-json.ts'
import { llms } from './llms.ts'
import { llmsFull } from './llms-full.ts'
import { mcpRegistryAuth } from './mcp-registry-auth.ts'
import { openapi } from './openapi.ts'
import { privacy } from './privacy.ts'
import { robots } from './robots.ts'
import { securityTxt } from './security-txt.ts'
import { sitemap } from './sitemap.ts'
import { x402Manifest } from './x402-manifest.ts'
import { x402Resources } from './x402-resources.ts'

/** Every document the engine can render. */
export const documents: readonly Document[] = [
  { ...index, page: renderHome },
  openapi,
  llms,
  llmsFull,
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

/** Served under `documents` like the others, but answered live. */
export const liveDocuments = [
  'health',
  'status',
  'status-json',
  'stats',
] as const satisfies readonly DocumentName[]

export type LiveDocument = (typeof liveDocuments)[number]

export const documentNames: readonly string[] = [...documents.map(({ name }) => name), ...liveDocuments]
