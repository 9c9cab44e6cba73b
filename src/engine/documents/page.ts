import { readdirSync, readFileSync } from 'node:fs'
import Handlebars from 'handlebars'
import type { Catalog } from '../catalog/catalog.ts'
import {
  defineDocument,
  DOCUMENTS,
  type Document,
  type DocumentName,
  type Facts,
  type PlacedDocument,
  placedDocuments,
  type Render,
} from './registry.ts'
import { type TemplateContext, TEMPLATES, webAddress } from './template.ts'
import { SANDBOX } from './copy.ts'

/** What every page looks like. */
interface BrandFile {
  readonly path: string
  readonly type: string
  readonly bytes: Buffer
}

/** Served next to the pages, which refer to them, unless the catalog puts something of its own at these paths. */
export const brandFiles: readonly BrandFile[] = [
  brandFile('brand.css', 'text/css; charset=utf-8'),
  brandFile('favicon.svg', 'image/svg+xml'),
  brandFile('favicon.ico', 'image/x-icon'),
]

const STYLE = readFileSync(new URL('brand.css', TEMPLATES), 'utf8')

/** The style of every page, for one that carries it; with line ends as browsers read them, for it is hashed. */
export function styleSheetOf({ files }: Catalog): string {
  const own = files.find(({ path, planned }) => path === '/brand.css' && !planned)
  return own === undefined ? STYLE : Buffer.from(own.base64, 'base64').toString().replace(/\r\n?/g, '\n')
}

/** Address of the picture that stands for the service; undefined when the catalog has put something else there. */
export function iconUrl({ routes, files }: Catalog, baseUrl: string): string | undefined {
  const taken = routes.some(({ path }) => path === ICON)
  const announced = files.some(({ path, planned }) => path === ICON && planned)
  return taken || announced ? undefined : baseUrl + ICON
}

const ICON = '/favicon.svg'

function brandFile(name: string, type: string): BrandFile {
  return { path: `/${name}`, type, bytes: readFileSync(new URL(name, TEMPLATES)) }
}

const PARTIALS = new URL('partials/', TEMPLATES)
const ENDING = '.hbs'

const handlebars = Handlebars.create()
for (const file of readdirSync(PARTIALS).filter((name) => name.endsWith(ENDING)))
  handlebars.registerPartial(file.slice(0, -ENDING.length), readFileSync(new URL(file, PARTIALS), 'utf8'))

/**
 * Reads the template of a page once. Everything is escaped, and a name that the context lacks is an error. A template
 * stands inside `{{#> page}}…{{/page}}`, which is the frame around every page and takes `page: frameOf(…)`.
 */
export function readPage(file: string): (context: TemplateContext) => string {
  const source = readFileSync(new URL(file, TEMPLATES), 'utf8')
  // A partial would be indented like its call, and with it what stands in a <pre>.
  return handlebars.compile<TemplateContext>(source, { strict: true, preventIndent: true })
}

/** Content-Security-Policy: this style, pictures of our own and nothing else: no script, no form, no frame around it. */
export function policyOf(style: string): string {
  const rest = "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  return `default-src 'none'; style-src ${style}; ${rest}`
}

export const PAGE_HEADERS = {
  'Content-Security-Policy': policyOf("'self'"),
  'X-Content-Type-Options': 'nosniff',
}

/** A document that people read in a browser. */
export function definePage(name: DocumentName, render: Render): Document {
  return defineDocument(name, render, () => PAGE_HEADERS)
}

/** Links for machines in the head of every page, by the document they lead to. */
const RELATIONS: readonly (readonly [document: string, relation: string])[] = [
  ['docs-md', 'alternate'],
  ['llms', 'describedby'],
  ['openapi', 'service-desc'],
  ['api-catalog', 'api-catalog'],
]

/** What a page says of itself. */
interface Head {
  readonly title: string
  readonly description: string
  /** Where it stands for good; empty: it is not to be found again. */
  readonly url: string
  /** The style sheet itself, for a page that has to look right in one request; empty: the page links to it. */
  readonly style: string
}

/** The frame around a document: head, masthead and foot. */
export function frameOf(catalog: Catalog, facts: Facts, name: DocumentName): TemplateContext {
  const { service } = catalog
  const url = placedDocuments(catalog, facts.baseUrl).find((placed) => placed.name === name)?.url ?? ''
  const head: Head =
    name === 'index'
      ? { title: nameOf(catalog, facts), description: service.description, url, style: '' }
      : {
          title: `${DOCUMENTS[name].title} · ${nameOf(catalog, facts)}`,
          description: DOCUMENTS[name].summary,
          url,
          style: '',
        }
  return frame(catalog, facts, head)
}

/** The frame around any page. */
export function frame(catalog: Catalog, facts: Facts, head: Head): TemplateContext {
  const { service } = catalog
  const placed = placedDocuments(catalog, facts.baseUrl)
  return {
    ...head,
    service: service.name,
    home: pathOf(placed, 'index') ?? '/',
    icon: iconUrl(catalog, facts.baseUrl) ?? '',
    links: RELATIONS.flatMap(([document, rel]) => {
      const found = placed.find((each) => each.name === document)
      const [path] = found?.paths ?? []
      return found === undefined || path === undefined ? [] : [{ rel, path, type: mediaOf(found) }]
    }),
    pages: placed
      .filter((document) => mediaOf(document) === 'text/html')
      .map(({ title, url, paths }) => ({ title, path: paths[0] ?? '/', current: url === head.url })),
    sandbox: facts.sandbox ? SANDBOX : '',
    operator: service.provider?.organization ?? '',
    operatorUrl: webAddress(service.provider?.url),
    email: service.contact.email ?? '',
    contactUrl: webAddress(service.contact.url),
    version: service.version,
    updated: service.updated ?? '',
  }
}

function nameOf({ service }: Catalog, { sandbox }: Facts): string {
  return sandbox ? `${service.name} (sandbox)` : service.name
}

function pathOf(placed: readonly PlacedDocument[], name: string): string | undefined {
  return placed.find((document) => document.name === name)?.paths[0]
}

function mediaOf({ type }: PlacedDocument): string {
  return type.replace(/;.*$/, '')
}
