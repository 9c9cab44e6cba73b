import t from 'tap'
import { catalogStatements } from '../../../../src/cli/doctor/service-statements.ts'
import {
  compareStatements,
  type Mismatch,
  type DocumentStatements,
} from '../../../../src/cli/doctor/route-statements.ts'
import type { Catalog } from '../../../../src/engine/catalog/catalog.ts'
import { createRevision } from '../../../../src/engine/http/revision.ts'
import { READERS, skillStatements } from '../../../support/document-statements.ts'
import { compileHarbour } from '../../../support/documents.ts'
import { BASE_URL, quietX402, shippedCatalog } from '../../../support/shipped-catalog.ts'

/** The documents of a catalog as they are served, by path. */
function pagesOf(catalog: Catalog): ReadonlyMap<string, string> {
  const unasked = () => Promise.reject(new Error('no handler is run here'))
  const { pages } = createRevision({
    catalog,
    handlers: Object.fromEntries(catalog.operations.map(({ handler }) => [handler, unasked])),
    protocols: [quietX402(catalog)],
    baseUrl: BASE_URL,
    mcpUrls: {},
    sandbox: false,
    proxy: { fetcher: fetch, secret: (name) => name, report: () => undefined },
  })
  return new Map([...pages].map(([path, { body }]) => [path, body.toString()]))
}

function mismatches(catalog: Catalog, pages: ReadonlyMap<string, string>): Mismatch[] {
  const said = [...READERS].flatMap(([name, read]): DocumentStatements[] => {
    const [path = ''] = catalog.documents[name]?.paths ?? []
    const text = pages.get(path)
    const statements = text === undefined ? undefined : read(path, text)
    return statements === undefined ? [] : [statements]
  })
  return compareStatements([catalogStatements(catalog), skillStatements(catalog), ...said])
}

const shipped = shippedCatalog()
const pages = pagesOf(shipped)

t.test('finds the same routes and prices in every document of a catalog', async (t) => {
  t.strictSame(mismatches(shipped, pages), [])
  const harbour = compileHarbour()
  t.strictSame(mismatches(harbour, pagesOf(harbour)), [])
})

/** A change of one route in each document that has the field. */
const CHANGES: readonly (readonly [document: string, from: string | RegExp, to: string, field: string])[] = [
  ['/openapi.json', '"amount":"0.001000"', '"amount":"0.002000"', 'price'],
  ['/openapi.json', '"name":"nonce"', '"name":"once"', 'parameters'],
  ['/openapi.json', '"x-free-preview":"/sample/ping"', '"x-free-preview":"/sample/pong"', 'sample'],
  ['/openapi.json', '"/paid/ping":', '"/paid/pong":', 'listed'],
  ['/', '"amount": "0.001000"', '"amount": "0.002000"', 'price'],
  ['/', '"sample": "/sample/ping"', '"sample": "/sample/pong"', 'sample'],
  ['/', '"available": true', '"available": false', 'available'],
  ['/categories.json', '"amount": "0.001000"', '"amount": "0.002000"', 'price'],
  ['/categories.json', '"path": "/paid/ping"', '"path": "/paid/pong"', 'listed'],
  ['/.well-known/x402', '"amount": "0.001000"', '"amount": "0.002000"', 'price'],
  ['/.well-known/x402', '"sample": "/sample/ping"', '"sample": "/sample/pong"', 'sample'],
  ['/x402-resources', '"priceUsd": "0.001000"', '"priceUsd": "0.002000"', 'price'],
  ['/x402-resources', '"path": "/paid/ping"', '"path": "/paid/pong"', 'listed'],
  ['/llms.txt', '$0.001.', '$0.002.', 'price'],
  ['/llms.txt', /^- \[Ping\].*\n/m, '', 'listed'],
]

t.test('reports a document that names another price, route or preview, with the field', async (t) => {
  for (const [document, from, to, field] of CHANGES) {
    const text = pages.get(document) ?? ''
    t.not(text.replace(from, to), text, `${document} has ${from}`)
    const found = mismatches(shipped, new Map([...pages, [document, text.replace(from, to)]]))
    t.ok(
      found.some((each) => each.field === field && [each.document, each.reference].includes(document)),
      `${field} in ${document}: ${JSON.stringify(found)}`,
    )
    t.ok(
      found.every(({ path }) => /^\/(?:paid|sample)\/p[io]ng$/.test(path)),
      `only ping in ${document}`,
    )
  }
})
