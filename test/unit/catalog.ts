import { fileURLToPath } from 'node:url'
import t from 'tap'
import { brandFiles } from '../../src/engine/documents/page-frame.ts'
import { spellPrice } from '../../src/engine/catalog/price/text.ts'
import { USUAL_CHANNELS, type Parameter } from '../../src/engine/catalog/catalog.ts'
import { loadCatalog } from '../../src/engine/catalog/load-catalog.ts'
import { documentNames } from '../../src/engine/documents/all.ts'
import {
  CACHED_MINUTES,
  DOCUMENTS,
  FILES,
  LISTED_AT_MOST,
  PAID,
  SAMPLES,
  SKILLS,
  TOOLS,
  VERSIONS,
  type SpecifiedParameter,
} from '../fixtures/specification.ts'

const file = fileURLToPath(new URL('../../catalog.yaml', import.meta.url))
// Only which documents exist is left to the engine; which handlers do, the composition root knows.
const { catalog, warnings } = loadCatalog(file, { handlers: undefined, documents: documentNames })
const { routes, operations } = catalog
const paid = routes.filter(({ kind }) => kind === 'paid')
const samples = routes.filter(({ kind }) => kind === 'sample')

t.equal(warnings.length, 0, 'the shipped catalog loads without a warning')

t.test('sells every paid route of the specification with its path, parameters and price', async (t) => {
  const sold = paid.map(({ path, operation, parameters }) => ({
    path,
    price: operation.price === undefined ? 'free' : spellPrice(operation.price),
    parameters: parameters.map(facts),
  }))
  const specified = PAID.map((route) => ({ ...route, price: sixDecimals(route.price) }))
  t.equal(specified.length, 24)
  t.strictSame(byPath(sold), byPath(specified))
})

t.test(
  'serves every free preview with its own parameters and links the paid route of its name',
  async (t) => {
    const served = samples.map(({ path, parameters }) => ({ path, parameters: parameters.map(facts) }))
    t.equal(SAMPLES.length, 22)
    t.strictSame(byPath(served), byPath(SAMPLES))
    for (const { path, full } of samples) t.equal(full, path.replace('/sample/', '/paid/'))
    const unseen = paid.filter(({ sample }) => sample === undefined).map(({ path }) => path)
    t.strictSame(unseen, ['/paid/gamestore/app/{appid}', '/paid/util/json'], 'these two have none')
  },
)

t.test('lists only the routes and prices of the specification', async (t) => {
  t.equal(routes.length, PAID.length + SAMPLES.length)
})

/** What a wallet stores, it can delete: no specification asks for it, the law does. */
const OWN_TOOLS = [{ tool: 'memory.memory_delete', price: undefined }]

t.test('offers every tool on its server at its price', async (t) => {
  const offered = operations
    .filter(({ tool }) => tool !== undefined && tool.server !== 'game')
    .map(({ tool, price }) => ({
      tool: `${tool?.server}.${tool?.name}`,
      price: price === undefined ? undefined : spellPrice(price),
    }))
  const specified = TOOLS.map(({ tool, price }) => ({
    tool,
    price: price === undefined ? undefined : sixDecimals(price),
  }))
  t.strictSame(new Set(offered), new Set([...specified, ...OWN_TOOLS]))
  t.equal(offered.length, specified.length + OWN_TOOLS.length)
})

t.test('asks for a wallet exactly on the routes that read what a wallet has stored', async (t) => {
  const needy = operations.filter(({ tool }) => tool?.requires === 'payer').map(({ id }) => id)
  t.strictSame(needy, ['memory_write', 'memory_search', 'memory_export'])
})

t.test('the game server offers every game route under its own name', async (t) => {
  const names = operations
    .filter(({ tool }) => tool?.server === 'game')
    .map(({ id, tool }) => [id, tool?.name])
  t.strictSame(Object.fromEntries(names), {
    'gamestore/top-sellers': 'top_sellers',
    'gamestore/deals': 'deals',
    'gamestore/app': 'app_intel',
    'streaming/hype': 'streaming_hype',
    'game/metadata': 'game_metadata',
    'bundle/market-snapshot': 'market_snapshot',
    'bundle/app-dossier': 'app_dossier',
  })
})

t.test('the agent card lists exactly the eight skills, each with its endpoint or tool', async (t) => {
  const found = operations
    .filter(({ skill }) => skill !== undefined)
    .map((operation) => [
      operation.skill,
      paid.find((route) => route.operation === operation)?.path ?? operation.tool?.name,
    ])
  t.strictSame(Object.fromEntries(found), SKILLS)
  t.equal(found.length, 8)
})

