import t from 'tap'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isJsonObject } from '../../../src/engine/base/json.ts'
import { at } from '../../support/documents.ts'
import { serveUnpaid, startServer } from '../../support/server.ts'
import { catalogText, writeShop } from '../../support/catalogs.ts'

const shop = writeShop(t, greetFor('0.010'))
const server = await startServer({
  args: ['--sandbox', '--catalog', shop.catalog, '--handlers', shop.handlers],
})
t.teardown(() => server.stop())
const { url } = server

function greetFor(price: string, more = ''): string {
  return `  /paid/greet: { price: ${price}, summary: Greets }
  /sample_price: { price: free, handler: greet, summary: Greets for nothing }
${more}`
}

/** How often the server has answered a reload. */
function reloads(): number {
  return [...server.output().matchAll(/revision \S+ → |still serving revision/g)].length
}

/** Writes the catalog and waits until the server has said what it makes of it; returns that. */
async function reload(text: string): Promise<string> {
  const before = server.output().length
  const count = reloads()
  writeFileSync(shop.catalog, text)
  server.process.kill('SIGHUP')
  while (reloads() === count) await new Promise((resolve) => setTimeout(resolve, 5))
  return server.output().slice(before)
}

async function offered(path = '/paid/greet'): Promise<{ status: number; prices: Set<string> }> {
  const response = await fetch(url + path)
  const body: unknown = await response.json()
  const header: unknown = JSON.parse(
    Buffer.from(response.headers.get('payment-required') ?? 'e30=', 'base64').toString('utf8'),
  )
  if (!isJsonObject(body) || !isJsonObject(header)) throw new Error('no offer')
  const micros = (value: unknown): string => (Number(value) / 1e6).toFixed(6)
  return {
    status: response.status,
    prices: new Set([
      micros(at(header, 'accepts', 0, 'amount')),
      micros(at(body, 'accepts', 0, 'maxAmountRequired')),
      JSON.stringify(at(body, 'price', 'amount')).slice(1, -1),
    ]),
  }
}

async function documentPrice(): Promise<unknown> {
  const index: unknown = await (await fetch(`${url}/`)).json()
  if (!isJsonObject(index) || !Array.isArray(index['routes'])) throw new Error('no index')
  return at(
    index['routes'].find((route) => at(route, 'path') === '/paid/greet'),
    'price',
    'amount',
  )
}

t.test('asks for a new price at once, in offers and documents', async (t) => {
  t.strictSame([...(await offered()).prices], ['0.010000'])
  const said = await reload(catalogText(greetFor('0.020')))
  t.match(said, /revision \S+ → \S+ \(new handler code needs a restart\)/)
  t.strictSame([...(await offered()).prices], ['0.020000'])
  t.equal(await documentPrice(), '0.020000')
})

t.test('keeps serving when a catalog has errors, and reports every one', async (t) => {
  const broken = {
    'two mistakes': [
      catalogText('  /paid/greet: { price: 0.0000001, sumary: Greets }\n'),
      [/price/, /sumary/],
    ],
    'no YAML': ['catalog: [1', [/yaml/i]],
    'an empty file': ['', [/catalog\.yaml/]],
    'a handler that a served route has lost': [
      catalogText(greetFor('0.030').replace('price: 0.030', 'price: 0.030, handler: gret')),
      [/handler_unknown .*gret/],
    ],
  } as const
  for (const [name, [text, words]] of Object.entries(broken)) {
    const said = await reload(text)
    t.match(said, /catalog\.yaml: still serving revision \S+/, name)
    for (const word of words) t.match(said, word, name)
    t.notMatch(said, /node_modules|\bat .*\.js:\d/)
    t.strictSame([...(await offered()).prices], ['0.020000'], name)
  }
  rmSync(shop.catalog)
  const count = reloads()
  server.process.kill('SIGHUP')
  while (reloads() === count) await new Promise((resolve) => setTimeout(resolve, 5))
  await server.said(/cannot be read/)
  t.strictSame([...(await offered()).prices], ['0.020000'], 'no file at all')
})

t.test('sells an API through a new proxy route after a reload', async (t) => {
  const upstream = createServer((_, response) =>
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"stock":3}'),
  ).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  t.teardown(() => {
    upstream.closeAllConnections()
    upstream.close()
  })
  const { port } = upstream.address() as AddressInfo
  t.equal((await fetch(`${url}/stock/7`)).status, 404)
  await reload(
    catalogText(
      greetFor(
        '0.020',
        `  /stock/{sku}: { price: free, upstream: 'http://127.0.0.1:${port}/s/{sku}', summary: Stock, parameters: { sku: { type: integer, example: 7 } } }
  /paid/stock/{sku}: { price: 0.5, upstream: 'http://127.0.0.1:${port}/s/{sku}', summary: Stock, parameters: { sku: { type: integer, example: 7 } } }
`,
      ),
    ),
  )
  const free = await fetch(`${url}/stock/7`)
  t.equal(free.status, 200)
  t.equal(await free.text(), '{"stock":3}')
  t.strictSame([...(await offered('/paid/stock/7')).prices], ['0.500000'])
  for (const path of ['/', '/openapi.json', '/llms.txt', '/paid/stock/7']) {
    t.notMatch(await (await fetch(url + path)).text(), `:${port}`, `${path} keeps the upstream to itself`)
  }
})

