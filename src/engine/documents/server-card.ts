import type { Catalog } from '../catalog/catalog.ts'
import { compact } from '../base/json.ts'
import {
  COMMON_CARD_PATH,
  commonServerUrl,
  identifyCommonServer,
  identifyServer,
  type ListedServer,
  listedServers,
  type ServerDocument,
  type ServerIdentity,
  serverCardPath,
} from './mcp-servers.ts'
import { type Facts, printJson } from './registry.ts'

export const SERVER_CARD_TYPE = 'application/mcp-server-card+json'

/** Protocol revisions of every endpoint, newest first; `server/discover` is authoritative. */
export const MCP_REVISIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

const SCHEMAS = 'https://static.modelcontextprotocol.io/schemas'

/**
 * How to connect to a companion server, for clients that have not yet (MCP server cards, SEP-2127). Served at the
 * endpoint’s address with /server-card behind it. It names no tools: those are asked for.
 */
function renderServerCard(identity: ServerIdentity, url: string): string {
  const remotes = [{ type: 'streamable-http', url, supportedProtocolVersions: MCP_REVISIONS }]
  return printJson(compact({ $schema: `${SCHEMAS}/v1/server-card.schema.json`, ...identity, remotes }))
}

/** `server.json`: what `mcp-publisher` sends to the MCP registry, which never fetches it. */
export function renderServerJson(catalog: Catalog, facts: Facts, { name, url }: ListedServer): string {
  const { icons, ...identity } = identifyServer(catalog, facts, name)
  return printJson(
    compact({
      $schema: `${SCHEMAS}/2025-12-11/server.schema.json`,
      ...identity,
      // The registry accepts icons over https only.
      icons: facts.baseUrl.startsWith('https:') ? icons : undefined,
      remotes: [{ type: 'streamable-http', url }],
    }),
  )
}

/** The cards of all served MCP servers, and of the one with the tools of all. */
export function serverCards(catalog: Catalog, facts: Facts): ServerDocument[] {
  const servers = listedServers(catalog, facts)
  const own = servers.map(({ name, url }): [string, string] => [
    serverCardPath(name),
    renderServerCard(identifyServer(catalog, facts, name), url),
  ])
  const common = renderServerCard(identifyCommonServer(catalog, facts), commonServerUrl(facts))
  const cards = servers.length === 0 ? [] : [...own, [COMMON_CARD_PATH, common] as const]
  return cards.map(([path, text]) => ({ path, type: SERVER_CARD_TYPE, text, headers: {} }))
}
