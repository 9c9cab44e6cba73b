import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { runLine } from '../support/run-command.ts'
import { at, members } from '../support/documents.ts'
import { BASE_URL, openProductionService, type ShippedService } from './support/shipped-service.ts'

const CATALOG = fileURLToPath(new URL('../../catalog.yaml', import.meta.url))
/** What an operator adds to sell one thing more. */
const ADDED = `
  /paid/acme/price/{sku}:
    price: 0.017
    summary: Tells what an article costs at Acme
    use_when: You know the article number.
    category: utilities
    skill: acme-price
    handler: proxy
    upstream: http://127.0.0.1:9/prices/{sku}
    parameters:
      sku: { type: string, maxLength: 20, example: A-100 }
      currency: { type: string, default: USD, enum: [USD, EUR] }
`

/** Documents that speak of routes, whatever their form. */
const SPEAKING = [
  '/',
  '/openapi.json',
  '/categories.json',
  '/.well-known/x402',
  '/x402-resources',
  '/.well-known/agent-card.json',
  '/llms.txt',
  '/llms-full.txt',
  '/docs',
  '/docs.md',
]

async function openWith(added: string): Promise<ShippedService> {
  const folder = t.testdir()
  symlinkSync(join(dirname(CATALOG), 'src'), join(folder, 'src'))
  const file = join(folder, 'catalog.yaml')
  writeFileSync(file, readFileSync(CATALOG, 'utf8').replace('\nroutes:\n', `\nroutes:${added}`))
  return openProductionService(t, { args: ['--catalog', file] })
}

const service = await openProductionService(t)

t.test('announces a new route in every document', async (t) => {
  const grown = await openWith(ADDED)
  for (const path of SPEAKING) {
    t.notMatch(await service.read(path), 'acme', path)
    const text = await grown.read(path)
    t.match(text, '/paid/acme/price/', path)
    t.match(text, /\b0\.017(?:000)?\b/, path)
  }
  const answer = await grown.ask('/paid/acme/price/A-100')
  t.equal(answer.status, 402)
  t.match(await answer.text(), '"maxAmountRequired":"17000"')
  const { code, out } = await runLine(['doctor', grown.url])
  t.equal(code, 0, out)
})

t.test('finds no fault in the documents and offers of the shipped service', async (t) => {
  const { code, out } = await runLine(['doctor', service.url, '--json'])
  t.equal(code, 0, out)
})

/** Everything an answer says to a request with headers that fetch would not send. */
function askAs(headers: Readonly<Record<string, string>>, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = get(service.url + path, { headers }, (answer) => {
      let text = JSON.stringify(answer.headers)
      answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      answer.on('end', () => resolve(text))
    })
    asked.on('error', reject)
  })
}

t.test('sends buyers to its own host, whatever Host header they send', async (t) => {
  const document = await service.readJson('/openapi.json')
  const headers = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'http' }
  for (const [path, item] of members(at(document, 'paths')))
    if (at(item, 'get', 'x-document') !== undefined || path.startsWith('/paid/'))
      t.notMatch(await askAs(headers, path.replace('{appid}', '730')), 'evil.example', path)
  for (const path of SPEAKING) {
    const text = await service.read(path)
    t.notMatch(text, /https?:\/\/(?:localhost|127\.0\.0\.1)/, path)
    t.notMatch(text, `http://${new URL(BASE_URL).host}`, `${path}: https everywhere`)
  }
})

t.test('keeps caches and indexes valid over a restart', async (t) => {
  // Who is paid is set from outside, and differs between the two unless it is given.
  const env = { PAY_TO: `0x${'1'.repeat(40)}`, MPP_RECIPIENT: `0x${'2'.repeat(40)}` }
  const [before, after] = [await openProductionService(t, { env }), await openProductionService(t, { env })]
  const document = await before.readJson('/openapi.json')
  const places = members(at(document, 'x-documents')).flatMap(([, paths]) =>
    Array.isArray(paths) ? paths.map(String) : [],
  )
  const live = ['/health', '/status.json', '/status', '/stats.json']
  for (const path of places.filter((each) => !live.includes(each))) {
    const [first, second] = [await before.ask(path), await after.ask(path)]
    t.equal(await first.text(), await second.text(), path)
    t.equal(first.headers.get('etag'), second.headers.get('etag'), path)
    t.ok(first.headers.get('etag'), path)
  }
  t.ok(places.length > 12)
})
