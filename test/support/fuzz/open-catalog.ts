import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isMap, isScalar, parseDocument, YAMLMap } from 'yaml'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

export interface CatalogFile {
  readonly file: string
  readonly remove: () => void
}

/**
 * The shipped catalog, in which every paid route that is served has a free twin: its handler can be reached unpaid. Not
 * those that ask outside sources, which let only so many requests a second pass.
 */
export function writeOpenCatalog(): CatalogFile {
  const document = parseDocument(readFileSync(join(ROOT, 'catalog.yaml'), 'utf8'))
  const routes = document.get('routes')
  if (!isMap(routes)) throw new Error('the catalog has no routes')
  for (const { key, value } of routes.items) {
    const path = isScalar(key) ? String(key.value) : ''
    if (!path.startsWith('/paid/') || !isMap(value)) continue
    if (value.get('planned') === true || value.has('sources')) continue
    const twin = new YAMLMap()
    twin.set('price', 'free')
    twin.set('handler', value.get('handler') ?? path.slice('/paid/'.length))
    twin.set('summary', 'The work without the payment')
    for (const name of ['parameters', 'example']) twin.set(name, value.get(name))
    routes.set(path.replace('/paid/', '/open/'), twin)
  }
  const folder = mkdtempSync(join(tmpdir(), 'ratecard-'))
  // Examples are named from the catalog's own place.
  symlinkSync(join(ROOT, 'src'), join(folder, 'src'))
  const file = join(folder, 'catalog.yaml')
  writeFileSync(file, document.toString())
  return { file, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
