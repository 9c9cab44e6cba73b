import { once } from 'node:events'
import { type IncomingMessage, request as sendRequest } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { dial, exchange } from '../../../support/http.ts'
import { readSandboxFile, runProgram, startServer } from '../../../support/server.ts'
import { stockFetch } from '../../../support/payment.ts'
import { type Arrived, FROM_SITE, frontCatalog, openSite } from '../../../support/site.ts'
import { until } from '../../../support/until.ts'

const site = await openSite()
t.teardown(() => site.close())
const file = join(t.testdir({ 'catalog.yaml': frontCatalog(site.url) }), 'catalog.yaml')
const server = await startServer({
  args: ['--sandbox', '--offline', '--catalog', file],
  env: { METRICS_TOKEN: 'a token for the metrics of this test' },
})
t.teardown(() => server.stop())

let seen = 0
/** What the site has got since the last time. */
function arrivals(): readonly Arrived[] {
  const fresh = site.arrived.slice(seen)
  seen = site.arrived.length
  return fresh
}

/** Sends bytes as they are, in Latin-1. */
function send(method: string, target: string, lines: readonly string[] = [], body = '') {
  const head = [`${method} ${target} HTTP/1.1`, 'Host: front.example', 'Connection: close', ...lines]
  return exchange(server.url, Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1'))
}

t.test('passes what the catalog does not name, byte for byte', async (t) => {
  for (const target of [
    '/',
    '/docs',
    '/status',
    '/privacy',
    '/favicon.ico',
    '/brand.css',
    '/v1/items/a1/reviews',
    '/searching?q=a&&b=%zz;c',
    '/a%20b/%E4/%2F?x=%41',
    '/x//y/../z;p=1/',
    '/x?',
    '/x??a=?',
    '/caf%C3%A9',
    '/.well-known/acme-challenge/token',
    '/mcp',
  ]) {
    t.match(await send('GET', target), { status: 200, body: FROM_SITE }, target)
    t.match(arrivals(), [{ method: 'GET', target }], target)
  }
  t.match(await send('GET', 'http://front.example/absolute?a'), { body: FROM_SITE })
  t.match(arrivals(), [{ target: '/absolute?a' }])
})

t.test('passes every method with its body, whatever frames it', async (t) => {
  const body = Buffer.from([0, 255, 13, 10, 65]).toString('latin1')
  const chunked = `3\r\n${body.slice(0, 3)}\r\n2\r\n${body.slice(3)}\r\n0\r\n\r\n`
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'TRACE', 'GET']) {
    t.match(await send(method, '/form', ['Content-Length: 5'], body), { status: 200 }, method)
    t.match(await send(method, '/form', ['Transfer-Encoding: chunked'], chunked), { status: 200 }, method)
    t.match(
      arrivals(),
      [
        { method, body, headers: { 'content-length': ['5'] } },
        { method, body, headers: { 'transfer-encoding': ['chunked'] } },
      ],
      method,
    )
  }
  t.match(await send('POST', '/form'), { status: 200 })
  t.match(arrivals(), [{ body: '', headers: { 'content-length': ['0'] } }])
})

