import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadCatalog } from '../../dist/engine/catalog/load-catalog.js'
import { documentNames } from '../../dist/engine/documents/all.js'
import { generateCatalog } from './generated-catalog.mjs'

/** The catalogs that are measured, each with one request for every paid route of it. */
export function prepareCatalogs(folder) {
  const write = (name, count) => {
    const file = join(folder, `${name}.yaml`)
    writeFileSync(file, generateCatalog(count))
    return file
  }
  return {
    shipped: prepare(fileURLToPath(new URL('../../catalog.yaml', import.meta.url))),
    few: prepare(write('few', 24)),
    many: prepare(write('many', 5000)),
  }
}

function prepare(file) {
  const begun = performance.now()
  const { catalog } = loadCatalog(file, { handlers: undefined, documents: documentNames })
  const compileMs = performance.now() - begun
  const paid = catalog.routes.filter(({ kind }) => kind === 'paid')
  return { file, compileMs, templates: paid.map(({ path }) => path), targets: paid.map(targetOf) }
}

/** A request that would be served once it is paid for: what has an example is sent. */
function targetOf({ path, parameters }) {
  const valueOf = ({ name, example }) => encodeURIComponent(String(example ?? name))
  const filled = parameters.reduce((text, each) => text.replace(`{${each.name}}`, valueOf(each)), path)
  const asked = parameters.filter(
    (each) => each.in === 'query' && (each.required || each.example !== undefined),
  )
  const query = asked.map((each) => `${each.name}=${valueOf(each)}`)
  return query.length === 0 ? filled : `${filled}?${query.join('&')}`
}
