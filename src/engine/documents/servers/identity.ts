import type { Catalog } from '../../catalog/catalog.ts'
import type { JsonObject } from '../../json.ts'
import { isLoopback } from '../../origin.ts'
import { iconUrl } from '../brand.ts'
import { addressOf } from '../directory.ts'
import type { Facts } from '../document.ts'
import { sentence } from '../wording.ts'
import { serverPagePath } from './place.ts'

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