t.test('answers as the site does: status, cookies, redirects, coding', async (t) => {
  const zipped = gzipSync('a page')
  site.at('/answer', (_, response) => {
    response.writeHead(418, 'Short and stout', [
      'Set-Cookie',
      'a=1; Path=/',
      'Set-Cookie',
      'b=2',
      'Content-Encoding',
      'gzip',
      'Connection',
      'close, X-Hop',
      'X-Hop',
      'of the connection',
      'X-Request-Id',
      'of the site',
      'Cache-Control',
      'max-age=60',
    ])
    response.end(zipped)
  })
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { 'X-Request-Id': 'of-the-client' }
    sendRequest(`${server.url}/answer`, { headers, agent: false }, resolve).on('error', reject).end()
  })
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  t.match(response, { statusCode: 418, statusMessage: 'Short and stout' })
  t.same(response.headers['set-cookie'], ['a=1; Path=/', 'b=2'])
  t.match(response.headers, { 'content-encoding': 'gzip', 'cache-control': 'max-age=60' })
  t.equal(response.headers['x-hop'], undefined)
  t.equal(response.headers['x-request-id'], 'of-the-client')
  t.equal(response.headers['access-control-allow-origin'], undefined)
  t.ok(Buffer.concat(chunks).equals(zipped))

  site.at('/moved', (_, response) => {
    response.writeHead(302, { Location: 'http://internal.example/v1/translate' }).end()
  })
  t.match(await send('GET', '/moved'), {
    status: 302,
    headers: { location: 'http://internal.example/v1/translate' },
  })
  for (const status of [204, 304, 404, 500]) {
    site.at(`/status/${status}`, (_, response) => {
      response.writeHead(status, { ETag: '"x"', 'Content-Type': 'text/x' }).end()
    })
    const answer = await send('GET', `/status/${status}`)
    t.match(answer, { status, headers: { etag: '"x"', 'content-type': 'text/x' } }, String(status))
  }
  site.at('/head', (_, response) => {
    response.writeHead(200, { 'Content-Length': '1234' }).end()
  })
  t.match(await send('HEAD', '/head'), { status: 200, headers: { 'content-length': '1234' }, body: '' })
})

t.test('tells the site who has asked, and passes no header that misleads it', async (t) => {
  const sent = {
    Cookie: 'session=1',
    Authorization: 'Bearer token',
    'X-API-Key': 'key',
    'X-Own': 'own',
  }
  const dropped = {
    Connection: 'close, X-Named, X-Forwarded-For, Content-Length',
    'X-Named': '1',
    'Keep-Alive': 'timeout=5',
    TE: 'trailers',
    'Proxy-Authorization': 'Basic eA==',
    Forwarded: 'for=1.2.3.4',
    'X-Original-URL': '/v1/translate',
    'X-Rewrite-URL': '/v1/translate',
    'X-Original-Host': 'evil.example',
    'X-HTTP-Method-Override': 'DELETE',
    'X-HTTP-Method': 'DELETE',
    'X-Method-Override': 'DELETE',
    X_HTTP_Method_Override: 'DELETE',
    'X-PAYMENT': 'e30=',
    'PAYMENT-SIGNATURE': 'e30=',
    PATH_INFO: '/v1/translate',
    SCRIPT_NAME: '/v1',
    'X-Real-IP': '1.2.3.4',
    'X-Forwarded-Prefix': '/v1',
    'X-Forwarded-Server': 'x',
  }
  const lines = Object.entries({ ...sent, ...dropped }).map(([name, value]) => `${name}: ${value}`)
  await send(
    'POST',
    '/who?a=1&_method=DELETE&b=2&%5Fmethod=PUT&X-HTTP-Method-Override=PUT&method=kept',
    [
      ...lines,
      'X-Forwarded-For: 1.2.3.4',
      'X-Forwarded-Proto: gopher',
      'X-Forwarded-Host: evil.example',
      'Content-Length: 2',
    ],
    'ab',
  )
  const [arrived] = arrivals()
  t.match(arrived, { target: '/who?a=1&b=2&method=kept', body: 'ab' })
  const { headers = {} } = arrived ?? {}
  for (const [name, value] of Object.entries(sent)) t.same(headers[name.toLowerCase()], [value], name)
  for (const name of Object.keys(dropped).filter((each) => each !== 'Connection'))
    t.equal(headers[name.toLowerCase()], undefined, name)
  t.same(headers['connection'], ['close'])
  t.match(headers, {
    host: [new URL(site.url).host],
    'content-length': ['2'],
    'x-forwarded-for': [/^(?:127\.0\.0\.1|::1)$/],
    'x-forwarded-proto': ['http'],
    'x-forwarded-host': ['front.example'],
    via: [/^1\.1 ratecard-/],
    'x-request-id': [/./],
  })
  await send('GET', '/who', ['Authorization: Payment abc', 'authorization: payment  x'])
  await send('GET', '/who', ['Authorization: Bearer a, Payment abc'])
  t.same(
    arrivals().map((each) => each.headers['authorization']),
    [undefined, undefined],
  )
})

