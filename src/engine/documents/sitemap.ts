import { placedDocuments, type PlacedDocument } from './directory.ts'
import { defineDocument } from './document.ts'
import { listedServers } from './servers/listing.ts'
import { serverPagePath } from './servers/place.ts'

/** Pages for people and guides for models; what only programs read is left to the other documents. */
function isPage({ name, type }: PlacedDocument): boolean {
  return name === 'index' || name === 'llms' || /^text\/(html|markdown)/.test(type)
}

/** sitemaps.org 0.9. Paths and origin have no character that XML would need escaped: the catalog is checked for it. */
export const sitemap = defineDocument('sitemap', (catalog, facts) => {
  const { updated } = catalog.service
  const { baseUrl } = facts
  const changed = updated === undefined ? '' : `<lastmod>${updated}</lastmod>`
  const documents = placedDocuments(catalog, baseUrl).filter(isPage)
  const servers = listedServers(catalog, facts).flatMap(({ name }) => serverPagePath(catalog, name) ?? [])
  const addresses = [...documents.map(({ url }) => url), ...servers.map((path) => baseUrl + path)]
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
    ...addresses.map((url) => `  <url><loc>${url}</loc>${changed}</url>`),
    '</urlset>',
    '',
  ].join('\n')
})
