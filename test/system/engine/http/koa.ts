import { once } from 'node:events'
import { connect } from 'node:net'
import { request, type IncomingMessage } from 'node:http'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'
import t from 'tap'
import { examplePath } from '../../../../src/engine/catalog/catalog.ts'
import { loadCatalog } from '../../../../src/engine/catalog/load-catalog.ts'
import { documentNames } from '../../../../src/engine/documents/all.ts'
import { callTool } from '../../../support/mcp.ts'
import { startServer } from '../../../support/server.ts'

const shipped = fileURLToPath(new URL('../../../../catalog.yaml', import.meta.url))
const { catalog } = loadCatalog(shipped, { handlers: undefined, documents: documentNames })

const program = fileURLToPath(new URL('../../../fixtures/koa/serve.mjs', import.meta.url))
const mounted = await startServer({ program })
t.teardown(() => mounted.stop())

interface Received {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** As it came over the wire, and as it reads. */
  readonly bytes: number
  readonly text: string
}

/** A request that asks for Brotli and does not decompress by itself. */
async function ask(
  path: string,
  {
    method = 'GET',
    headers = {},
    body = '',
  }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Received> {
  const sent = request(mounted.url + path, { method, headers: { 'Accept-Encoding': 'br', ...headers } })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const raw = Buffer.concat(chunks)
  const { statusCode: status = 0, headers: received } = response
  const text = (received['content-encoding'] === 'br' ? brotliDecompressSync(raw) : raw).toString('utf8')
  return { status, headers: received, bytes: raw.length, text }
}

const INITIALIZE = {
  method: 'POST',
  headers: {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': '2025-06-18',
  },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
}

t.test('works behind stock compression for every kind of answer', async (t) => {
  const unpaid = await ask('/paid/echo/tea')
  t.equal(unpaid.status, 402)
  t.equal(unpaid.headers['content-encoding'], 'br')
  t.equal(unpaid.headers['vary'], 'Accept-Encoding, Accept')
  const challenge: unknown = JSON.parse(
    Buffer.from(String(unpaid.headers['payment-required']), 'base64').toString('utf8'),
  )
  t.match(challenge, { x402Version: 2, accepts: [{ amount: '10000' }] }, 'the header survives')
  t.match(JSON.parse(unpaid.text), { x402Version: 1, accepts: [{ maxAmountRequired: '10000' }] })

  const sample = await ask('/sample/echo/tea')
  t.equal(sample.status, 200)
  t.equal(sample.headers['content-encoding'], 'br')
  t.match(sample.text, '"word":"tea"')

  const document = await ask('/openapi.json')
  t.equal(document.status, 200)
  t.ok(document.bytes < document.text.length / 2, `${document.bytes} bytes for ${document.text.length}`)
  t.match(JSON.parse(document.text), { paths: { '/paid/echo/{word}': {} } })

  const again = await ask('/openapi.json', { headers: { 'If-None-Match': String(document.headers['etag']) } })
  t.equal(again.status, 304)
  t.equal(again.bytes, 0)
  t.equal(again.headers['etag'], document.headers['etag'])

  const tools = await ask('/mcp/tools', INITIALIZE)
  t.equal(tools.status, 200)
  t.match(tools.text, '"name":"echo"')

  const missing = await ask('/nothing')
  t.equal(missing.status, 404)
  t.match(JSON.parse(missing.text), { code: 'route_not_found' })
})

t.test('answers HEAD with the headers of GET and an empty body', async (t) => {
  for (const path of ['/paid/echo/tea', '/sample/echo/tea', '/openapi.json', '/health', '/nothing']) {
    const plain = { headers: { 'Accept-Encoding': 'identity' } }
    const [get, head] = [await ask(path, plain), await ask(path, { ...plain, method: 'HEAD' })]
    t.equal(head.status, get.status, path)
    t.equal(head.bytes, 0)
    t.same(Object.keys(head.headers).toSorted(), Object.keys(get.headers).toSorted(), path)
  }
})

t.test('shows status, length and route name to a stock logger and own middleware in front', async (t) => {
  const sized = await ask('/paid/echo/tea', { headers: { 'Accept-Encoding': 'identity' } })
  t.equal(Number(sized.headers['content-length']), sized.bytes)
  await mounted.said(/route of GET \/paid\/echo\/tea: paid_echo_word$/m)
  await mounted.said(/route of GET \/sample\/echo\/tea: sample_echo_word$/m)
  await mounted.said(/route of GET \/openapi\.json: \/openapi\.json$/m)
  // eslint-disable-next-line no-control-regex
  const lines = mounted.output().replace(/\u001b\[\d+m/g, '')
  t.match(lines, /--> GET \/paid\/echo\/tea 402 \d+m?s /)
  t.match(lines, /--> GET \/openapi\.json 304 \d+m?s/)
  t.match(lines, /--> POST \/mcp\/tools 200 [\d,]+m?s/)
})

t.test('leaves unknown paths to a router behind it', async (t) => {
  const own = await ask('/own', { headers: { 'Accept-Encoding': 'identity' } })
  t.equal(own.status, 200)
  t.equal(own.text, 'mine')
  const refused = await ask('/own', { method: 'POST' })
  t.equal(refused.status, 405)
  t.equal(refused.headers['allow'], 'GET, HEAD, OPTIONS')
  const expected = await ask('/refusing', { headers: { 'Accept-Encoding': 'identity' } })
  t.equal(expected.status, 418)
  t.equal(expected.text, 'not here')
  const broken = await ask('/broken')
  t.equal(broken.status, 500)
  t.match(JSON.parse(broken.text), { code: 'internal', charged: 'unknown' })
  t.notMatch(broken.text, 'mistake')
  await mounted.said(/reported: Error: the owner of this middleware has made a mistake/)
})

t.test('writes one access line for a request to an MCP server without a tool call', async (t) => {
  const line = (place: string, status: number): RegExp =>
    new RegExp(`^access: .*"method":"POST","place":"${place}","status":${status},`, 'm')
  const initialize = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize })
  t.equal((await ask('/mcp/tools', { ...INITIALIZE, body })).status, 200)
  await t.resolves(mounted.said(line('/mcp/tools', 200)))
  const foreign = { ...INITIALIZE.headers, Host: 'elsewhere.example' }
  t.equal((await ask('/mcp/tools', { ...INITIALIZE, headers: foreign })).status, 403)
  await t.resolves(mounted.said(line('/mcp/tools', 403)))
  const call = { name: 'echo', arguments: { word: 'tea' } }
  await ask('/mcp/tools', {
    ...INITIALIZE,
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }),
  })
  await t.resolves(mounted.said(line('tool echo', 402)))
})

