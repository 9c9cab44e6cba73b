import type { Catalog } from '../catalog/catalog.ts'
import { compact, type JsonObject } from '../json.ts'
import { lastChange } from './listing.ts'
import {
  addressOf,
  defineDocument,
  type DocumentName,
  type PlacedDocument,
  placedDocuments,
  printJson,
} from './registry.ts'
import { listedServers, serverPagePath } from './servers.ts'

/** RFC 9309, with where the site map and the resource discovery are, and Cloudflare’s Content-Signal. */
export const robots = defineDocument('robots', (catalog, { baseUrl }) => {
  const { paid, training } = catalog.crawlers
  const signals = ['search=yes', 'ai-input=yes']
  if (training !== undefined) signals.push(`ai-train=${training === 'allow' ? 'yes' : 'no'}`)
  const rules = ['User-agent: *', `Content-Signal: ${signals.join(', ')}`, 'Allow: /']
  // Nothing to read there for those who do not pay.
  if (paid === 'disallow') rules.push('Disallow: /paid/')
  const sitemap = addressOf('sitemap', catalog, baseUrl)
  const ard = addressOf('ard', catalog, baseUrl)
  const pointers = [
    ...(sitemap === undefined ? [] : [`Sitemap: ${sitemap}`]),
    ...(ard === undefined ? [] : [`Agentmap: ${ard}`]),
  ]
  const groups = [rules, pointers].filter((lines) => lines.length > 0)
  return `${groups.map((lines) => lines.join('\n')).join('\n\n')}\n`
})

/** RFC 9116 §2.5.5 recommends less than a year. */
const VALID_MS = 364 * 86_400_000

/**
 * Whom to tell of a weakness (RFC 9116). It expires 364 days after the catalog was last changed, for documents carry
 * no clock: somebody has to look at it once a year and to date the catalog anew.
 */
export const securityTxt = defineDocument('security-txt', (catalog, { baseUrl }) => {
  const { email, url } = catalog.service.contact
  const expires = new Date(Date.parse(lastChange(catalog)) + VALID_MS).toISOString()
  const canonical = addressOf('security-txt', catalog, baseUrl)
  const lines = [
    ...(email === undefined ? [] : [`Contact: mailto:${email}`]),
    ...(url === undefined ? [] : [`Contact: ${url}`]),
    `Expires: ${expires.replace('.000Z', 'Z')}`,
    'Preferred-Languages: en',
    ...(canonical === undefined ? [] : [`Canonical: ${canonical}`]),
  ]
  return `${lines.join('\n')}\n`
})

/** The line that lets its key’s owner publish MCP servers under this domain’s name: exactly as the catalog has it. */
export const mcpRegistryAuth = defineDocument(
  'mcp-registry-auth',
  ({ service }) => service.mcpRegistryAuth ?? '',
)

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

const RELATIONS = ['service-desc', 'service-doc', 'service-meta', 'status'] as const

/** RFC 9727: what describes this API, as a link set (RFC 9264). The header says the same of HEAD. */
export const apiCatalog = defineDocument(
  'api-catalog',
  (catalog, { baseUrl }) => {
    const placed = placedDocuments(catalog, baseUrl)
    const links = (relation: (typeof RELATIONS)[number]): JsonObject[] | undefined => {
      const found = placed.filter(({ rel }) => rel === relation)
      return found.length === 0
        ? undefined
        : found.map(({ url, type, title }) => ({ href: url, type: type.replace(/;.*$/, ''), title }))
    }
    const anchor = `${baseUrl}/`
    return printJson({
      linkset: [{ anchor, ...compact(Object.fromEntries(RELATIONS.map((each) => [each, links(each)]))) }],
    })
  },
  (catalog, { baseUrl }) => ({
    Link: `<${addressOf('api-catalog', catalog, baseUrl) ?? baseUrl}>; rel="api-catalog"`,
  }),
)

/** By what a program that knows only the origin finds each document. */
const LINK_RELATIONS: readonly (readonly [DocumentName, string])[] = [
  ['openapi', 'service-desc'],
  ['docs', 'service-doc'],
  ['api-catalog', 'api-catalog'],
  ['llms', 'describedby'],
  ['ard', 'ard'],
  ['ard', 'ai-catalog'],
]

/** The Link header of `/` (RFC 8288): the documents that are served, each under its relation. */
export function linkHeader(catalog: Catalog): string {
  const placed = placedDocuments(catalog, '')
  return LINK_RELATIONS.flatMap(([name, relation]) => {
    const paths = placed.find((document) => document.name === name)?.paths ?? []
    // One document has two names under /.well-known/, and each relation means one of them.
    const path = paths.find((each) => each.includes(relation)) ?? paths[0]
    return path === undefined ? [] : [`<${path}>; rel="${relation}"`]
  }).join(', ')
}
