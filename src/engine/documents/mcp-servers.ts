import { iconUrl, type Catalog } from '../catalog/catalog.ts'
import type { JsonObject } from '../base/json.ts'
import { isLoopback } from '../base/loopback.ts'
import { sentence, shortenAtWord } from '../base/words.ts'
import { type ListedTool, listedTools } from './listed-operations.ts'
import { nameMark } from './payment-guide.ts'
import { addressOf, docsFolder, type Facts } from './registry.ts'

/** Address of the server with the tools of all; those of each are below it. */
export const MCP_PATH = '/mcp'

/** Path of the page of an MCP server, below the documentation if that is served. */
export function serverPagePath(catalog: Catalog, name: string): string | undefined {
  const folder = docsFolder(catalog)
  return folder === undefined ? undefined : `${folder}/servers/${name}`
}

/** Path of the card of an MCP server: that of its endpoint with `/server-card` appended, also on a host of its own. */
export function serverCardPath(name: string): string {
  return `${MCP_PATH}/${name}/server-card`
}

/** Anchor of a tool on the page of its server. */
export function toolAnchor(name: string): string {
  return `tool.${name}`
}

/** A served MCP server with its callable tools. */
export interface ListedServer {
  /** Its name in the catalog. */
  readonly name: string
  readonly title: string
  readonly description: string | undefined
  /** URL of its endpoint. */
  readonly url: string
  /** In the order of the catalog. */
  readonly tools: readonly ListedTool[]
}

/** Every served MCP server, in the order of the catalog. */
export function listedServers(catalog: Catalog, facts: Facts): ListedServer[] {
  const tools = listedTools(catalog, facts)
  return Object.entries(catalog.servers).flatMap(([name, server]) => {
    const url = facts.mcpServers.get(name)
    if (url === undefined) return []
    return [{ ...server, name, url, tools: tools.filter(({ tool }) => tool.server === name) }]
  })
}

/** Identity of an MCP server: the same in its card, in the registry and in its own answers. */
export interface ServerIdentity {
  /** Reverse DNS name of the service’s host, a slash, and the name in the catalog: `com.example/game`. */
  readonly name: string
  readonly title: string
  readonly version: string
  /** At most 100 characters, the limit of the registry and the card. */
  readonly description: string
  readonly websiteUrl: string | undefined
  readonly icons: readonly JsonObject[] | undefined
}

const LONGEST = 100
const SVG = { mimeType: 'image/svg+xml', sizes: ['any'] } as const

export function identifyServer(catalog: Catalog, facts: Facts, name: string): ServerIdentity {
  const { title, description } = catalog.servers[name] ?? { title: name, description: undefined }
  const { baseUrl } = facts
  const page = serverPagePath(catalog, name)
  return {
    name: `${reverse(baseUrl)}/${nickname(name)}`,
    title: shortenAtWord(title + nameMark(catalog, facts), LONGEST),
    version: catalog.service.version,
    description: shortenAtWord(sentence(description ?? title), LONGEST),
    websiteUrl: page === undefined ? addressOf('llms', catalog, baseUrl) : baseUrl + page,
    ...iconsOf(catalog, facts),
  }
}

/** Where clients look for the server of a host. */
export const COMMON_CARD_PATH = '/.well-known/mcp/server-card.json'

/** Address of the server with the tools of all others. */
export function commonServerUrl({ baseUrl }: Pick<Facts, 'baseUrl'>): string {
  return `${baseUrl}${MCP_PATH}`
}

export function identifyCommonServer(catalog: Catalog, facts: Facts): ServerIdentity {
  const { name, description, version } = catalog.service
  const { baseUrl } = facts
  return {
    name: `${reverse(baseUrl)}/mcp`,
    title: shortenAtWord(name + nameMark(catalog, facts), LONGEST),
    version,
    description: shortenAtWord(sentence(description), LONGEST),
    websiteUrl: addressOf('docs', catalog, baseUrl) ?? addressOf('llms', catalog, baseUrl),
    ...iconsOf(catalog, facts),
  }
}

function iconsOf(catalog: Catalog, { baseUrl }: Facts): Pick<ServerIdentity, 'icons'> {
  const icon = iconUrl(catalog.service, baseUrl)
  return {
    icons: icon === undefined ? undefined : [icon.endsWith('.svg') ? { src: icon, ...SVG } : { src: icon }],
  }
}

/** The last part of a server’s name: used in its identity, and in its URN in a resource catalog. */
export function nickname(name: string): string {
  return name.replaceAll('_', '-')
}

/** The registry accepts this name from the holder of the key that the host publishes under /.well-known/. */
function reverse(baseUrl: string): string {
  const { hostname } = new URL(baseUrl)
  return isLoopback(baseUrl) || hostname.includes(':')
    ? 'localhost'
    : hostname.split('.').toReversed().join('.')
}

/** A document of one MCP server. */
export interface ServerDocument {
  readonly path: string
  readonly type: string
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
}
