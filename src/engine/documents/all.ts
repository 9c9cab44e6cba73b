import { agentCard } from './agent-card.ts'
import { apiCatalog } from './api-catalog.ts'
import { ard } from './ard.ts'
import { categories } from './categories.ts'
import type { DocumentName } from './directory.ts'
import type { Document } from './document.ts'
import { index } from './index-json.ts'
import { llms } from './llms.ts'
import { llmsFull } from './llms-full.ts'
import { mcpRegistryAuth } from './mcp-registry-auth.ts'
import { openapi } from './openapi.ts'
import { robots } from './robots.ts'
import { securityTxt } from './security-txt.ts'
import { sitemap } from './sitemap.ts'
import { x402Manifest } from './x402-manifest.ts'
import { x402Resources } from './x402-resources.ts'

/** Every document the engine can render. */
export const documents: readonly Document[] = [
  index,
  openapi,
  llms,
  llmsFull,
  agentCard,
  x402Manifest,
  x402Resources,
  categories,
  ard,
  apiCatalog,
  robots,
  sitemap,
  securityTxt,
  mcpRegistryAuth,
]

/** Served under `documents` like the others, but answered live. */
export const liveDocuments = ['health', 'status-json'] as const satisfies readonly DocumentName[]

export const documentNames: readonly string[] = [...documents.map(({ name }) => name), ...liveDocuments]