t.test('sends both bodies while they come', async (t) => {
  site.at('/stream', (request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()
    request.on('data', (chunk: Buffer) => response.write(`got ${chunk.toString()};`))
    request.on('end', () => response.end('all'))
  })
  const asked = sendRequest(`${server.url}/stream`, { method: 'POST', agent: false })
  const answering = once(asked, 'response') as Promise<[IncomingMessage]>
  asked.flushHeaders()
  const [answer] = await answering
  let text = ''
  answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  for (const part of ['one', 'two', 'three']) {
    asked.write(part)
    await until(`${part} has come back`, () => text.endsWith(`got ${part};`))
  }
  asked.end()
  await once(answer, 'end')
  t.equal(text, 'got one;got two;got three;all')
})

t.test('leaves the site when the client leaves', async (t) => {
  for (const begins of [false, true]) {
    const path = `/wait/${String(begins)}`
    const closed = new Promise<void>((resolve) => {
      site.at(path, (_, response) => {
        response.once('close', () => resolve())
        if (begins) response.writeHead(200).write('first')
        client?.destroy()
      })
    })
    let client: Socket | undefined
    client = await dial(server.url)
    client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    await closed
    t.pass(begins ? 'amid the answer' : 'before the answer')
  }
})

t.test('refuses upgrades, and ignores the offer of HTTP/2', async (t) => {
  const upgrade = ['Connection: Upgrade, close', 'Sec-WebSocket-Key: x']
  const refused = await send('GET', '/socket', ['Upgrade: websocket', ...upgrade])
  t.equal(refused.status, 501)
  t.match(JSON.parse(refused.body), { code: 'upgrade_unsupported', charged: 'no' })
  t.match(await send('GET', '/plain', ['Upgrade: h2c', 'HTTP2-Settings: AAMAAABk', ...upgrade]), {
    body: FROM_SITE,
  })
  const [arrived, ...others] = arrivals()
  t.same(others, [])
  t.match(arrived, { target: '/plain' })
  for (const name of ['upgrade', 'http2-settings']) t.equal(arrived?.headers[name], undefined, name)
})

t.test('keeps its own documents, and each declared path in all methods', async (t) => {
  for (const path of [
    '/health',
    '/robots.txt',
    '/openapi.json',
    '/llms.txt',
    '/x402-resources',
    '/.well-known/x402',
    '/.well-known/agent-card.json',
    '/.well-known/api-catalog',
    '/v1/ping',
  ]) {
    const answer = await send('GET', path)
    t.equal(answer.status, 200, path)
    t.not(answer.body, FROM_SITE, path)
  }
  t.match(arrivals(), [{ target: '/v1/ping', method: 'GET' }], 'the free route asks by its proxy')
  for (const path of ['/payments/pay_0123456789012345678901', '/payments', '/payments/x/y/z'])
    t.equal((await send('GET', path)).status, 404, path)
  for (const [method, path, allowed] of [
    ['GET', '/v1/translate', 'OPTIONS, POST'],
    ['DELETE', '/search', 'GET, HEAD, OPTIONS'],
    ['PROPFIND', '/v1/items/a1', 'GET, HEAD, OPTIONS'],
    ['POST', '/v1/ping', 'GET, HEAD, OPTIONS'],
    ['POST', '/robots.txt', 'GET, HEAD, OPTIONS'],
  ] as const)
    t.match(await send(method, path), { status: 405, headers: { allow: allowed } }, `${method} ${path}`)
  t.equal((await send('OPTIONS', '*')).status, 404)
  t.match(await send('POST', '/sandbox/wallet', ['Content-Length: 2'], '{}'), { body: /only signs payments/ })
  t.same(arrivals(), [])
})

