import { compact, type JsonObject } from '../json.ts'
import { addressOf, placedDocuments } from './directory.ts'
import { defineDocument } from './document.ts'
import { printJson } from './json-text.ts'

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
