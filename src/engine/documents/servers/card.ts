import type { Catalog } from '../../catalog/catalog.ts'
import { compact } from '../../json.ts'
import type { Facts } from '../document.ts'
import { printJson } from '../json-text.ts'
import { identifyServer } from './identity.ts'
import type { ListedServer } from './listing.ts'

export const SERVER_CARD_TYPE = 'application/mcp-server-card+json'

/** Revisions of the protocol that every endpoint speaks, newest first; `server/discover` is the truth. */
export const MCP_REVISIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

/**
 * How to connect to a companion server, for clients that have not yet (MCP server cards, SEP-2127): stands at the
 * endpoint’s address with /server-card behind it. It names no tools: those are asked for.
 */
export function renderServerCard(catalog: Catalog, facts: Facts, { name, url }: ListedServer): string {
  const { icons, ...identity } = identifyServer(catalog, facts, name)
  return printJson(
    compact({
      $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
      ...identity,
      icons,
      remotes: [{ type: 'streamable-http', url, supportedProtocolVersions: MCP_REVISIONS }],
    }),
  )
}
