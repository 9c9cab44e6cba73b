import type { Catalog } from '../catalog/catalog.ts'
import { compact, type JsonObject } from '../base/json.ts'
import { basePathOf } from '../base/base-path.ts'
import { lastChange } from './listed-operations.ts'
import {
  addressOf,
  defineDocument,
  type DocumentName,
  operationPath,
  type PlacedDocument,
  placedDocuments,
  printJson,
} from './registry.ts'
import { pagedRoutes } from './operation-page.ts'
import { listedServers, serverPagePath } from './mcp-servers.ts'

/** RFC 9116 §2.5.5 recommends less than a year. */
const VALID_MS = 364 * 86_400_000

/**
 * Contact for security reports (RFC 9116). It expires 364 days after the catalog's last change, since documents
 * carry no clock: review it and update the date of the catalog once a year.
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

/** The line that allows the owner of its key to publish MCP servers under this domain: copied from the catalog. */
export const mcpRegistryAuth = defineDocument(
  'mcp-registry-auth',
  ({ service }) => service.mcpRegistryAuth ?? '',
)

/** Whether a document is a page for people or a guide for models, which are in the site map. */
function isPage({ name, type }: PlacedDocument): boolean {
  return name === 'index' || name === 'llms' || /^text\/(html|markdown)/.test(type)
}

/** sitemaps.org 0.9. Paths and origin need no XML escaping, which the check of the catalog ensures. */
export const sitemap = defineDocument('sitemap', (catalog, facts) => {
  const { updated } = catalog.service
  const { baseUrl } = facts
  const changed = updated === undefined ? '' : `<lastmod>${updated}</lastmod>`
  const documents = placedDocuments(catalog, baseUrl).filter(isPage)
  const servers = listedServers(catalog, facts).flatMap(({ name }) => serverPagePath(catalog, name) ?? [])
  const operations = pagedRoutes(catalog).flatMap((route) => operationPath(catalog, route) ?? [])
  const addresses = [
    ...documents.map(({ url }) => url),
    ...[...servers, ...operations].map((path) => baseUrl + path),
  ]
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
    ...addresses.map((url) => `  <url><loc>${url}</loc>${changed}</url>`),
    '</urlset>',
    '',
  ].join('\n')
})

const RELATIONS = ['service-desc', 'service-doc', 'service-meta', 'status'] as const

/** RFC 9727: a link set (RFC 9264) of the descriptions of this API, also as the Link header of HEAD. */
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

/** The link relation by which a program that knows only the origin finds each document. */
const LINK_RELATIONS: readonly (readonly [DocumentName, string])[] = [
  ['openapi', 'service-desc'],
  ['docs', 'service-doc'],
  ['api-catalog', 'api-catalog'],
  ['llms', 'describedby'],
  ['ard', 'ard'],
  ['ard', 'ai-catalog'],
]

/** The Link header of `/` (RFC 8288): the served documents with their relations. */
export function linkHeader(catalog: Catalog, baseUrl: string): string {
  const basePath = basePathOf(baseUrl)
  const placed = placedDocuments(catalog, '')
  return LINK_RELATIONS.flatMap(([name, relation]) => {
    const paths = placed.find((document) => document.name === name)?.paths ?? []
    // One document has two paths under /.well-known/, each for one of its relations.
    const path = paths.find((each) => each.includes(relation)) ?? paths[0]
    return path === undefined ? [] : [`<${basePath}${path}>; rel="${relation}"`]
  }).join(', ')
}
