import t from 'tap'
import {
  checkRevision,
  createRevision,
  tellDisagreement,
  toMicros,
  type Catalog,
  type Disagreement,
  type Protocol,
} from '../../../src/engine/index.ts'
import type { Revision } from '../../../src/engine/http/revision.ts'
import { compileHarbour } from '../../support/documents.ts'
import { BASE_URL, quietX402, shippedCatalog } from '../../support/x402.ts'

const catalog = shippedCatalog()
const NETWORKS = ['eip155:8453', 'eip155:137', 'eip155:42161', 'eip155:43114']
const unasked = () => Promise.reject(new Error('no handler is run here'))
const handlers = Object.fromEntries(catalog.routes.map(({ operation }) => [operation.handler, unasked]))

function revise(
  catalog: Catalog,
  secret: (name: string) => string | undefined = (name) => name,
  protocols: readonly Protocol[] = [quietX402(catalog)],
): Revision {
  return createRevision({
    catalog,
    handlers,
    protocols,
    baseUrl: BASE_URL,
    mcpUrls: {},
    sandbox: false,
    proxy: { fetcher: fetch, secret },
    middleware: () => async () => undefined,
  })
}

const revision = revise(catalog)

/** The same service with one document that says something else. */
function drift(path: string, from: string | RegExp, to: string): Disagreement[] {
  const page = revision.pages.get(path)
  if (page === undefined) throw new Error(`nothing is served at ${path}`)
  const body = page.body.toString().replace(from, to)
  if (body === page.body.toString()) throw new Error(`${path} says no ${from}`)
  return checkRevision({ ...revision, pages: new Map([...revision.pages, [path, { ...page, body }]]) })
}

t.test('an operator is warned of nothing while everything says the same', async (t) => {
  t.strictSame(checkRevision(revision).map(tellDisagreement), [])
  t.strictSame(checkRevision(revise(catalog, () => undefined)).map(tellDisagreement), [], 'no credentials')
  t.strictSame(checkRevision(revise(catalog, undefined, [])).map(tellDisagreement), [], 'no x402')
  t.strictSame(checkRevision(revise(compileHarbour())).map(tellDisagreement), [], 'another catalog')
})

/** Every document with every field it speaks of, and a change of one route in it. */
const DRIFTS: readonly (readonly [document: string, from: string | RegExp, to: string, field: string])[] = [
  ['/openapi.json', '"amount":"0.001000"', '"amount":"0.002000"', 'price'],
  ['/openapi.json', '"name":"nonce"', '"name":"once"', 'parameters'],
  ['/openapi.json', '"x-free-preview":"/sample/ping"', '"x-free-preview":"/sample/pong"', 'sample'],
  ['/openapi.json', '"/paid/ping":', '"/paid/pong":', 'listed'],
  ['/', '"amount": "0.001000"', '"amount": "0.002000"', 'price'],
  ['/', '"nonce": "string, optional', '"nonce": "string, required', 'parameters'],
  ['/', '"sample": "/sample/ping"', '"sample": "/sample/pong"', 'sample'],
  ['/', '"available": true', '"available": false', 'available'],
  ['/categories.json', '"amount": "0.001000"', '"amount": "0.002000"', 'price'],
  ['/categories.json', '"path": "/paid/ping"', '"path": "/paid/pong"', 'listed'],
  ['/.well-known/x402', '"amount": "0.001000"', '"amount": "0.002000"', 'price'],
  ['/.well-known/x402', '"sample": "/sample/ping"', '"sample": "/sample/pong"', 'sample'],
  ['/x402-resources', '"priceUsd": "0.001000"', '"priceUsd": "0.002000"', 'price'],
  ['/x402-resources', '"amount": "1000"', '"amount": "2000"', 'eip155:8453'],
  ['/x402-resources', '"path": "/paid/ping"', '"path": "/paid/pong"', 'listed'],
  ['/llms.txt', '$0.001000', '$0.002000', 'price'],
  ['/llms.txt', ' Takes nonce.', ' Takes nonce*.', 'parameters'],
  ['/llms.txt', /^- \[ping\].*\n/m, '', 'listed'],
  ['/llms.txt', / Preview\.$/m, '', 'sample'],
  ['/llms-full.txt', '($0.001000)', '($0.002000)', 'price'],
  ['/llms-full.txt', 'Free preview: /sample/ping', 'Free preview: /sample/pong', 'sample'],
  ['/llms-full.txt', '### GET /paid/ping', '### GET /paid/pong', 'listed'],
  ['/docs.md', '0.001000 USD', '0.002000 USD', 'price'],
  ['/docs.md', '| `nonce` | string | no |', '| `nonce` | string | yes |', 'parameters'],
  ['/docs.md', 'Free preview `/sample/ping`', 'Free preview `/sample/pong`', 'sample'],
  ['/docs', '<span class="price">0.001000 USD', '<span class="price">0.002000 USD', 'price'],
  ['/docs', '<code>GET /sample/ping', '<code>GET /sample/pong', 'sample'],
  ['/docs', '>GET /paid/ping</a>', '>GET /paid/pong</a>', 'listed'],
]

t.test('a buyer would pay by a document that has drifted, and nobody would know', async (t) => {
  for (const [document, from, to, field] of DRIFTS) {
    const found = drift(document, from, to)
    t.ok(
      found.some((each) => each.field === field && [each.document, each.reference].includes(document)),
      `${field} in ${document}: ${found.map(tellDisagreement).join('; ')}`,
    )
    t.ok(
      found.every(({ path }) => /^\/(?:paid|sample)\/p[io]ng$/.test(path)),
      `${field} in ${document}`,
    )
  }
})

t.test('a 402 that asks for another price than the documents name is told, network by network', async (t) => {
  const price = toMicros(2000n)
  const routes = catalog.routes.map((route) =>
    route.path === '/paid/ping' ? { ...route, operation: { ...route.operation, price } } : route,
  )
  const { table } = revise({ ...catalog, routes })
  const found = checkRevision({ ...revision, table }).filter(({ field }) => field === 'price')
  t.strictSame(
    found.map(({ document, says }) => [document, says]),
    ['402', ...NETWORKS.map((id) => `402 by x402 on ${id}`)].map((document) => [document, '0.002000']),
  )
})

t.test('the line an operator reads says what is wrong, and where', async (t) => {
  const [price] = drift('/llms.txt', '$0.001000', '$0.002000')
  const [gone] = drift('/llms.txt', /^- \[ping\].*\n/m, '')
  t.equal(
    price && tellDisagreement(price),
    '/paid/ping: price is 0.002000 in /llms.txt, and 0.001000 in catalog',
  )
  t.equal(gone && tellDisagreement(gone), '/paid/ping: is missing in /llms.txt, and stands in catalog')
})
