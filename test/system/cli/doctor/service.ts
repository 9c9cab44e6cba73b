import { createServer, type RequestListener } from 'node:http'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { runLine } from '../../../support/run-command.ts'
import { randomKey } from '../../../support/payment.ts'
import { runProgram, startServer } from '../../../support/server.ts'

// The program is started for each case.
const CATALOG = fileURLToPath(new URL('../../../../catalog.yaml', import.meta.url))
/** Nothing is settled here: no endpoint is ever asked. */
const NOWHERE = 'http://127.0.0.1:1'

const server = await startServer({
  env: {
    HOST: '127.0.0.1',
    BASE_URL: 'https://api.example.com',
    PAY_TO: `0x${'1'.repeat(40)}`,
    SETTLER_PRIVATE_KEY: randomKey(),
    RPC_URL_8453: NOWHERE,
    RPC_URL_4217: NOWHERE,
    MPP_RECIPIENT: `0x${'2'.repeat(40)}`,
    MPP_SECRET_KEY: 'a secret of more than thirty-two bytes',
  },
})
t.teardown(() => server.stop())

/** Something else at an address of its own. */
async function open(answer: RequestListener): Promise<string> {
  const site = createServer(answer)
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  t.teardown(() => site.close())
  const address = site.address()
  return typeof address === 'object' && address !== null ? `http://127.0.0.1:${address.port}` : ''
}

type Change = (path: string, status: number, text: string) => [number, string]

/** The service behind something that changes its answers. */
function openBehind(change: Change): Promise<string> {
  return open(behind(change))
}

function behind(change: Change): RequestListener {
  return (request, response) => {
    const path = request.url ?? '/'
    void fetch(server.url + path, { headers: { Accept: 'application/json' } }).then(async (answer) => {
      const [status, text] = change(path, answer.status, await answer.text())
      for (const name of ['content-type', 'payment-required', 'www-authenticate']) {
        const value = answer.headers.get(name)
        if (value !== null) response.setHeader(name, value)
      }
      response.writeHead(status).end(text)
    })
  }
}

interface Report {
  readonly routes: number
  readonly compared: readonly string[]
  readonly differences: readonly {
    path: string
    field: string
    document: string
    says: string
    expected: string
  }[]
}

/** In this process: a new one takes seconds to load every handler. */
async function examine(url: string): Promise<{ readonly code: number; readonly report: Report }> {
  const { code, out } = await runLine(['doctor', url, '--json'])
  return { code, report: JSON.parse(out) }
}

t.test('passes a service whose catalog, OpenAPI document and 402s agree', async (t) => {
  const { code, stdout } = await runProgram(['doctor', server.url, '--json', '--catalog', CATALOG])
  const report: Report = JSON.parse(stdout)
  t.strictSame(report.differences, [])
  t.equal(code, 0)
  for (const name of ['catalog', '/openapi.json', '402', '402 by mpp', '402 by x402 on eip155:8453'])
    t.ok(report.compared.includes(name), name)
  const plain = await runLine(['doctor', server.url])
  t.equal(plain.code, 0)
  t.match(plain.out, /^\d+ routes: \/openapi\.json, 402, .* say the same$/m)
})

t.test('finds the documents of a service whose OpenAPI lists them', async (t) => {
  const place = t.testdir({
    'catalog.yaml': readFileSync(CATALOG, 'utf8').replace(
      'openapi_documents: omit',
      'openapi_documents: list',
    ),
    src: t.fixture('symlink', join(dirname(CATALOG), 'src')),
  })
  const file = join(place, 'catalog.yaml')
  const full = await startServer({ args: ['--sandbox', '--offline', '--catalog', file] })
  t.teardown(() => full.stop())
  const { code, report } = await examine(full.url)
  t.strictSame(report.differences, [])
  t.equal(code, 0)
  const planned = await runLine(['plan', file, '--against', full.url])
  t.equal(planned.code, 0, planned.err)
})

t.test('asks again when a connection is closed before its answer', async (t) => {
  const answer = behind((_, status, text) => [status, text])
  const closed = new Set<string>()
  const url = await open((request, response) => {
    const path = request.url ?? '/'
    if (closed.has(path)) return answer(request, response)
    closed.add(path)
    request.socket.destroy()
  })
  const { code, report } = await examine(url)
  t.strictSame(report.differences, [])
  t.equal(code, 0)
  t.ok(closed.has('/openapi.json'))
})

t.test('shows what still states the old price and revision before a new catalog is deployed', async (t) => {
  const text = readFileSync(CATALOG, 'utf8').replace('price: 0.001', 'price: 0.009')
  // Next to it stand the examples it names.
  const place = t.testdir({
    'catalog.yaml': text,
    src: t.fixture('symlink', join(dirname(CATALOG), 'src')),
  })
  const file = join(place, 'catalog.yaml')
  const { code, stdout } = await runProgram(['doctor', server.url, '--catalog', file])
  t.equal(code, 1)
  t.match(stdout, /^ROUTE +FIELD +SAYS +IN +BUT +IN$/m)
  t.match(stdout, /^\/paid\/ping +price +0\.009000 +catalog +0\.001000 +\/openapi\.json, 402, .*402 by mpp/m)
  t.match(stdout, /^\* +revision +[\w-]+ +catalog +[\w-]+ +\/health$/m)
})

