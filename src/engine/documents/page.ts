import Handlebars from 'handlebars'
import { readdirSync, readFileSync } from 'node:fs'
import type { Catalog } from '../catalog/catalog.ts'
import { DIRECTORY, placedDocuments, type DocumentName, type PlacedDocument } from './directory.ts'
import type { Facts } from './document.ts'
import type { TemplateContext } from './text.ts'
import { SANDBOX } from './wording.ts'

const FOLDER = new URL('../../../templates/', import.meta.url)
const PARTIALS = new URL('partials/', FOLDER)
const ENDING = '.hbs'

const handlebars = Handlebars.create()
for (const file of readdirSync(PARTIALS).filter((name) => name.endsWith(ENDING)))
  handlebars.registerPartial(file.slice(0, -ENDING.length), readFileSync(new URL(file, PARTIALS), 'utf8'))

/**
 * Reads the template of a page once. Everything is escaped, and a name that the context lacks is an error. A template
 * stands inside `{{#> page}}…{{/page}}`, which is the frame around every page and takes `page: frameOf(…)`.
 */
export function readPage(file: string): (context: TemplateContext) => string {
  const source = readFileSync(new URL(file, FOLDER), 'utf8')
  // A partial would be indented like its call, and with it what stands in a <pre>.
  return handlebars.compile<TemplateContext>(source, { strict: true, preventIndent: true })
}

/** What machines are told in the head of every page, by the document that it leads to. */
const RELATIONS: readonly (readonly [document: string, relation: string])[] = [
  ['docs-md', 'alternate'],
  ['llms', 'describedby'],
  ['openapi', 'service-desc'],
  ['api-catalog', 'api-catalog'],
]

/** The frame around a page: head, masthead and foot. */
export function frameOf(catalog: Catalog, facts: Facts, name: DocumentName): TemplateContext {
  const { service } = catalog
  const placed = placedDocuments(catalog, facts.baseUrl)
  const own = placed.find((document) => document.name === name)
  const isHome = name === 'index'
  const title = facts.sandbox ? `${service.name} (sandbox)` : service.name
  return {
    title: isHome ? title : `${DIRECTORY[name].title} · ${title}`,
    description: isHome ? service.description : DIRECTORY[name].summary,
    service: service.name,
    home: pathOf(placed, 'index') ?? '/',
    url: own?.url ?? `${facts.baseUrl}/`,
    icon: `${facts.baseUrl}/favicon.svg`,
    links: RELATIONS.flatMap(([document, rel]) => {
      const found = placed.find((each) => each.name === document)
      const [path] = found?.paths ?? []
      return found === undefined || path === undefined ? [] : [{ rel, path, type: mediaOf(found) }]
    }),
    pages: placed
      .filter((document) => mediaOf(document) === 'text/html')
      .map((document) => ({
        title: document.title,
        path: document.paths[0] ?? '/',
        current: document === own,
      })),
    sandbox: facts.sandbox ? SANDBOX : '',
    operator: service.provider?.organization ?? '',
    operatorUrl: webAddress(service.provider?.url),
    email: service.contact.email ?? '',
    contactUrl: webAddress(service.contact.url),
    version: service.version,
    updated: service.updated ?? '',
  }
}

function pathOf(placed: readonly PlacedDocument[], name: string): string | undefined {
  return placed.find((document) => document.name === name)?.paths[0]
}

function mediaOf({ type }: PlacedDocument): string {
  return type.replace(/;.*$/, '')
}

/** An address that a link may have: the catalog could hold `javascript:` too. */
export function webAddress(url: string | undefined): string {
  return url !== undefined && /^https?:\/\//i.test(url) ? url : ''
}
