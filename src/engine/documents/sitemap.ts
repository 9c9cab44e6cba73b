import { placedDocuments, type PlacedDocument } from './directory.ts'
import { defineDocument } from './document.ts'

/** Pages for people and guides for models; what only programs read is left to the other documents. */
function isPage({ name, type }: PlacedDocument): boolean {
  return name === 'index' || name === 'llms' || /^text\/(html|markdown)/.test(type)
}

/** sitemaps.org 0.9. Paths and origin have no character that XML would need escaped: the catalog is checked for it. */
export const sitemap = defineDocument('sitemap', (catalog, { baseUrl }) => {
  const { updated } = catalog.service
  const changed = updated === undefined ? '' : `<lastmod>${updated}</lastmod>`
  const pages = placedDocuments(catalog, baseUrl).filter(isPage)
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
    ...pages.map(({ url }) => `  <url><loc>${url}</loc>${changed}</url>`),
    '</urlset>',
    '',
  ].join('\n')
})
