import t, { type Test } from 'tap'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { join } from 'node:path'
import { startServer } from '../../../support/server.ts'
import { HANDLERS } from '../../../support/catalogs.ts'

/** Every byte there is, twice: nothing survives being read as text. */
const ICON = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256))
const KEY = '3f2a9c0b7d1e4586'
const PROOF = `v=MCPv1; k=ed25519; p=${Buffer.alloc(32, 7).toString('base64')}`

const SERVICE = "service: { name: Small shop, version: '1.0.0' }"
const ROUTES = `payments: { currency: USD, x402: { networks: [base] } }
routes:
  /paid/greet: { price: 0.01, summary: Greets you }
`
const FILES = `files:
  /favicon.ico: { file: ./icon.bin }
  /${KEY}.txt: ${KEY}
  /google1.html: 'google-site-verification: google1.html'
  /search-site-auth.xml: { file: ./auth.xml }
`

/** Nobody is paid in these tests: no chain is asked for anything. */
const env = {
  PAY_TO: '0x1111111111111111111111111111111111111111',
  SETTLER_PRIVATE_KEY: '7'.padStart(64, '0'),
  RPC_URL_8453: 'http://127.0.0.1:9',
}

async function open(t: Test, text: string): Promise<string> {
  const directory = t.testdir({
    'catalog.yaml': `catalog: 1\n${text}`,
    'icon.bin': ICON,
    'auth.xml': '\ufeff<?xml version="1.0"?>\r\n<users/>\r\n\r\n',
    handlers: { 'package.json': '{"type":"module"}', 'index.js': HANDLERS },
  })
  const files = ['--catalog', join(directory, 'catalog.yaml'), '--handlers', join(directory, 'handlers')]
  const server = await startServer({ args: files, env })
  t.teardown(() => server.stop())
  return server.url
}

/** As the bytes come: fetch would decode them. */
async function bytesAt(url: string): Promise<{ readonly type: string | undefined; readonly bytes: Buffer }> {
  const sent = request(url).end()
  const [response] = await once(sent, 'response')
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  return { type: response.headers['content-type'], bytes: Buffer.concat(chunks) }
}

t.test('serves a key, a proof of ownership or an icon byte for byte', async (t) => {
  const url = await open(
    t,
    SERVICE.replace(' }', `, mcp_registry_auth: '${PROOF}' }`) + `\n${ROUTES}${FILES}`,
  )
  const expected: readonly (readonly [string, string, Buffer])[] = [
    ['/favicon.ico', 'image/x-icon', ICON],
    [`/${KEY}.txt`, 'text/plain; charset=utf-8', Buffer.from(KEY)],
    ['/google1.html', 'text/html; charset=utf-8', Buffer.from('google-site-verification: google1.html')],
    [
      '/search-site-auth.xml',
      'application/xml; charset=utf-8',
      Buffer.from('\ufeff<?xml version="1.0"?>\r\n<users/>\r\n\r\n'),
    ],
    ['/.well-known/mcp-registry-auth', 'text/plain; charset=utf-8', Buffer.from(PROOF)],
  ]
  for (const [path, type, bytes] of expected) {
    const got = await bytesAt(url + path)
    t.equal(got.type, type, path)
    t.equal(Buffer.compare(got.bytes, bytes), 0, `${path}: ${got.bytes.length} of ${bytes.length} bytes`)
    const head = await fetch(url + path, { method: 'HEAD' })
    t.equal(head.status, 200)
    t.equal(head.headers.get('content-type'), type)
    t.equal(head.headers.get('content-length'), String(bytes.length))
    const etag = head.headers.get('etag') ?? ''
    t.equal(etag, `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`)
    const again = await fetch(url + path, { headers: { 'If-None-Match': `"x", ${etag}` } })
    t.equal(again.status, 304)
  }
  t.equal((await fetch(`${url}/4f2a9c0b7d1e4586.txt`)).status, 404, 'another key is no file')
})

t.test(
  'serves every document that a catalog of one route has content for, and 404 for the others',
  async (t) => {
    const url = await open(t, `${SERVICE}\n${ROUTES}`)
    const index: unknown = await (await fetch(url, { headers: { Accept: 'application/json' } })).json()
    t.match(index, { counts: { paid: 1 }, documents: { 'agent-card': `${url}/.well-known/agent-card.json` } })
    for (const path of ['/.well-known/mcp-registry-auth', '/.well-known/security.txt']) {
      const got = await fetch(url + path)
      t.equal(got.status, 404, path)
      t.match(await got.json(), { code: 'route_not_found', charged: 'no' })
    }
    const card: unknown = await (await fetch(`${url}/.well-known/agent-card.json`)).json()
    t.match(card, { name: 'Small shop', description: 'Small shop.', version: '1.0.0', skills: [] })
    t.notMatch(card, { provider: {} })
    const manifest: unknown = await (await fetch(`${url}/.well-known/x402`)).json()
    t.match(manifest, { version: 1, resources: [`${url}/paid/greet`] })
    const listed = await fetch(`${url}/robots.txt`)
    t.match(await listed.text(), `Sitemap: ${url}/sitemap.xml`)
  },
)
