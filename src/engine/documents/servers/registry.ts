import type { Catalog } from '../../catalog/catalog.ts'
import { compact } from '../../json.ts'
import type { Facts } from '../document.ts'
import { printJson } from '../json-text.ts'
import { identifyServer } from './identity.ts'
import type { ListedServer } from './listing.ts'

/** `server.json`: what `mcp-publisher` sends to the MCP registry, which never fetches it. */
export function renderServerJson(catalog: Catalog, facts: Facts, { name, url }: ListedServer): string {
  const { icons, ...identity } = identifyServer(catalog, facts, name)
  return printJson(
    compact({
      $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
      ...identity,
      // The registry takes pictures from https alone.
      icons: facts.baseUrl.startsWith('https:') ? icons : undefined,
      remotes: [{ type: 'streamable-http', url }],
    }),
  )
}
