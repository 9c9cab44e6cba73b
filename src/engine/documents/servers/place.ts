import type { Catalog } from '../../catalog/catalog.ts'
import { placedDocuments } from '../directory.ts'

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
