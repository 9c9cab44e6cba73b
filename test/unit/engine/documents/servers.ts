import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/server'
import t from 'tap'
import type { Facts } from '../../../../src/engine/documents/registry.ts'
import { serverPages } from '../../../../src/engine/documents/mcp-server-page.ts'
import { MCP_REVISIONS, serverCards } from '../../../../src/engine/documents/server-card.ts'
import { isJsonObject, type JsonObject } from '../../../../src/engine/base/json.ts'
import { at, compileHarbour, HARBOUR, render, WITH_SERVER } from '../../../support/documents.ts'

const harbour = compileHarbour()

function cardOf(facts: Facts = WITH_SERVER, catalog = harbour): JsonObject {
  const value: unknown = JSON.parse(serverCards(catalog, facts)[0]?.text ?? '')
  if (!isJsonObject(value)) throw new Error('no card')
  return value as JsonObject
}

function pageOf(facts: Facts = WITH_SERVER, catalog = harbour): string {
  return serverPages(catalog, facts)[0]?.text ?? ''
}

t.test('lets a client connect from the card of a server alone', async (t) => {
  t.strictSame(cardOf(), {
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    name: 'example.harbour/log',
    title: 'Harbour log',
    version: '1.4.0',
    description: 'What ships have noted.',
    websiteUrl: 'https://harbour.example/docs/servers/log',
    icons: [{ src: 'https://harbour.example/favicon.svg', mimeType: 'image/svg+xml', sizes: ['any'] }],
    remotes: [
      {
        type: 'streamable-http',
        url: 'https://harbour.example/mcp/log',
        supportedProtocolVersions: [...MCP_REVISIONS],
      },
    ],
  })
  const [card] = serverCards(harbour, WITH_SERVER)
  t.match(card, { path: '/mcp/log/server-card', type: 'application/mcp-server-card+json' })
})

t.test('names the type of its icon only where that is known', async (t) => {
  const icon = 'https://office.example/harbour.png'
  const own = compileHarbour(HARBOUR.replace('  card_version:', `  icon: '${icon}'\n  card_version:`))
  t.strictSame(at(cardOf(WITH_SERVER, own), 'icons'), [{ src: icon }])
})

t.test('names only protocol revisions that the endpoint speaks', async (t) => {
  const [newest, ...older] = MCP_REVISIONS
  t.equal(newest, '2026-07-28')
  for (const revision of older) t.ok(SUPPORTED_PROTOCOL_VERSIONS.includes(revision), revision)
})

t.test('follows the length and ownership rules of the MCP registry', async (t) => {
  const long = compileHarbour(
    HARBOUR.replace('What ships have noted', `${'word '.repeat(30)}end`)
      .replace('title: Harbour log', `title: ${'Harbour '.repeat(20)}`)
      .replace('  log: {', '  the_log: {')
      .replace('tool: log.tides', 'tool: the_log.tides')
      .replace('server: log', 'server: the_log'),
  )
  const facts = { ...WITH_SERVER, mcpServers: new Map([['the_log', 'https://mcp.example/mcp']]) }
  const card = cardOf(facts, long)
  t.match(card, { name: 'example.harbour/the-log', description: /^word .* word…$/, title: /^Harbour .*…$/ })
  for (const text of [at(card, 'description'), at(card, 'title')])
    t.ok(typeof text === 'string' && text.length <= 100)
  for (const baseUrl of ['http://localhost:4021', 'http://127.0.0.1:4021', 'http://[::1]:4021'])
    t.equal(at(cardOf({ ...WITH_SERVER, baseUrl }), 'name'), 'localhost/log')
})

t.test('marks the server of a sandbox', async (t) => {
  t.equal(at(cardOf({ ...WITH_SERVER, sandbox: true }), 'title'), 'Harbour log (sandbox)')
})

t.test('shows the configuration that adds the server to a client', async (t) => {
  const page = pageOf()
  t.match(page, 'claude mcp add --transport http log https://harbour.example/mcp/log')
  const text = render('docs-md', harbour, WITH_SERVER)
  const blocks = [...text.matchAll(/^```json\n(.*?)^```$/gms)].map(
    ([, json = '']) => JSON.parse(json) as unknown,
  )
  const url = 'https://harbour.example/mcp/log'
  for (const wanted of [
    { mcpServers: { log: { type: 'http', url } } },
    { mcpServers: { log: { url } } },
    { mcpServers: { log: { command: 'npx', args: ['-y', 'mcp-remote', url] } } },
    { servers: { log: { type: 'http', url } } },
  ])
    t.ok(
      blocks.some((block) => JSON.stringify(block) === JSON.stringify(wanted)),
      JSON.stringify(wanted),
    )
})

t.test('shows price, arguments and payment of each tool on the page of its server', async (t) => {
  const page = pageOf()
  t.match(
    page,
    'id="tool.log_note.title"><a href="#tool.log_note">Harbour note</a> <span class="price">$0.002',
  )
  t.match(page, '<th scope="row"><code>text</code></th>')
  t.match(page, 'This tool is charged before the work;')
  t.match(page, '<a href="/docs/paid_tides_port"><code>GET /paid/tides/{port}</code></a>, at the same price')
  t.match(
    page,
    /&quot;name&quot;: &quot;tides&quot;,\n {2}&quot;arguments&quot;: \{\n {4}&quot;port&quot;: &quot;bristol&quot;/,
  )
  t.notMatch(page, /in the path|pilot_book/)
  for (const words of ['x402/payment', 'org.paymentauth/credential', 'withX402Client', 'McpClient.wrap'])
    t.match(page, words)
  for (const text of [page.replaceAll('&#x27;', "'"), render('docs-md', harbour, WITH_SERVER)])
    t.match(text, "wallet.setSpendControls({ maxAmountPerPayment: '$0.005' })", 'what the dearest tool costs')
  const single = pageOf({ ...WITH_SERVER, protocols: ['mpp'] })
  t.notMatch(single, /x402/i)
})

t.test('describes a list as an array for a tool and as text for a route', async (t) => {
  const catalog = compileHarbour(
    HARBOUR.replace(
      '    category: ships\n    parameters:\n      ports:',
      '    category: ships\n    tool: log.moves\n    parameters:\n      ports:',
    ),
  )
  const page = pageOf(WITH_SERVER, catalog)
  t.match(page, '<td data-label="Type">array of strings</td>')
  t.match(
    page,
    '<td data-label="Allowed">up to 3 values without commas, semicolons, vertical bars or white space</td>',
  )
  t.match(page, '<code>[&quot;bristol&quot;,&quot;cork&quot;]</code>')
  t.notMatch(page, 'Comma-separated')
  t.match(
    render('docs-md', catalog, WITH_SERVER),
    '| array of strings | yes |  | up to 3 values without commas, semicolons, vertical bars or white space |',
  )
})

t.test('leaves the page out without documentation, in the card too', async (t) => {
  const catalog = compileHarbour(
    HARBOUR.replace('  docs: /docs\n', '  docs: { paths: [/docs], planned: true }\n'),
  )
  t.strictSame(serverPages(catalog, WITH_SERVER), [])
  t.equal(at(cardOf(WITH_SERVER, catalog), 'websiteUrl'), 'https://harbour.example/llms.txt')
})
