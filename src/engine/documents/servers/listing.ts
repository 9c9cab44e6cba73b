import type { Catalog } from '../../catalog/catalog.ts'
import type { Facts } from '../document.ts'
import { listedTools, type ListedTool } from '../listing.ts'

/** A companion MCP server that is served, with those of its tools that can be called now. */
export interface ListedServer {
  /** Its name in the catalog. */
  readonly name: string
  readonly title: string
  readonly description: string | undefined
  /** Address of its endpoint. */
  readonly url: string
  /** In the order of the catalog. */
  readonly tools: readonly ListedTool[]
}

/** Every companion server that is served, in the order of the catalog. */
export function listedServers(catalog: Catalog, facts: Facts): ListedServer[] {
  const tools = listedTools(catalog, facts)
  return Object.entries(catalog.servers).flatMap(([name, server]) => {
    const url = facts.mcpServers.get(name)
    if (url === undefined) return []
    return [{ ...server, name, url, tools: tools.filter(({ tool }) => tool.server === name) }]
  })
}
