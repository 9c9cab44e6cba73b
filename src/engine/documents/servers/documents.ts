import type { Catalog } from '../../catalog/catalog.ts'
import { PAGE_TYPE } from '../directory.ts'
import type { Facts } from '../document.ts'
import { PAGE_HEADERS } from '../page.ts'
import { renderServerCard, SERVER_CARD_TYPE } from './card.ts'
import { listedServers } from './listing.ts'
import { renderServerPage } from './page.ts'
import { serverCardPath, serverPagePath } from './place.ts'

/** A document of one companion server. */
export interface ServerDocument {
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
