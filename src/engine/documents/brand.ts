import { readFileSync } from 'node:fs'
import type { Catalog } from '../catalog/catalog.ts'
import { TEMPLATES } from './text.ts'

/** What every page looks like. */
export interface BrandFile {
  readonly path: string
  readonly type: string
  readonly bytes: Buffer
}

/** Served beside the pages, which refer to them, unless the catalog puts something of its own at these paths. */
export const brandFiles: readonly BrandFile[] = [
  brandFile('brand.css', 'text/css; charset=utf-8'),
  brandFile('favicon.svg', 'image/svg+xml'),
  brandFile('favicon.ico', 'image/x-icon'),
]

/** The style of every page, for one that carries it. */
export const styleSheet = readFileSync(new URL('brand.css', TEMPLATES), 'utf8')

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