t.test('is listed, checked and paid beside the site', async (t) => {
  t.match(await runProgram(['check', file]), { code: 0, stdout: /4 routes/ })
  t.match(await runProgram(['routes', file]), {
    code: 0,
    stdout: new RegExp(`POST /v1/translate[^]*/search[^]*/v1/items/\\{id\\}[^]*/v1/ping[^]*${site.url}`),
  })
  const openapi = (await (await fetch(`${server.url}/openapi.json`)).json()) as { paths: object }
  t.ok(['/v1/translate', '/search', '/v1/items/{id}', '/v1/ping'].every((path) => path in openapi.paths))
  arrivals()
  const pay = stockFetch(readSandboxFile(server).evm.payerKey)
  for (const [path, init, body] of [
    [
      '/v1/translate',
      { method: 'POST', body: '{"text":"Hello"}', headers: { 'Content-Type': 'application/json' } },
      { text: 'Hallo' },
    ],
    ['/search?q=tea', {}, { found: 1 }],
    ['/v1/items/a1', {}, { item: 'a1' }],
  ] as const) {
    t.equal((await fetch(server.url + path, init)).status, 402, path)
    t.same(arrivals(), [], 'nothing is asked for before a payment')
    const paid = await pay(server.url + path, init)
    t.equal(paid.status, 200, path)
    t.same(await paid.json(), body, path)
    t.equal(arrivals().length, 1, 'the proxy asks once')
  }
  const free = await fetch(`${server.url}/v1/ping`)
  t.same(await free.json(), { pong: true })
})

t.test('counts what passes apart', async (t) => {
  const headers = { Authorization: 'Bearer a token for the metrics of this test' }
  const metrics = await (await fetch(`${server.url}/metrics`, { headers })).text()
  t.match(metrics, /^ratecard_requests_total\{route="passthrough",status="200",outcome="ok"\} \d+$/m)
  t.match(metrics, /^ratecard_requests_total\{route="passthrough",status="404",outcome="ok"\} \d+$/m)
  t.match(
    server.log().find(({ route }) => route === 'passthrough'),
    { outcome: 'ok', method: 'GET' },
  )
  const stats = (...flags: string[]) =>
    runProgram(['stats', '--sandbox', '--data-dir', server.dataDir, ...flags], {})
  let rows: { readonly name: string; readonly answers: number }[] = []
  await until('the figures are stored', async () => {
    rows = JSON.parse((await stats('--json')).stdout || '[]')
    return rows.some(({ name }) => name === 'passthrough 404')
  })
  t.ok(rows.some(({ name, answers }) => name === 'passthrough 200' && answers > 0))
  t.match((await stats()).stdout, /^PASSTHROUGH +REQUESTS .*\n200 +\d+ /m)
})

t.test('says why the site does not answer, and charges nothing', async (t) => {
  site.at('/broken', (request) => request.socket.end('no HTTP at all\r\n\r\n'))
  site.at('/odd', (request) => request.socket.end('HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n'))
  site.at('/cut', (request, response) => {
    response.writeHead(200, { 'Content-Length': '10' }).write('half')
    setImmediate(() => request.socket.destroy())
  })
  const broken = await send('POST', '/broken', ['Content-Length: 1'], 'x')
  t.equal(broken.status, 502)
  t.match(JSON.parse(broken.body), { code: 'source_error', charged: 'no' })
  t.equal((await send('GET', '/odd')).status, 502)
  await fetch(`${server.url}/cut`).then(
    (response) => t.rejects(response.text()),
    () => t.pass('cut before it began'),
  )
  await until('both are logged', () => server.log().filter(({ cause }) => cause === 'body').length === 2)
  await site.close()
  const unreached = await send('GET', '/')
  t.equal(unreached.status, 502)
  t.match(JSON.parse(unreached.body), { code: 'source_error', charged: 'no' })
  await until('it is logged', () =>
    server.log().some(({ route, cause }) => route === 'passthrough' && cause === 'refused'),
  )
})