t.test('every document and file has exactly its paths', async (t) => {
  const places = Object.values(catalog.documents).flatMap(({ paths }) => paths)
  const beyond = [
    '/openapi.json',
    '/docs.md',
    '/docs/errors',
    '/llms-full.txt',
    '/.well-known/ard.json',
    '/.well-known/ai-catalog.json',
    '/.well-known/api-catalog',
    '/.well-known/security.txt',
  ]
  t.strictSame([...places].sort(), [...DOCUMENTS, ...beyond].sort())
  t.strictSame(
    brandFiles.map(({ path }) => path).sort(),
    [...FILES, '/answer.js', '/card.png', '/page.js', '/pay.js', '/pay-solana.js'].sort(),
    'served with the pages',
  )
})

t.test(
  'caches answers as long as the specification says; computed answers and names stay uncached',
  async (t) => {
    const minutes = paid.map(({ path, operation }) => [path, (operation.cache?.ttl ?? 0) / 60_000])
    t.match(Object.fromEntries(minutes), CACHED_MINUTES)
    const unkept = ['/paid/util/email-verify', '/paid/util/finid', '/paid/util/guard', '/paid/util/sanctions']
    for (const path of unkept) t.equal(Object.fromEntries(minutes)[path], 0, path)
  },
)

t.test('lists accept as many items as the specification allows', async (t) => {
  const lists = paid.flatMap(({ parameters }) =>
    parameters.flatMap(({ name, list }) => (list === undefined ? [] : [[name, list.maxItems]])),
  )
  t.strictSame(Object.fromEntries(lists), LISTED_AT_MOST)
  const text = operations.find(({ id }) => id === 'summarize')?.parameters.find(({ name }) => name === 'text')
  t.equal(text?.maxLength, 24_000)
})

t.test('buyers can pay on Base first, on three further networks and by the second protocol', async (t) => {
  t.strictSame(catalog.payments.x402, {
    networks: ['eip155:8453', 'eip155:137', 'eip155:42161', 'eip155:43114'],
    schemes: ['exact'],
    // A hundred calls of its dearest route would be more than a channel may owe.
    channels: { ...USUAL_CHANNELS, leastDeposit: USUAL_CHANNELS.mostUnclaimed },
    timeout: 60_000,
    v1: true,
    limits: {},
    testnet: false,
  })
  t.match(catalog.payments.mpp, { intent: 'charge', chain: 4217 })
  t.equal(catalog.payments.payTo, undefined, 'no money goes to an address that the operator has not set')
})

t.test('states the version of the interface and of the agent card', async (t) => {
  t.strictSame({ service: catalog.service.version, card: catalog.service.cardVersion }, VERSIONS)
})

t.test('every route has a short summary, says when to use it and explains each parameter', async (t) => {
  for (const { id, summary, useWhen, description, category, parameters } of operations) {
    t.ok(summary.length <= 90, `${id} has a summary of at most 90 characters`)
    t.ok(useWhen?.startsWith('You '), `${id} says when to use it`)
    t.ok(description !== undefined && description.length <= 300, `${id} has a description`)
    t.ok(category !== undefined, `${id} stands in a category`)
    for (const each of parameters) t.ok(each.description, `${id} explains ${each.name}`)
  }
})

t.test('guidance names only routes that are sold and leaves prices to the catalog', async (t) => {
  const guidance = catalog.service.guidance ?? ''
  const named = [...guidance.matchAll(/\/paid\/[\w/{}-]*[\w}]/g)].map(([path]) => path)
  t.strictSame([...new Set(named)].sort(), paid.map(({ path }) => path).sort(), 'all of them')
  t.notMatch(guidance, /\d\.\d|\$|USD/)
})

function facts({ name, type, in: place, required, default: value }: Parameter): SpecifiedParameter {
  if (type === 'boolean' || type === 'object' || place === 'body' || typeof value === 'boolean')
    throw new Error(`${name}: no parameter is a boolean, an object or in a body`)
  return { name, type, in: place, required, default: value }
}

function sixDecimals(price: string): string {
  const [whole = '', decimals = ''] = price.split('.')
  return `${whole}.${decimals.padEnd(6, '0')}`
}

function byPath<Route extends { readonly path: string }>(routes: readonly Route[]): Record<string, Route> {
  return Object.fromEntries(routes.map((route) => [route.path, route]))
}
