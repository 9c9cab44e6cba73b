import type { Catalog } from '../../catalog/catalog.ts'
import type { JsonObject } from '../../json.ts'
import { isLoopback } from '../../origin.ts'
import { type ListedTool, listedTools } from '../listing.ts'
import { iconUrl } from '../page.ts'
import { addressOf, type Facts, placedDocuments } from '../registry.ts'
import { sentence } from '../copy.ts'

/** Where the page of a companion server stands: under the documentation, if that is served. */
export function serverPagePath(catalog: Catalog, name: string): string | undefined {
  const docs = placedDocuments(catalog, '').find((placed) => placed.name === 'docs')?.paths[0]
  return docs === undefined ? undefined : `${docs === '/' ? '' : docs}/servers/${name}`
}

/**
 * Where the card of a server stands here. Its address is that of the endpoint with /server-card behind it: on a host of
 * the server's own, what is asked for there is answered with this.
 */
export function serverCardPath(name: string): string {
  return `/mcp/${name}/server-card`
}

/** Where a tool stands on the page of its server. */
export function toolAnchor(name: string): string {
  return `tool.${name}`
}

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

/** Who a companion server is: the same in its card, in the registry and in what it says of itself when asked. */
export interface ServerIdentity {
  /** Reverse DNS name of the service’s host, a slash, and the name in the catalog: `com.example/game`. */
  readonly name: string
  readonly title: string
  readonly version: string
  /** At most 100 characters: the registry and the card take no more. */
  readonly description: string
  readonly websiteUrl: string | undefined
  readonly icons: readonly JsonObject[] | undefined
}

const LONGEST = 100

export function identifyServer(catalog: Catalog, facts: Facts, name: string): ServerIdentity {
  const { title, description } = catalog.servers[name] ?? { title: name, description: undefined }
  const { baseUrl, sandbox } = facts
  const page = serverPagePath(catalog, name)
  const icon = iconUrl(catalog, baseUrl)
  return {
    name: `${reverse(baseUrl)}/${nickname(name)}`,
    title: shorten(sandbox ? `${title} (sandbox)` : title),
    version: catalog.service.version,
    description: shorten(sentence(description ?? title)),
    websiteUrl: page === undefined ? addressOf('llms', catalog, baseUrl) : baseUrl + page,
    icons: icon === undefined ? undefined : [{ src: icon, mimeType: 'image/svg+xml', sizes: ['any'] }],
  }
}

/** A server’s last name: in its identity, and in the URN by which a catalog of resources knows it. */
export function nickname(name: string): string {
  return name.replaceAll('_', '-')
}

/** The registry lets publish under this name who holds the key that the host shows under /.well-known/. */
function reverse(baseUrl: string): string {
  const { hostname } = new URL(baseUrl)
  return isLoopback(baseUrl) || hostname.includes(':')
    ? 'localhost'
    : hostname.split('.').toReversed().join('.')
}

/** Whole words, with a mark where some are missing. */
function shorten(text: string): string {
  const points = Array.from(text)
  if (points.length <= LONGEST) return text
  const kept = points.slice(0, LONGEST - 1).join('')
  return `${kept.replace(/\s+\S*$/, '')}…`
}
