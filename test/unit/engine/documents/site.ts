import t from 'tap'
import { placedDocuments } from '../../../../src/engine/documents/registry.ts'
import {
  at,
  compileHarbour,
  FACTS,
  HARBOUR,
  items,
  members,
  render,
  renderJson,
} from '../../../support/documents.ts'

t.test('asks crawlers to avoid paid routes, unless the operator decides otherwise', async (t) => {
  t.equal(
    render('robots'),
    `User-agent: *
Content-Signal: search=yes, ai-input=yes
Allow: /
Disallow: /paid/

Sitemap: https://harbour.example/sitemap.xml
`,
  )
  const open = render('robots', compileHarbour(`${HARBOUR}crawlers: { paid: allow, training: disallow }\n`))
  t.notMatch(open, 'Disallow')
  t.match(open, 'Content-Signal: search=yes, ai-input=yes, ai-train=no\n')
  t.match(render('robots', compileHarbour(`${HARBOUR}crawlers: { training: allow }\n`)), 'ai-train=yes')
})

t.test('asks crawlers to avoid what is paid, wherever it is', (t) => {
  const catalog = compileHarbour(`catalog: 1
service: { name: Shop, version: '1', description: Sells }
payments: { currency: USD, x402: { networks: [base] } }
routes:
  /search: { price: 0.001, summary: Finds, handler: find }
  /v1/items/{id}: { price: 0.001, summary: Reads, handler: read, parameters: { id: { type: integer, example: 1 } } }
  /v1/items/latest: { price: free, summary: Reads the latest, handler: latest }
  /pro/a: { price: 0.001, summary: A, handler: find, sample: true }
  POST /pro/b: { price: 0.001, summary: B, handler: find }
documents: { robots: /robots.txt, index: / }
`)
  t.equal(
    render('robots', catalog),
    `User-agent: *
Content-Signal: search=yes, ai-input=yes
Allow: /
Allow: /v1/items/latest$
Disallow: /search$
Disallow: /search?
Disallow: /v1/items/*
Disallow: /pro/
`,
  )
  t.end()
})

t.test('lists exactly the pages in the site map, with dates', async (t) => {
  const locations = [...render('sitemap').matchAll(/<loc>([^<]*)<\/loc>(?:<lastmod>([^<]*)<)?/g)]
  t.ok(locations.some(([, url]) => url === 'https://harbour.example/'))
  for (const [, url, changed] of locations) {
    t.notMatch(url, /json|well-known|robots|sitemap/)
    t.equal(changed, '2026-03-05')
  }
  t.notMatch(render('sitemap', compileHarbour(HARBOUR.replace(/ {2}updated:.*\n/, ''))), 'lastmod')
})

t.test('expires security.txt less than a year after the last change', async (t) => {
  t.equal(
    render('security-txt'),
    `Contact: mailto:harbour@example.com
Expires: 2027-03-04T00:00:00Z
Preferred-Languages: en
Canonical: https://harbour.example/.well-known/security.txt
`,
  )
})

t.test('serves and links only what the catalog has content for', async (t) => {
  const names = (text: string): string[] =>
    placedDocuments(compileHarbour(text), 'https://harbour.example').map(({ name }) => name)
  t.ok(names(HARBOUR).includes('security-txt'))
  t.notOk(names(HARBOUR.replace(/ {2}contact:.*\n/, '')).includes('security-txt'))
  t.notOk(names(HARBOUR.replace(/ {2}updated:.*\n/, '')).includes('security-txt'), 'it could not expire')
  t.ok(names(HARBOUR).includes('mcp-registry-auth'))
  const silent = HARBOUR.replace(/ {2}mcp_registry_auth:.*\n/, '')
  t.notOk(names(silent).includes('mcp-registry-auth'))
  t.notMatch(render('openapi', compileHarbour(silent)), 'mcp-registry-auth')
})

t.test('serves the registry proof byte for byte from the catalog', async (t) => {
  t.equal(render('mcp-registry-auth'), compileHarbour().service.mcpRegistryAuth)
})

t.test('links every description in the API catalog with its type', async (t) => {
  const set = at(renderJson('api-catalog'), 'linkset', 0)
  t.equal(at(set, 'anchor'), 'https://harbour.example/')
  t.strictSame(at(set, 'service-desc'), [
    { href: 'https://harbour.example/openapi.json', type: 'application/json', title: 'OpenAPI 3.1' },
  ])
  t.strictSame(
    members(set).map(([relation]) => relation),
    ['anchor', 'service-desc', 'service-doc', 'service-meta', 'status'],
  )
  const hrefs = members(set).flatMap(([, links]) => items(links).map((link) => at(link, 'href')))
  const urls = placedDocuments(compileHarbour(), FACTS.baseUrl).flatMap(({ rel, url }) => (rel ? url : []))
  t.strictSame(hrefs.map(String).sort(), urls.sort())
})

t.test('counts and lists the routes of each category', async (t) => {
  const [tides, ships, other] = items(at(renderJson('categories'), 'categories'))
  t.match(tides, {
    id: 'tides',
    title: 'Tides & currents',
    counts: { paid: 1, sample: 1, free: 0, tools: 0 },
  })
  t.strictSame(at(tides, 'routes', 0), {
    method: 'GET',
    path: '/paid/tides/{port}',
    kind: 'paid',
    title: 'Tides',
    price: { currency: 'USD', amount: '0.005000' },
    summary: 'Returns the next high and low waters of a port',
    available: true,
  })
  t.match(ships, { id: 'ships', counts: { paid: 2, sample: 1, free: 0, tools: 0 } })
  t.match(other, { id: 'other', title: 'Other', counts: { paid: 0, free: 1 } })
  const mcpServers = new Map([['log', 'https://mcp.example/mcp']])
  const served = renderJson('categories', undefined, { ...FACTS, mcpServers })
  t.strictSame(at(served, 'categories', 1, 'tools'), [
    {
      name: 'log_note',
      title: 'Harbour note',
      server: 'https://mcp.example/mcp',
      price: { currency: 'USD', amount: '0.002000' },
      summary: 'Writes a note into the harbour log',
    },
  ])
})
