import { readdirSync, readFileSync } from 'node:fs'
import { runInThisContext } from 'node:vm'
import Handlebars from 'handlebars'
import { iconUrl, type Catalog } from '../catalog/catalog.ts'
import { basePathOf } from '../base/base-path.ts'
import { moneyNotice, nameMark } from './payment-guide.ts'
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
import { escapeInvisible, type TemplateContext, TEMPLATES, webAddress } from './template.ts'

/** A file that pages refer to. */
interface BrandFile {
  readonly path: string
  readonly type: string
  readonly bytes: Buffer
}

/** A style sheet, after what all sheets have in common. */
export function readStyleSheet(file: string): string {
  return ['base.css', file].map((name) => readFileSync(new URL(name, TEMPLATES), 'utf8')).join('\n')
}

const STYLE = readStyleSheet('brand.css')

/** Served next to the pages unless the catalog serves something else at these paths. */
export const brandFiles: readonly BrandFile[] = [
  { path: '/brand.css', type: 'text/css; charset=utf-8', bytes: Buffer.from(STYLE) },
  brandFile('page.js', 'text/javascript; charset=utf-8'),
  brandFile('pay.js', 'text/javascript; charset=utf-8'),
  brandFile('pay-solana.js', 'text/javascript; charset=utf-8'),
  brandFile('answer.js', 'text/javascript; charset=utf-8'),
  brandFile('favicon.svg', 'image/svg+xml'),
  brandFile('favicon.ico', 'image/x-icon'),
  brandFile('card.png', 'image/png'),
]

/** Scripts of the 402 page. */
export const PAYMENT_SCRIPTS: readonly string[] = ['/pay.js', '/pay-solana.js', '/answer.js']

/** The style sheet of every page, for inlining; with the line ends of browsers, since it is hashed. */
export function styleSheetOf({ files }: Catalog): string {
  const own = files.find(({ path, planned }) => path === '/brand.css' && !planned)
  return own === undefined ? STYLE : Buffer.from(own.base64, 'base64').toString().replace(/\r\n?/g, '\n')
}

function brandFile(name: string, type: string): BrandFile {
  return { path: `/${name}`, type, bytes: readFileSync(new URL(name, TEMPLATES)) }
}

const PARTIALS = new URL('partials/', TEMPLATES)
const ENDING = '.hbs'

const handlebars = Handlebars.create()
for (const file of readdirSync(PARTIALS).filter((name) => name.endsWith(ENDING)))
  handlebars.registerPartial(file.slice(0, -ENDING.length), readFileSync(new URL(file, PARTIALS), 'utf8'))

/** Everything is escaped, and a name that the context lacks is an error. */
const OPTIONS = {
  strict: true,
  // A partial would be indented like its call, including the text in a <pre>.
  preventIndent: true,
}

/**
 * Reads the template of a page once. It is inside `{{#> page}}…{{/page}}`, which is the frame around every page and takes
 * `page: frameOf(…)`.
 */
export function readPage(file: string): (context: TemplateContext) => string {
  const source = readFileSync(new URL(file, TEMPLATES), 'utf8')
  const print = handlebars.compile<TemplateContext>(source, OPTIONS)
  return (context) => escapeInvisible(print(context))
}

/** Reads a template as `readPage` does, and compiles it now. At the first page, other work would wait up to 30 ms for it. */
export function compilePage(file: string): (context: TemplateContext) => string {
  for (const [name, partial] of Object.entries<unknown>(handlebars.partials))
    if (typeof partial === 'string') handlebars.registerPartial(name, compileNow(partial))
  const print = compileNow(readFileSync(new URL(file, TEMPLATES), 'utf8'))
  return (context) => escapeInvisible(print(context))
}

function compileNow(source: string): (context: TemplateContext) => string {
  // What the types of Handlebars call a specification is its text.
  const text: unknown = handlebars.precompile(source, OPTIONS)
  const specification: unknown = typeof text === 'string' ? runInThisContext(`(${text})`) : undefined
  if (typeof specification !== 'object' || specification === null)
    throw new TypeError('Handlebars has compiled a template to something else')
  return handlebars.template<TemplateContext>(specification)
}

/** Content-Security-Policy: this style and files of our origin; no inline script, and no frame around the page. */
export function policyOf(style: string): string {
  // Auditing tools that run in the page fetch llms.txt and robots.txt.
  const rest =
    "script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
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

/** Machine-readable links in the head of every page, by document. */
const RELATIONS: readonly (readonly [document: string, relation: string])[] = [
  ['docs-md', 'alternate'],
  ['llms', 'describedby'],
  ['openapi', 'service-desc'],
  ['api-catalog', 'api-catalog'],
]

/** The metadata of a page. */
interface Head {
  readonly title: string
  readonly description: string
  /** Its canonical path; empty for a page that is not indexed. */
  readonly url: string
  /** The inlined style sheet, for a page that must render in one request; empty for a page that links to it. */
  readonly style: string
}

/** The frame of a document: head, header and footer. */
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

/** The frame of any page. */
export function frame(catalog: Catalog, facts: Facts, head: Head): TemplateContext {
  const { service } = catalog
  const placed = placedDocuments(catalog, facts.baseUrl)
  return {
    ...head,
    service: service.name,
    base: basePathOf(facts.baseUrl),
    home: pathOf(placed, 'index') ?? '/',
    ...previewPicture(catalog, facts.baseUrl),
    links: RELATIONS.flatMap(([document, rel]) => {
      const found = placed.find((each) => each.name === document)
      const [path] = found?.paths ?? []
      return found === undefined || path === undefined ? [] : [{ rel, path, type: mediaOf(found) }]
    }),
    pages: placed
      .filter((document) => mediaOf(document) === 'text/html')
      .map(({ title, url, paths }) => ({ title, path: paths[0] ?? '/', current: url === head.url })),
    notice: moneyNotice(catalog, facts),
    operator: service.provider?.organization ?? '',
    operatorUrl: webAddress(service.provider?.url),
    email: service.contact.email ?? '',
    contactUrl: webAddress(service.contact.url),
    version: service.version,
    updated: service.updated ?? '',
  }
}

/** The preview picture of a link: the icon of the service, otherwise a card. */
function previewPicture(catalog: Catalog, baseUrl: string): TemplateContext {
  const icon = iconUrl(catalog.service, baseUrl)
  // Social networks show no SVG.
  if (icon !== undefined && !icon.endsWith('.svg')) return { picture: icon, isCard: false }
  const { routes, files } = catalog
  const taken = [...routes, ...files.filter(({ planned }) => planned)].some(
    ({ path }) => path === '/card.png',
  )
  return { picture: taken ? '' : `${baseUrl}/card.png`, isCard: true }
}

function nameOf(catalog: Catalog, facts: Facts): string {
  return catalog.service.name + nameMark(catalog, facts)
}

function pathOf(placed: readonly PlacedDocument[], name: string): string | undefined {
  return placed.find((document) => document.name === name)?.paths[0]
}

function mediaOf({ type }: PlacedDocument): string {
  return type.replace(/;.*$/, '')
}