t.test('shows a person the differences within 80 columns', async (t) => {
  const url = await openBehind((path, status, text) => [
    status,
    path === '/openapi.json' ? text.replace('"amount":"0.001000"', '"amount":"0.000100"') : text,
  ])
  const { out } = await runLine(['doctor', url], { reader: 'person' })
  t.match(out, /^\/paid\/ping: price\n {2}0\.000100 in \/openapi\.json\n {2}0\.001000 in 402, /m)
  for (const line of out.split('\n')) t.ok(line.length <= 80, line)
})

t.test('finds an OpenAPI document of a cache whose price differs from the 402s', async (t) => {
  const url = await openBehind((path, status, text) => [
    status,
    path === '/openapi.json' ? text.replace('"amount":"0.001000"', '"amount":"0.000100"') : text,
  ])
  const { code, report } = await examine(url)
  t.equal(code, 1)
  t.match(report.differences[0], {
    path: '/paid/ping',
    field: 'price',
    document: '402',
    says: '0.001000',
    expected: '0.000100',
  })
})

t.test('finds servers behind one address that have different revisions of the catalog', async (t) => {
  let asked = 0
  const url = await openBehind((path, status, text) => {
    if (path === '/health') asked += 1
    return [
      status,
      path === '/health' && asked % 2 === 0 ? text.replace(/"revision":"/, '"revision":"other-') : text,
    ]
  })
  const { code, report } = await examine(url)
  t.equal(code, 1)
  t.match(report.differences, [{ path: '*', field: 'revision', document: '/health' }])
  t.equal(report.differences.length, 1)
})

t.test('finds a route that answers unpaid, and an alias that is out of date', async (t) => {
  const url = await openBehind((path, status, text) => {
    if (path === '/paid/ping') return [200, '{}']
    return [status, path === '/.well-known/x402-resources' ? text.replace('1000', '2000') : text]
  })
  const { code, report } = await examine(url)
  t.equal(code, 1)
  const found = report.differences.map(({ path, field, document, says }) =>
    [path, field, document, says].join(' '),
  )
  t.ok(found.includes('/paid/ping status 402 200'))
  t.ok(found.includes('* bytes /.well-known/x402-resources other bytes'))
})

t.test('stays on the host it was given and escapes control characters of a hostile service', async (t) => {
  const asked: (string | undefined)[] = []
  const elsewhere = await open((request, response) => {
    asked.push(request.url)
    response.end('{}')
  })
  const sold = {
    get: {
      summary: 'Sells',
      'x-payment-info': { price: { amount: '0.001000' }, protocols: [{ x402: {} }] },
    },
  }
  const paths = {
    [`@${new URL(elsewhere).host}/paid/x`]: sold,
    [`@${new URL(elsewhere).host}/llms.txt`]: { get: { 'x-document': 'llms' } },
    '/paid/\u001B[2J\u009B1m\u202E': sold,
    '/\u001B]0;x\u0007': { get: { 'x-document': 'index' } },
  }
  const url = await open((request, response) => {
    if (request.url === '/openapi.json')
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ paths }))
    else response.writeHead(404).end()
  })
  for (const flags of [[], ['--json']]) {
    const { code, out, err } = await runLine(['doctor', url, ...flags])
    t.equal(code, 1)
    t.match(out, 'no path, and not asked')
    t.match(out, '\u{FFFD}[2J')
    t.notMatch(out + err, /(?!\n)[\p{Cc}\p{Cf}]/u)
  }
  t.strictSame(asked, [])
})

t.test('finds a document that is gone, or differs under its alias, though it states no price', async (t) => {
  const url = await openBehind((path, status, text) => {
    if (path === '/robots.txt') return [404, '']
    return [status, path === '/.well-known/ai-catalog.json' ? text.replace('{', '{ ') : text]
  })
  const { code, report } = await examine(url)
  t.equal(code, 1)
  const found = report.differences.map(({ field, document, says }) => [field, document, says].join(' '))
  t.strictSame(found.toSorted(), ['bytes /.well-known/ai-catalog.json other bytes', 'status /robots.txt 404'])
})

t.test('says in plain words that an address serves another program', async (t) => {
  const page = await open((_, response) =>
    response.setHeader('Content-Type', 'text/html').end('<h1>Hello</h1>'),
  )
  const foreign = await open((_, response) =>
    response.setHeader('Content-Type', 'application/json').end('{"openapi":"3.1.0","paths":{}}'),
  )
  const moved = await open((_, response) =>
    response.writeHead(301, { Location: 'https://elsewhere.example/' }).end(),
  )
  const absent = await open((_, response) => response.writeHead(404).end())
  const gone = await open((request) => request.socket.destroy())
  const cases: readonly (readonly [string, RegExp])[] = [
    ['http://127.0.0.1:2', /cannot be reached: nothing listens there/],
    ['http://nobody.invalid', /cannot be reached: (?:there is no such host|the name server does not answer)/],
    [page, /a web page instead of JSON/],
    [foreign, /this is another service/],
    [moved, /redirects to https:\/\/elsewhere\.example\//],
    [absent, /answers 404: this is not Ratecard/],
    [gone, /cannot be reached: the connection was closed before the answer/],
  ]
  for (const [url, words] of cases) {
    const { code, out, err } = await runLine(['doctor', url])
    t.equal(code, 1, url)
    t.equal(out, '')
    t.match(err, words)
  }
  const { code, err } = await runLine(['doctor', 'api.example.com'])
  t.equal(code, 64)
  t.match(err, 'api.example.com is not the URL of a service')
})
