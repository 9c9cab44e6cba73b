import { createHash } from 'node:crypto'
import type { Catalog } from '../catalog/catalog.ts'
import { documents } from '../documents/all.ts'
import { pagedRoutes, renderOperation } from '../documents/operation-page.ts'
import { brandFiles, PAGE_HEADERS, PAYMENT_SCRIPTS } from '../documents/page-frame.ts'
import {
  type DocumentName,
  DOCUMENTS,
  type Facts,
  operationPath,
  PAGE_TYPE,
  placedDocuments,
} from '../documents/registry.ts'
import { didDocuments } from '../documents/did-document.ts'
import { serverPages } from '../documents/mcp-server-page.ts'
import { serverCards } from '../documents/server-card.ts'
import { once } from '../base/once.ts'

/** Rendered documents and files by path. */
export type Pages = ReadonlyMap<string, Page>

export interface Page {
  readonly type: string
  readonly body: Buffer
  readonly etag: string
  readonly planned: boolean
  /** Headers besides those of every page. */
  readonly headers: Readonly<Record<string, string>>
  /** The version for browsers. */
  readonly shown?: Page
  /** The same as Markdown. */
  readonly markdown?: Page
}

/** Renders documents, files and styles; a catalog entry at the same path takes precedence. */
export function renderPages(catalog: Catalog, facts: Facts): Pages {
  const own = [...renderDocuments(catalog, facts), ...renderFiles(catalog)]
  const taken = new Set([...own.map(([path]) => path), ...catalog.routes.map(({ path }) => path)])
  const brand = brandFiles.filter(({ path }) => !taken.has(path) && isOurs(path, catalog))
  const servers = [...serverPages(catalog, facts), ...serverCards(catalog, facts), ...didDocuments(facts)]
  return new Map([
    ...own,
    ...servers
      .filter(({ path }) => !taken.has(path))
      .map(({ path, type, text, headers }): [string, Page] => [path, pageOf(type, text, headers)]),
    ...brand.map(({ path, type, bytes }): [string, Page] => [path, pageOf(type, bytes, {})]),
  ])
}

/** Of the files of pages a site behind the catalog leaves the scripts of the 402 page, unless the catalog has more pages. */
function isOurs(path: string, { passthrough, documents: places }: Catalog): boolean {
  if (passthrough === undefined || PAYMENT_SCRIPTS.includes(path)) return true
  const hasPages = PAGES.some((name) => places[name]?.planned === false)
  return hasPages && !path.startsWith('/favicon.')
}

const PAGES: readonly DocumentName[] = ['index', 'docs', 'docs-errors', 'privacy', 'status']

function renderDocuments(catalog: Catalog, facts: Facts): [string, Page][] {
  const rendered = placedDocuments(catalog, facts.baseUrl).flatMap(({ name, paths }) => {
    const document = documents.find((each) => each.name === name)
    if (document === undefined) return []
    const { type, render, page } = document
    const headers = document.headers(catalog, facts)
    const shown =
      page === undefined
        ? {}
        : { shown: pageOf(PAGE_TYPE, page(catalog, facts), { ...headers, ...PAGE_HEADERS }) }
    return [{ name, paths, served: { ...pageOf(type, render(catalog, facts), headers), ...shown } }]
  })
  const markdown = rendered.find(({ name }) => name === 'docs-md')?.served
  const placed = rendered.flatMap(({ name, paths, served }) => {
    const page: Page = name === 'docs' && markdown !== undefined ? { ...served, markdown } : served
    return paths.map((path): [string, Page] => [path, page])
  })
  const announced = Object.values(catalog.documents).flatMap(({ paths, planned }) => (planned ? paths : []))
  return [...placed, ...announced.map((path): [string, Page] => [path, ANNOUNCED])]
}

const ANNOUNCED: Page = { type: '', body: Buffer.alloc(0), etag: '', planned: true, headers: {} }

function renderFiles({ files }: Catalog): [string, Page][] {
  return files.map(({ path, type, base64, planned }) => [
    path,
    { ...pageOf(type, Buffer.from(base64, 'base64'), {}), planned },
  ])
}

/** The pages of single routes by their paths, each rendered at its first use: most of a large catalog are never read. */
export function operationPages(catalog: Catalog, facts: Facts): (path: string) => Page | undefined {
  const made = once(
    () =>
      new Map(
        pagedRoutes(catalog).flatMap((route): [string, () => Page][] => {
          const path = operationPath(catalog, route)
          if (path === undefined) return []
          const render = (form: 'page' | 'markdown'): string => renderOperation(catalog, facts, route, form)
          const { type } = DOCUMENTS['docs-md']
          const markdown = once(() => pageOf(type, render('markdown'), {}))
          return [
            [
              path,
              once(() => ({ ...pageOf(PAGE_TYPE, render('page'), PAGE_HEADERS), markdown: markdown() })),
            ],
            [`${path}.md`, markdown],
          ]
        }),
      ),
  )
  return (path) => made().get(path)?.()
}

/** A weak tag: the same document is also sent compressed. */
export function pageOf(type: string, content: string | Buffer, headers: Page['headers']): Page {
  const body = Buffer.from(content)
  const etag = `W/"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`
  return { type, body, etag, planned: false, headers }
}
