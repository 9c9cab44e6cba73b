import t from 'tap'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { documents } from '../../../src/engine/documents/all.ts'
import { PAID } from '../../fixtures/specification.ts'
import { startServer } from '../../support/server.ts'

const server = await startServer({ args: ['--sandbox', '--offline'] })
t.teardown(() => server.stop())
const { url } = server

/** A browser's own words. */
const BROWSER = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
const POLICY =
  "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const PAGES = ['/', '/docs', '/docs/errors', '/privacy', '/status']

function at(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return fetch(url + path, { method, headers, redirect: 'manual' })
}

t.test('forbids scripts, loading, forms and frames on every page', async (t) => {
  for (const path of PAGES) {
    for (const method of ['GET', 'HEAD']) {
      const page = await at(path, BROWSER, method)
      t.equal(page.status, 200, path)
      t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8', path)
      t.equal(page.headers.get('content-security-policy'), POLICY, path)
      t.equal(page.headers.get('x-content-type-options'), 'nosniff', path)
      t.notMatch(await page.text(), /<script/i, path)
    }
  }
  t.equal((await at('/docs.md')).headers.get('content-security-policy'), null)
})

t.test('answers every link of a page, with pictures and styles of the declared type', async (t) => {
  const links = new Set<string>()
  for (const path of [...PAGES, '/paid/ping']) {
    const page = await (await at(path, BROWSER)).text()
    for (const [, link = ''] of page.matchAll(
      /(?:href|src|content)="((?:\/|http:\/\/(?:localhost|127)[^"]*\/)[^"]*)"/g,
    ))
      links.add(link.replaceAll('&#x3D;', '=').replaceAll('&amp;', '&').replace(/#.*$/, ''))
  }
  t.ok(links.size > 15)
  for (const link of links) {
    const { pathname, search } = new URL(link, url)
    t.equal((await at(pathname + search)).status, 200, link)
  }
  const types = {
    'brand.css': 'text/css; charset=utf-8',
    'favicon.svg': 'image/svg+xml',
    'favicon.ico': 'image/x-icon',
  }
  for (const [name, type] of Object.entries(types)) {
    const file = await at(`/${name}`)
    t.equal(file.headers.get('content-type'), type)
    const bytes = readFileSync(new URL(`../../../templates/${name}`, import.meta.url))
    t.ok(bytes.equals(Buffer.from(await file.arrayBuffer())), `${name} byte for byte`)
    const etag = file.headers.get('etag') ?? ''
    t.equal((await at(`/${name}`, { 'If-None-Match': etag })).status, 304)
    t.equal((await at(`/${name}`, {}, 'HEAD')).headers.get('content-type'), type)
  }
})

t.test(
  'serves the front page as HTML to browsers and as JSON to others, and varies caches by it',
  async (t) => {
    const page = await at('/', BROWSER)
    const json = await at('/')
    t.equal(json.headers.get('content-type'), 'application/json; charset=utf-8')
    t.equal(json.headers.get('content-security-policy'), null)
    for (const answer of [page, json]) t.match(answer.headers.get('vary'), /\bAccept\b/)
    t.not(page.headers.get('etag'), json.headers.get('etag'))
    t.equal(page.headers.get('link'), json.headers.get('link'))
    for (const accept of [
      '*/*',
      'application/json',
      'application/json, text/html;q=0.9',
      'text/plain',
      'text/html;q=0',
    ])
      t.match((await at('/', { Accept: accept })).headers.get('content-type'), /^application\/json/, accept)
    const kept = await at('/', { ...BROWSER, 'If-None-Match': page.headers.get('etag') ?? '' })
    t.equal(kept.status, 304)
    t.match(kept.headers.get('vary'), /\bAccept\b/)
    t.equal(
      (await at('/', { 'If-None-Match': page.headers.get('etag') ?? '' })).status,
      200,
      'a page is not JSON',
    )
    const text = await page.text()
    t.match(text, /<meta name="description" content="[^"]{50,}">/)
    t.match(text, `<meta property="og:url" content="${url}/">`)
    t.match(text, '<link rel="icon" type="image/svg+xml" href="/favicon.svg">')
  },
)

t.test('links the other formats of a page in its head', async (t) => {
  for (const path of PAGES) {
    const text = await (await at(path, BROWSER)).text()
    t.match(text, '<link rel="alternate" type="text/markdown" href="/docs.md">', path)
    t.match(text, '<link rel="describedby" type="text/plain" href="/llms.txt">', path)
    t.match(text, '<link rel="service-desc" type="application/json" href="/openapi.json">', path)
    t.match(
      text,
      '<link rel="api-catalog" type="application/linkset+json" href="/.well-known/api-catalog">',
      path,
    )
    t.match(text, `<link rel="canonical" href="${url}${path}">`, path)
  }
})

t.test('links a 402 to its route and price in the documentation', async (t) => {
  const docs = await (await at('/docs')).text()
  const markdown = await (await at('/docs.md')).text()
  for (const { path, price } of PAID) {
    const body: { docs: string; would_fail?: { status: number } } = JSON.parse(
      await (await at(path.replace('{appid}', '730'))).text(),
    )
    if (body.would_fail?.status === 501) continue
    const { pathname, hash } = new URL(body.docs)
    t.equal(pathname, '/docs')
    const [, article = ''] = docs.split(`<article class="offer" id="${hash.slice(1)}"`)
    t.match(
      article.split('</h3>')[0],
      `GET ${path}</a> <span class="price">${Number(price).toFixed(6)} USD</span>`,
    )
    t.match(markdown, `### GET \`${path}\`: ${Number(price).toFixed(6)} USD\n`)
  }
})

t.test('links the address of a problem to its row', async (t) => {
  const { type }: { type: string } = JSON.parse(await (await at('/nothing')).text())
  t.equal(type, '/docs/errors#route_not_found')
  t.match(await (await at('/docs/errors')).text(), '<tr id="route_not_found">')
})

t.test('serves an operator’s own style first, and pages also without a documents setting', async (t) => {
  const directory = t.testdir({
    'own.css': 'body { color: red }\r\n',
    'catalog.yaml': `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] } }
routes:
  /paid/open: { price: 0.01, handler: answer, summary: Answers }
  /favicon.ico: { price: free, handler: answer, summary: Draws }
files:
  /brand.css: { file: ./own.css }
`,
    handlers: {
      'package.json': '{"type":"module"}',
      'index.js': `export const handlers = { answer: async () => ({ source: [{ name: 'computed' }], body: { ok: true } }) }\n`,
    },
  })
  const args = [
    '--sandbox',
    '--catalog',
    join(directory, 'catalog.yaml'),
    '--handlers',
    join(directory, 'handlers'),
  ]
  const shop = await startServer({ args })
  t.teardown(() => shop.stop())
  const get = async (path: string): Promise<Response> => fetch(shop.url + path, { headers: BROWSER })
  t.equal(await (await get('/brand.css')).text(), 'body { color: red }\r\n')
  const unpaid = await get('/paid/open')
  t.match(
    await unpaid.text(),
    '<style>body { color: red }\n</style>',
    'the page of a 402 looks like the others',
  )
  const hash = createHash('sha256').update('body { color: red }\n').digest('base64')
  t.match(unpaid.headers.get('content-security-policy'), `style-src 'sha256-${hash}'`)
  t.match(await (await get('/favicon.ico')).text(), '"ok":true')
  t.equal((await get('/favicon.svg')).status, 200)
  for (const path of ['/', '/docs', '/docs/errors', '/privacy']) {
    const page = await get(path)
    t.equal(page.status, 200, path)
    t.match(await page.text(), 'Small shop', path)
  }
})

t.test('covers every document of the shipped catalog', async (t) => {
  const written = documents.filter(({ type, page }) => page !== undefined || type.startsWith('text/html'))
  t.equal(written.length, PAGES.length - 1, 'all but the live page')
})
