import type { Test } from 'tap'
import { join } from 'node:path'
import type { Catalog, Route } from '../../src/engine/catalog/catalog.ts'
import { compileText } from '../../src/engine/catalog/load-catalog.ts'
import type { Micros } from '../../src/engine/base/money.ts'
import { documentNames } from '../../src/engine/documents/all.ts'

/** A catalog file with its handlers in a folder of its own, for the built program. */
interface ShopFiles {
  readonly catalog: string
  readonly handlers: string
  readonly directory: string
}

const HEAD = `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] } }
documents: { index: /, health: /health, openapi: /openapi.json, llms: /llms.txt }
`

export function catalogText(routes: string, head: string = HEAD): string {
  return `${head}routes:\n${routes}`
}

export const HANDLERS = `import { setTimeout as delay } from 'node:timers/promises'
const answer = (body) => ({ source: [{ name: 'computed' }], body })
export const handlers = {
  greet: async ({ name }) => answer({ greeting: 'Hello ' + (name ?? 'you') }),
  bodiless: async () => ({ source: [{ name: 'computed' }], greeting: 'Hello' }),
  whoami: async (_, { signer }) => answer({ signer: signer ?? null }),
  slow: async ({ ms }) => { await delay(ms ?? 300); return answer({ slow: true }) },
}
`

export function writeShop(t: Test, routes: string, head?: string): ShopFiles {
  const directory = t.testdir({
    'catalog.yaml': catalogText(routes, head),
    handlers: { 'package.json': '{"type":"module"}', 'index.js': HANDLERS },
  })
  return { directory, catalog: join(directory, 'catalog.yaml'), handlers: join(directory, 'handlers') }
}

const BARE_HEAD = `catalog: 1
service: { name: Shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] } }
`

/** The catalog of these routes, written as below \`routes:\`. */
export function compileRoutes(routes: string): Catalog {
  const text = `${BARE_HEAD}routes:\n${routes}`
  return compileText('catalog.yaml', text, {
    handlers: undefined,
    documents: documentNames,
    read: () => undefined,
  }).catalog
}

/** The price of every call of an operation that has a fixed one. */
export function fixedPriceOf({ operation: { price } }: Pick<Route, 'operation'>): Micros {
  if (price === undefined || typeof price === 'object') throw new Error('no fixed price')
  return price
}

export function routeAt(catalog: Catalog, path: string): Route {
  const found = catalog.routes.find((route) => route.path === path)
  if (found === undefined) throw new Error(`no route ${path}`)
  return found
}
