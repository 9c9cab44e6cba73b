import type { Catalog, Route } from '../../src/engine/catalog/catalog.ts'
import { compileText } from '../../src/engine/catalog/load.ts'
import { documentNames } from '../../src/engine/documents/all.ts'

const HEAD = `catalog: 1
service: { name: Shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] } }
`

/** The catalog of these routes, written as below \`routes:\`. */
export function compileRoutes(routes: string): Catalog {
  const text = `${HEAD}routes:\n${routes}`
  return compileText('catalog.yaml', text, {
    handlers: undefined,
    documents: documentNames,
    read: () => undefined,
  }).catalog
}

export function routeAt(catalog: Catalog, path: string): Route {
  const found = catalog.routes.find((route) => route.path === path)
  if (found === undefined) throw new Error(`no route ${path}`)
  return found
}
