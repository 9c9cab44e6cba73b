import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { documentNames, documents } from '../../../../src/engine/documents/all.ts'
import { pagedRoutes, renderOperation } from '../../../../src/engine/documents/operation-page.ts'
import { dollarsOf } from '../../../../src/engine/documents/operation-view.ts'
import { DOCUMENTS } from '../../../../src/engine/documents/registry.ts'
import { serverPages } from '../../../../src/engine/documents/mcp-server-page.ts'
import { listedServers } from '../../../../src/engine/documents/mcp-servers.ts'
import { renderServerJson, serverCards } from '../../../../src/engine/documents/server-card.ts'
import {
  at,
  compileHarbour,
  FACTS,
  items,
  members,
  render,
  renderJson,
  WITH_SERVER,
} from '../../../support/documents.ts'

const GOLDEN = new URL('../../../golden/documents/', import.meta.url)

/** A change of a document that is sent in one line shall be read line by line. */
function unfold(json: string): string {
  return `${JSON.stringify(JSON.parse(json), undefined, 2)}\n`
}

t.test('equals the pinned documents, which UPDATE_GOLDEN=1 rewrites', async (t) => {
  const harbour = compileHarbour()
  const [card] = serverCards(harbour, WITH_SERVER)
  const [page] = serverPages(harbour, WITH_SERVER)
  const [server] = listedServers(harbour, WITH_SERVER)
  const [route] = pagedRoutes(harbour)
  if (card === undefined || page === undefined || server === undefined || route === undefined)
    throw new Error('no server or route')
  const texts: (readonly [string, string])[] = [
    ...documents.map(({ name, render }) => [name, render(harbour, WITH_SERVER)] as const),
    ...documents.flatMap(({ name, page }) =>
      page === undefined ? [] : [[`${name}.html`, page(harbour, WITH_SERVER)] as const],
    ),
    ['operation.html', renderOperation(harbour, WITH_SERVER, route, 'page')],
    ['operation.md', renderOperation(harbour, WITH_SERVER, route, 'markdown')],
    ['server-card', card.text],
    ['server.html', page.text],
    ['server.json', renderServerJson(harbour, WITH_SERVER, server)],
  ]
  for (const [name, text] of texts) {
    const file = new URL(name, GOLDEN)
    const pinned = name === 'openapi' ? unfold(text) : text
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(file, pinned)
    t.equal(pinned, readFileSync(file, 'utf8'), name)
  }
})

t.test('renders the same bytes from the same catalog, so that ETags hold', async (t) => {
  for (const { name } of documents) t.equal(render(name), render(name), name)
})

t.test('ends every text in one newline, with all template tags filled in', async (t) => {
  for (const { name } of documents) {
    const text = render(name)
    // A proof is compared byte for byte.
    t.match(text, name === 'mcp-registry-auth' ? /[^\n]$/ : /[^\n]\n$/, name)
    t.notMatch(text, /undefined|\[object|\{\{|NaN/, name)
  }
})

t.test('lists every document in the registry', async (t) => {
  t.strictSame([...documentNames].sort(), Object.keys(DOCUMENTS).sort())
  t.strictSame(
    documents.map(({ type }) => type),
    documents.map(({ name }) => DOCUMENTS[name].type),
  )
})

t.test('announces only routes that are written', async (t) => {
  for (const { name } of documents) {
    t.notMatch(render(name), /paid\/weather|sample\/weather|paid_weather|Not written yet|pilot_book/, name)
    t.notMatch(render(name), /\/status/, name)
  }
})

t.test('states the same price in every document', async (t) => {
  const openapi = renderJson('openapi')
  const index = renderJson('index')
  const resources = renderJson('x402-resources')
  const llms = render('llms')
  const prices = {
    '/paid/tides/{port}': '0.005000',
    '/paid/ships/moves': '0.250000',
    '/paid/berths/{berth}': '1.000000',
  }
  for (const [path, price] of Object.entries(prices)) {
    const operation = at(openapi, 'paths', path, 'get')
    t.strictSame(at(operation, 'x-payment-info', 'price'), { mode: 'fixed', currency: 'USD', amount: price })
    t.match(at(operation, 'description'), `Price: ${dollarsOf(price)} per call.`)
    const row = items(at(index, 'routes')).find((route) => at(route, 'path') === path)
    t.strictSame(at(row, 'price'), { currency: 'USD', amount: price })
    const item = items(at(resources, 'items')).find((entry) => at(entry, 'path') === path)
    t.equal(at(item, 'priceUsd'), price)
    t.match(llms, `](https://harbour.example${path}): ${dollarsOf(price)}.`)
  }
})

t.test('tells a sandbox from the real service in every document', async (t) => {
  const facts = { ...FACTS, sandbox: true }
  t.equal(at(renderJson('openapi', undefined, facts), 'info', 'title'), 'Harbour data (sandbox)')
  t.equal(at(renderJson('index', undefined, facts), 'sandbox'), true)
  t.equal(at(renderJson('index'), 'sandbox'), false)
  t.match(render('llms', undefined, facts), /^Sandbox: .*play money/m)
  for (const name of ['openapi', 'llms']) t.notMatch(render(name), /sandbox/i, name)
})

t.test('builds every absolute address from the base URL', async (t) => {
  const facts = { ...FACTS, baseUrl: 'http://localhost:4021', paymentRequired: () => undefined }
  for (const name of ['openapi', 'index', 'llms']) {
    const addresses = render(name, undefined, facts).match(/https?:\/\/[^\s"')]+/g) ?? []
    const foreign = addresses.filter(
      (url) => !url.startsWith('http://localhost:4021') && url !== 'https://tides.example',
    )
    t.strictSame(foreign, [], name)
  }
})

t.test('renders a catalog with a name and one free route only', async (t) => {
  const bare = compileHarbour(
    "catalog: 1\nservice: { name: Bare, version: '1' }\nroutes:\n  /clock: { price: free, handler: clock, summary: Tells the time }\n",
  )
  const facts = { ...FACTS, protocols: [], paymentRequired: () => undefined }
  for (const { name } of documents) t.doesNotThrow(() => render(name, bare, facts), name)
  t.strictSame(items(at(renderJson('x402-resources', bare, facts), 'items')), [])
  t.strictSame(
    members(at(renderJson('openapi', bare, facts), 'paths')).map(([path]) => path),
    [
      '/clock',
      '/',
      '/health',
      '/openapi.json',
      '/docs',
      '/docs.md',
      '/llms-full.txt',
      '/docs/errors',
      '/status',
      '/status.json',
      '/stats.json',
      '/privacy',
      '/llms.txt',
      '/.well-known/agent-card.json',
      '/.well-known/agent.json',
      '/.well-known/x402',
      '/.well-known/x402.json',
      '/x402-resources',
      '/.well-known/x402-resources',
      '/categories.json',
      '/.well-known/ard.json',
      '/.well-known/ai-catalog.json',
      '/.well-known/api-catalog',
      '/robots.txt',
      '/sitemap.xml',
    ],
    'documents stand at their usual paths unless the catalog says otherwise',
  )
})