t.test('marks a new route as planned until its handler is loaded, and serves the other edits', async (t) => {
  const unwritten = '  /paid/unwritten: { price: 1, summary: X }\n'
  const said = await reload(catalogText(greetFor('0.020', unwritten)))
  t.match(said, /warning handler_unknown there is no handler "unwritten" yet: planned until it is loaded/)
  t.match(await (await fetch(`${url}/paid/unwritten`)).text(), /would_fail.*not_implemented/)
  t.notMatch(await (await fetch(`${url}/openapi.json`)).text(), 'unwritten')
  await reload(catalogText(greetFor('0.021', unwritten)))
  t.strictSame([...(await offered()).prices], ['0.021000'])
})

t.test('answers requests while a large catalog is read, checked and rendered', async (t) => {
  const many = Array.from(
    { length: 1_500 },
    (_, n) =>
      `  /paid/many/r${n}: { price: 0.002, upstream: 'http://127.0.0.1:9/${n}', summary: Report ${n} }\n`,
  )
  const reloaded = reload(catalogText(greetFor('0.022', many.join(''))))
  let answered = 0
  let done = false
  void reloaded.then(() => (done = true))
  while (!done) {
    const { prices } = await offered()
    if (prices.has('0.021000')) answered += 1
  }
  t.match(await reloaded, /revision \S+ → /)
  t.ok(answered > 20, `${answered} answers, one after the other, by the old revision`)
  t.strictSame([...(await offered('/paid/many/r1499')).prices], ['0.002000'])
  t.match(await (await fetch(`${url}/openapi.json`)).text(), '/paid/many/r1499')
})

t.test('answers 404 on a path that was removed', async (t) => {
  await reload(catalogText(greetFor('0.020')))
  t.equal((await fetch(`${url}/stock/7`)).status, 404)
})

t.test('answers every request during a reload by one revision', async (t) => {
  const seen = new Set<string>()
  const mixed: unknown[] = []
  let going = true
  const callers = Array.from({ length: 4 }, async () => {
    while (going) {
      const { status, prices } = await offered()
      const [price] = prices
      if (status !== 402 || prices.size !== 1 || price === undefined)
        mixed.push({ status, prices: [...prices] })
      else seen.add(price)
    }
  })
  for (let round = 1; round <= 5; round += 1) await reload(catalogText(greetFor(`0.${100 + round}`)))
  going = false
  await Promise.all(callers)
  t.strictSame(mixed, [])
  t.ok(seen.size > 1, 'requests met several revisions')
  t.strictSame([...(await offered()).prices], ['0.105000'])
})

t.test('keeps the current payee until a restart', async (t) => {
  const real = await serveUnpaid(t, shop.catalog, ['--handlers', shop.handlers])
  // PAY_TO overrides the catalog, so this one changes nothing.
  const head = (payTo: string, networks = 'base'): string =>
    `catalog: 1\nservice: { name: Small shop, version: '1.0.0', description: Sells things }\npayments: { currency: USD, pay_to: '${payTo}', x402: { networks: [${networks}] } }\n`
  writeFileSync(shop.catalog, catalogText(greetFor('1'), head(`0x${'2'.repeat(40)}`)))
  real.process.kill('SIGHUP')
  await real.said(/revision \S+ → /)
  t.match(await (await fetch(`${real.url}/paid/greet`)).text(), `0x${'1'.repeat(40)}`)
  // No RPC endpoint for these: nobody could pay any more.
  writeFileSync(shop.catalog, catalogText(greetFor('2'), head(`0x${'2'.repeat(40)}`, 'polygon')))
  real.process.kill('SIGHUP')
  await real.said(/RPC_URL_137 .*\n[^]*still serving revision/)
  t.equal((await fetch(`${real.url}/paid/greet`)).status, 402)
})

t.test('asks for a restart when PAY_TO is unset and the catalog names another payee', async (t) => {
  const head = (digit: string): string =>
    `catalog: 1\nservice: { name: Small shop, version: '1.0.0', description: Sells things }\npayments: { currency: USD, pay_to: '0x${digit.repeat(40)}', x402: { networks: [base] } }\n`
  writeFileSync(shop.catalog, catalogText(greetFor('1'), head('1')))
  const real = await startServer({
    args: ['--catalog', shop.catalog, '--handlers', shop.handlers],
    env: { HOST: '127.0.0.1', SETTLER_PRIVATE_KEY: 'b'.repeat(64), RPC_URL_8453: 'http://127.0.0.1:1' },
  })
  t.teardown(() => real.stop())
  writeFileSync(shop.catalog, catalogText(greetFor('1'), head('2')))
  real.process.kill('SIGHUP')
  await real.said(/pay_to has changed[^]*restart[^]*still serving revision/)
  t.match(await (await fetch(`${real.url}/paid/greet`)).text(), `0x${'1'.repeat(40)}`)
})

t.test('the server stays healthy through all of this', async (t) => {
  t.notMatch(server.output(), /unexpected|Unhandled|Warning/)
  t.equal(server.process.exitCode, null)
})
