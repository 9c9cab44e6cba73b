import type { Catalog } from '../../catalog/catalog.ts'
import { compact } from '../../json.ts'
import { frame, PAGE_HEADERS, readPage } from '../page.ts'
import { addressOf, type Facts, PAGE_TYPE, printJson } from '../registry.ts'
import { howToPayTools, payingClients, serverManual, TOOL_CLIENT } from './docs-model.ts'
import { identifyServer, type ListedServer, listedServers, serverCardPath, serverPagePath } from './server.ts'

export const SERVER_CARD_TYPE = 'application/mcp-server-card+json'

/** Revisions of the protocol that every endpoint speaks, newest first; `server/discover` is the truth. */
export const MCP_REVISIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

/**
 * How to connect to a companion server, for clients that have not yet (MCP server cards, SEP-2127): stands at the
 * endpoint’s address with /server-card behind it. It names no tools: those are asked for.
 */
function renderServerCard(catalog: Catalog, facts: Facts, { name, url }: ListedServer): string {
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

const print = readPage('docs-server.html.hbs')

/** One companion server for people: how to connect, how to pay, and its tools. */
function renderServerPage(catalog: Catalog, facts: Facts, server: ListedServer): string {
  const { title, description, websiteUrl } = identifyServer(catalog, facts, server.name)
  return print({
    page: frame(catalog, facts, {
      title: `${title} · ${catalog.service.name}`,
      description,
      url: websiteUrl ?? '',
      style: '',
    }),
    ...serverManual(catalog, server),
    sells: server.tools.some(({ operation }) => operation.price !== undefined),
    steps: howToPayTools(catalog, facts),
    clients: payingClients(facts),
    program: facts.protocols.includes('x402') ? TOOL_CLIENT : '',
    docs: addressOf('docs', catalog, '') ?? '',
  })
}

/** A document of one companion server. */
interface ServerDocument {
  readonly path: string
  readonly type: string
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
}

/** The page of each companion server that is served. */
export function serverPages(catalog: Catalog, facts: Facts): ServerDocument[] {
  return listedServers(catalog, facts).flatMap((server) => {
    const path = serverPagePath(catalog, server.name)
    if (path === undefined) return []
    return [{ path, type: PAGE_TYPE, text: renderServerPage(catalog, facts, server), headers: PAGE_HEADERS }]
  })
}

/** The card of each. */
export function serverCards(catalog: Catalog, facts: Facts): ServerDocument[] {
  return listedServers(catalog, facts).map((server) => ({
    path: serverCardPath(server.name),
    type: SERVER_CARD_TYPE,
    text: renderServerCard(catalog, facts, server),
    headers: {},
  }))
}
