import { hash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isMap, isScalar, isSeq, parseDocument, YAMLMap } from 'yaml'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

export interface CatalogFile {
  readonly file: string
  readonly remove: () => void
}

/** The API key of a customer of this catalog. */
export const API_KEY = `rk_${'k'.repeat(43)}`

/** Routes without outside sources, which have rate limits. */
const byThemselves: Opens = (_, sources) => sources.length === 0

type Opens = (path: string, sources: readonly unknown[]) => boolean

/**
 * The shipped catalog with a free twin of every served paid route, so that its handler can be reached unpaid, and with a
 * customer.
 */
export function writeOpenCatalog(opens: Opens = byThemselves): CatalogFile {
  const document = parseDocument(readFileSync(join(ROOT, 'catalog.yaml'), 'utf8'))
  const routes = document.get('routes')
  if (!isMap(routes)) throw new Error('the catalog has no routes')
  for (const { key, value } of routes.items) {
    const path = isScalar(key) ? String(key.value) : ''
    if (!path.startsWith('/paid/') || !isMap(value)) continue
    const sources = value.get('sources')
    if (value.get('planned') === true || !opens(path, isSeq(sources) ? sources.items : [])) continue
    const twin = new YAMLMap()
    twin.set('price', 'free')
    twin.set('handler', value.get('handler') ?? path.slice('/paid/'.length))
    twin.set('summary', 'The work without the payment')
    for (const name of ['parameters', 'example']) twin.set(name, value.get(name))
    routes.set(path.replace('/paid/', '/open/'), twin)
  }
  document.set('access', { api_keys: { file: './keys.txt' } })
  const folder = mkdtempSync(join(tmpdir(), 'ratecard-'))
  // Examples are named relative to the catalog.
  symlinkSync(join(ROOT, 'src'), join(folder, 'src'))
  writeFileSync(join(folder, 'keys.txt'), `${hash('sha256', API_KEY, 'hex')} customer\n`)
  const file = join(folder, 'catalog.yaml')
  writeFileSync(file, document.toString())
  return { file, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
