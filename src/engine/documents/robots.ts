import type { Catalog } from '../catalog/catalog.ts'
import { basePathOf } from '../base/base-path.ts'
import { addressOf, defineDocument, placedDocuments } from './registry.ts'

/** RFC 9309, with the site map and Cloudflare’s Content-Signal. */
export const robots = defineDocument('robots', (catalog, { baseUrl }) => {
  const { paid, training } = catalog.crawlers
  const signals = ['search=yes', 'ai-input=yes']
  if (training !== undefined) signals.push(`ai-train=${training === 'allow' ? 'yes' : 'no'}`)
  const basePath = basePathOf(baseUrl)
  const rules = ['User-agent: *', `Content-Signal: ${signals.join(', ')}`, `Allow: ${basePath}/`]
  // Crawlers do not pay, so paid paths have no content for them.
  if (paid === 'disallow') rules.push(...disallowPaid(catalog, basePath))
  const sitemap = addressOf('sitemap', catalog, baseUrl)
  const pointer = sitemap === undefined ? '' : `\nSitemap: ${sitemap}\n`
  return `${rules.join('\n')}\n${pointer}`
})

/**
 * One rule for a folder that contains nothing but paid routes, otherwise rules for each of its paid routes. The longest
 * rule counts (RFC 9309 §2.2.2), so a free path below a template of a paid one has a rule of its own.
 */
function disallowPaid(catalog: Catalog, basePath: string): string[] {
  const paid = pathsOf(catalog, 'paid')
  const free = [
    ...pathsOf(catalog, 'free'),
    ...pathsOf(catalog, 'sample'),
    ...placedDocuments(catalog, '').flatMap(({ paths }) => paths),
    ...catalog.files.map(({ path }) => path),
  ]
  const mixed = new Set(free.map(folderOf))
  const rules = paid.flatMap((path) => {
    const folder = folderOf(path)
    if (folder !== path && !mixed.has(folder)) return [`Disallow: ${basePath}${folder}/`]
    const pattern = basePath + patternOf(path)
    if (pattern.endsWith('*')) return [`Disallow: ${pattern}`]
    // Without an ending, the rule would hold for every longer path.
    return [`Disallow: ${pattern}$`, `Disallow: ${pattern}?`]
  })
  const templated = new Set(paid.filter((path) => path.includes('{')).map(folderOf))
  const below = free
    .filter((path) => templated.has(folderOf(path)))
    .map((path) => `Allow: ${basePath}${patternOf(path)}$`)
  return [...new Set([...below, ...rules])]
}

function patternOf(path: string): string {
  return path.replace(/\{[^}]*\}/g, '*')
}

function pathsOf({ routes }: Catalog, kind: 'paid' | 'free' | 'sample'): string[] {
  return routes.filter((route) => route.kind === kind).map(({ path }) => path)
}

/** `/v1/items/{id}` → `/v1`; a path of one segment is its own. */
function folderOf(path: string): string {
  return path.split('/').slice(0, 2).join('/')
}