t.test('writes one access line when a client leaves in the middle of an MCP body', async (t) => {
  const { hostname, port } = new URL(mounted.url)
  const socket = connect(Number(port), hostname)
  const head = Object.entries({
    ...INITIALIZE.headers,
    Host: `localhost:${port}`,
    'Content-Length': '5000',
  })
  const begun = `POST /mcp/tools HTTP/1.1\r\n${head.map((each) => each.join(': ')).join('\r\n')}\r\n\r\n{"jsonrpc"`
  await new Promise((resolve) => socket.write(begun, resolve))
  await ask('/health')
  socket.destroy()
  await mounted.said(/^access: .*"method":"POST","place":"\/mcp\/tools","status":408,/m)
  t.notMatch(mounted.output(), /reported: .*(?:abort|ECONNRESET)/)
})

t.test('refuses arguments that are nested too deeply with 400, and keeps serving', async (t) => {
  const deep = '['.repeat(20_000) + ']'.repeat(20_000)
  const params = `{"name":"echo","arguments":{"word":${deep}}}`
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`
  const refused = await ask('/mcp/tools', {
    ...INITIALIZE,
    headers: { ...INITIALIZE.headers, 'Accept-Encoding': 'identity' },
    body,
  })
  t.equal(refused.status, 400)
  t.match(JSON.parse(refused.text), { error: { code: -32600 } })
  t.notMatch(mounted.output(), /reported: .*call stack/)
  t.equal((await ask('/health')).status, 200)
})

t.test('decodes an encoded slash in a path value', async (t) => {
  const sample = await ask('/sample/echo/a%2Fb')
  t.equal(sample.status, 200)
  t.match(sample.text, '"word":"a/b"')
  t.equal((await ask('/paid/echo/a%2Fb')).status, 402)
  t.equal((await ask('/paid/echo/..%2Fb')).status, 404)
})

t.test('answers 503 on a paid route without a working network, and the same to tools', async (t) => {
  const server = await startServer({ program, env: { OFFERS: 'none' } })
  t.teardown(() => server.stop())
  await server.said(/warning: x402: Base .* cannot be offered/)
  const response = await fetch(`${server.url}/paid/echo/tea`)
  t.equal(response.status, 503)
  t.equal(response.headers.get('payment-required'), null)
  t.match(await response.json(), { code: 'not_configured', charged: 'no' })
  const unreadable = { headers: { 'PAYMENT-SIGNATURE': 'e30=' } }
  const paid = await fetch(`${server.url}/paid/echo/tea`, unreadable)
  t.match(await paid.json(), { status: 400, code: 'invalid_payload', charged: 'no' })
  const { content } = await callTool(`${server.url}/mcp/tools`, 'echo', { word: 'tea' })
  t.match(content, { code: 'not_configured', charged: 'no' })
})

t.test('refuses to sell below a path prefix, with the reason', async (t) => {
  const server = await startServer({ program, env: { PREFIX: '/api' } })
  t.teardown(() => server.stop())
  for (const path of ['/api/paid/echo/tea', '/api/sample/echo/tea?a=b', '/api']) {
    const refused = await fetch(server.url + path)
    t.equal(refused.status, 500, path)
    t.match(await refused.json(), { code: 'internal', charged: 'no', detail: /mount it at the root/ })
  }
  await server.said(/reported: Error: this service is mounted below a path prefix/)
})

t.test('shows the dispatch of every route in the debug output of @koa/router', async (t) => {
  const server = await startServer({
    args: ['--sandbox', '--offline'],
    env: { DEBUG: 'koa-router', DEBUG_COLORS: '0', LOG_LEVEL: 'silent' },
  })
  t.teardown(() => server.stop())
  for (const route of catalog.routes) {
    const path = examplePath(route)
    await fetch(server.url + path, { method: 'HEAD' })
    const escaped = path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    await t.resolves(server.said(new RegExp(`koa-router HEAD ${escaped}\\n`)), route.name)
  }
  t.match(server.output(), /koa-router defined route \[ 'HEAD', 'GET' \] \/paid\/gamestore\/app\/:appid/)
})
