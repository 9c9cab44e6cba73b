import t from 'tap'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'undici'
import { documents } from '../../../../src/engine/documents/all.ts'
import { PAID } from '../../../fixtures/specification.ts'
import { startServer } from '../../../support/server.ts'

const server = await startServer({ args: ['--sandbox', '--offline'] })
t.teardown(() => server.stop())
const { url } = server

/** A browser's own words. */
const BROWSER = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
const POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
const PAGES = ['/', '/docs', '/docs/errors', '/privacy', '/status']

function at(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return fetch(url + path, { method, headers, redirect: 'manual' })
}

t.test('allows files of its own origin on every page, and no script in the page and no frame', async (t) => {
  for (const path of PAGES) {
    for (const method of ['GET', 'HEAD']) {
      const page = await at(path, BROWSER, method)
      t.equal(page.status, 200, path)
      t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8', path)
      t.equal(page.headers.get('content-security-policy'), POLICY, path)
      t.equal(page.headers.get('x-content-type-options'), 'nosniff', path)
      t.notMatch(await page.text(), /<script(?! type="module" src="\/page\.js"><\/script>)/i, path)
    }
  }
  t.equal((await at('/docs.md')).headers.get('content-security-policy'), null)
})

t.test('shows people a page, and programs a problem, where nothing is served', async (t) => {
  const page = await at('/docs/nothing', BROWSER)
  t.equal(page.status, 404)
  t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  t.equal(page.headers.get('content-security-policy'), POLICY)
  t.equal(page.headers.get('cache-control'), 'no-store')
  t.match(page.headers.get('vary'), /Accept/)
  t.match(await page.text(), /<h1>Page not found<\/h1>[^]*<a href="\/">All endpoints and their prices<\/a>/)
  const problem = await at('/docs/nothing')
  t.equal(problem.headers.get('content-type'), 'application/problem+json')
  t.match(await problem.json(), { code: 'route_not_found', charged: 'no' })
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
    'page.js': 'text/javascript; charset=utf-8',
    'pay.js': 'text/javascript; charset=utf-8',
    'answer.js': 'text/javascript; charset=utf-8',
    'favicon.svg': 'image/svg+xml',
    'favicon.ico': 'image/x-icon',
  }
  for (const [name, type] of Object.entries(types)) {
    const file = await at(`/${name}`)
    t.equal(file.headers.get('content-type'), type)
    const template = (file: string): Buffer =>
      readFileSync(new URL(`../../../../templates/${file}`, import.meta.url))
    const bytes =
      name === 'brand.css'
        ? Buffer.concat([template('base.css'), Buffer.from('\n'), template(name)])
        : template(name)
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

t.test('answers a client that prefers Markdown with the Markdown of a page', async (t) => {
  for (const path of ['/docs', '/docs/paid_ping']) {
    const asked = await at(path, { Accept: 'text/markdown, text/html;q=0.5' })
    t.match(asked.headers.get('content-type'), /^text\/markdown/, path)
    t.match(asked.headers.get('vary'), /Accept(?!-)/)
    t.equal(await asked.text(), await (await at(`${path}.md`)).text())
    for (const accept of ['text/html', '*/*', 'text/html, text/markdown;q=0.9'])
      t.match((await at(path, { Accept: accept })).headers.get('content-type'), /^text\/html/, accept)
  }
})

t.test('links a 402 to the page of its route, which has the price, also in Markdown', async (t) => {
  const [home, docs] = await Promise.all(['/', '/docs'].map(async (path) => (await at(path, BROWSER)).text()))
  const manual = await (await at('/docs.md')).text()
  for (const { path, price } of PAID) {
    const unpaid = await (await at(path.replace('{appid}', '730'))).text()
    const { pathname: href } = new URL(JSON.parse(unpaid).docs)
    const isListed = (html: string | undefined): boolean =>
      html
        ?.split('\n')
        .some((row) => row.includes(`<a href="${href}">`) && row.includes(`<code>${path}</code>`)) === true
    t.ok(isListed(home) && isListed(docs), `${path} is listed with its page`)
    const page = await at(href, BROWSER)
    t.equal(page.status, 200, path)
    t.equal(page.headers.get('content-security-policy'), POLICY)
    const html = await page.text()
    t.match(html, `<span class="badge">GET</span> <code>${path}</code>`)
    t.match(html, `<span class="price">$${shorten(price)}</span> per call`)
    const markdown = await at(`${href}.md`)
    t.equal(markdown.headers.get('content-type'), 'text/markdown; charset=utf-8')
    for (const text of [await markdown.text(), manual])
      t.match(text, `: $${shorten(price)}\n\n\`GET ${url}${path}\`\n`)
    const etag = page.headers.get('etag') ?? ''
    t.equal((await at(href, { 'If-None-Match': etag })).status, 304)
  }
})

t.test(
  'signs payments for visitors of a sandbox, and refuses whatever else its wallet is sent',
  async (t) => {
    const ask = (body: string): Promise<Response> => fetch(`${url}/sandbox/wallet`, { method: 'POST', body })
    const account = await ask(JSON.stringify({ method: 'eth_requestAccounts' }))
    t.match(await account.json(), { result: [/^0x[0-9a-fA-F]{40}$/] })
    t.strictSame(await (await ask('{"method":"eth_chainId"}')).json(), { result: '0x14a34' })
    const refused = ['', 'null', '[]', '{"method":"eth_sendTransaction","params":[{}]}', 'x'.repeat(100_000)]
    const typed = ['{}', 'x', '{"domain":{},"message":{"from":"0x"}}']
    for (const data of typed)
      refused.push(JSON.stringify({ method: 'eth_signTypedData_v4', params: ['0x', data] }))
    for (const body of refused)
      t.match(await (await ask(body)).json(), { error: { code: -32602 } }, body.slice(0, 80))
    t.equal((await at('/sandbox/wallet')).status, 404)
  },
)

t.test('keeps the connection of a call to the sandbox’s wallet that is too long', async (t) => {
  const client = new Client(url)
  t.teardown(() => client.close())
  let connections = 0
  client.on('connect', () => connections++)
  for (const body of ['x'.repeat(1_000_000), '{"method":"eth_chainId"}', 'x'.repeat(20_000), '{}']) {
    const answer = await client.request({ path: '/sandbox/wallet', method: 'POST', body })
    t.equal(answer.statusCode, 200)
    t.match(await answer.body.json(), body.includes('chainId') ? { result: /^0x/ } : { error: Object })
  }
  t.equal(connections, 1)
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

t.test('sends documents compressed to readers who accept it', async (t) => {
  const ask = (path: string, encoding: string): Promise<Response> =>
    fetch(url + path, { headers: { 'Accept-Encoding': encoding } })
  for (const path of ['/openapi.json', '/llms.txt', '/docs']) {
    const plain = await ask(path, 'identity')
    t.equal(plain.headers.get('content-encoding'), null, path)
    const text = await plain.text()
    for (const encoding of ['gzip', 'br']) {
      const packed = await ask(path, encoding)
      t.equal(packed.headers.get('content-encoding'), encoding, path)
      t.match(packed.headers.get('vary'), /Accept-Encoding/)
      t.ok(Number(packed.headers.get('content-length')) > 0, 'the length is known before the body')
      t.equal(packed.headers.get('etag'), plain.headers.get('etag'))
      t.equal(await packed.text(), text)
    }
  }
})

/** As people write a price: without the zeros at its end. */
function shorten(price: string): string {
  return price.replace(/(\.\d\d\d*?)0+$/, '$1')
}
