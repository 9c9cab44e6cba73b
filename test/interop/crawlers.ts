import { XMLParser, XMLValidator } from 'fast-xml-parser'
import { createRequire } from 'node:module'
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

import { BASE_URL, objectIn, openProductionService, type ShippedService } from './support/shipped-service.ts'

const service = await openProductionService(t)
/** As much of it as is used: its own types speak of another export than it has. */
interface Robots {
  isAllowed(url: string, agent: string): boolean | undefined
  isDisallowed(url: string, agent: string): boolean | undefined
  getSitemaps(): string[]
}
const robotsParser: (url: string, text: string) => Robots = createRequire(import.meta.url)('robots-parser')
const CATALOG = fileURLToPath(new URL('../../catalog.yaml', import.meta.url))

/** The shipped service with a few more words in its catalog. */
async function openChanged(change: (text: string) => string): Promise<ShippedService> {
  const folder = t.testdir()
  symlinkSync(join(dirname(CATALOG), 'src'), join(folder, 'src'))
  const file = join(folder, 'catalog.yaml')
  writeFileSync(file, change(readFileSync(CATALOG, 'utf8')))
  return openProductionService(t, { args: ['--catalog', file] })
}

t.test('lets crawlers of language models read the documents made for them', async (t) => {
  const text = await service.read('/robots.txt')
  const robots = robotsParser(`${BASE_URL}/robots.txt`, text)
  for (const agent of ['GPTBot', 'ClaudeBot', 'Googlebot', 'PerplexityBot']) {
    for (const path of [
      '/',
      '/docs',
      '/llms.txt',
      '/openapi.json',
      '/.well-known/agent-card.json',
      '/sample/ping',
    ])
      t.ok(robots.isAllowed(BASE_URL + path, agent), `${agent} ${path}`)
    t.ok(robots.isDisallowed(`${BASE_URL}/paid/ping`, agent), 'no crawler pays')
  }
  for (const url of robots.getSitemaps()) {
    t.match(url, /^https:\/\/market\.example\.com\//)
    t.equal((await service.ask(url)).status, 200, url)
  }
  t.equal(robots.getSitemaps().length, 1)
})

t.test('gives search engines a valid site map of its own pages', async (t) => {
  const answer = await service.ask('/sitemap.xml')
  t.match(answer.headers.get('content-type'), /^application\/xml/)
  const text = await answer.text()
  t.equal(XMLValidator.validate(text), true)
  const parsed: { urlset: { '@_xmlns': string; url: { loc: string; lastmod?: string }[] } } = new XMLParser({
    ignoreAttributes: false,
    isArray: (name) => name === 'url',
    parseTagValue: false,
  }).parse(text)
  t.equal(parsed.urlset['@_xmlns'], 'http://www.sitemaps.org/schemas/sitemap/0.9')
  t.ok(parsed.urlset.url.length >= 3)
  for (const { loc, lastmod } of parsed.urlset.url) {
    t.equal(new URL(loc).origin, BASE_URL)
    t.equal((await service.ask(loc)).status, 200, loc)
    t.match(lastmod, /^\d{4}-\d\d-\d\d/)
  }
})

t.test('names a current contact for reports of vulnerabilities', async (t) => {
  const answer = await service.ask('/.well-known/security.txt')
  t.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8')
  const text = await answer.text()
  t.match(text, /^Contact: (?:mailto:|https:)\S+$/m)
  const expires = Date.parse(/^Expires: (\S+)$/m.exec(text)?.[1] ?? '')
  t.ok(expires > Date.now(), 'not lapsed')
  t.ok(expires < Date.now() + 366 * 86_400_000, 'within a year')
})

t.test('serves the icon to AgentCash and browsers', async (t) => {
  for (const [path, type] of [
    ['/favicon.ico', /^image\/(?:x-icon|vnd\.microsoft\.icon)/],
    ['/favicon.svg', /^image\/svg\+xml/],
  ] as const) {
    const head = await service.ask(path, { method: 'HEAD' })
    t.equal(head.status, 200, path)
    t.match(head.headers.get('content-type'), type)
  }
})

t.test('claims ownership only with a key', async (t) => {
  for (const path of ['/.well-known/mcp-registry-auth', '/0123456789abcdef.txt']) {
    const answer = await service.ask(path)
    t.equal(answer.status, 404, path)
    t.equal(answer.headers.get('content-type'), 'application/problem+json')
  }
})

t.test('shows the key that a search index or registry asks for', async (t) => {
  const { publicKey } = generateKeyPairSync('ed25519')
  const key = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')
  const proof = `v=MCPv1; k=ed25519; p=${key}`
  const own = await openChanged((text) =>
    text
      .replace('\nservice:\n', `\nservice:\n  mcp_registry_auth: '${proof}'\n`)
      .replace('\ndocuments:\n', '\nfiles:\n  /0123456789abcdef.txt: 0123456789abcdef\n\ndocuments:\n'),
  )
  const registry = await own.ask('/.well-known/mcp-registry-auth')
  t.equal(registry.status, 200)
  t.match(registry.headers.get('content-type'), /^text\/plain/)
  t.equal((await registry.text()).trimEnd(), proof)
  const index = await own.ask('/0123456789abcdef.txt')
  t.match(index.headers.get('content-type'), /^text\/plain/)
  t.equal(await index.text(), '0123456789abcdef', 'exactly the key')
  t.equal((await own.ask('/other0123456789.txt')).status, 404)
})

t.test('answers 404 at an unknown well-known address', async (t) => {
  for (const path of [
    '/.well-known/nothing',
    '/.well-known/ai-plugin.json',
    '/nothing.html',
    '/paid/nothing',
  ]) {
    const answer = await service.ask(path)
    t.equal(answer.status, 404, path)
    t.equal(answer.headers.get('content-type'), 'application/problem+json')
    t.match(objectIn(await answer.text()), { code: 'route_not_found', charged: 'no' })
  }
})
