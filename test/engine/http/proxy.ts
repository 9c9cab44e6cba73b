import t, { type Test } from 'tap'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Upstream } from '../../../src/engine/catalog/catalog.ts'
import { Failure } from '../../../src/engine/errors.ts'
import type { Answer, Arguments } from '../../../src/engine/handler.ts'
import { createProxy } from '../../../src/engine/http/proxy.ts'
import { fixedContext } from '../../support/fixed-context.ts'

const KEY = 'upstream-key-7f3a'

/** A real upstream on a free port, and what it was asked. */
async function upstream(t: Test, answer: RequestListener) {
  const asked: IncomingMessage[] = []
  const server = createServer((request, response) => {
    asked.push(request)
    answer(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

function json(body: string, type = 'application/json'): RequestListener {
  return (_, response) => response.writeHead(200, { 'Content-Type': type }).end(body)
}

function proxyTo(
  url: string,
  credential?: Upstream['credential'],
  secret: (name: string) => string | undefined = (name) => (name === 'ACME_TOKEN' ? KEY : undefined),
) {
  return createProxy({ url, credential }, { fetcher: fetch, secret })
}

async function call(url: string, args: Arguments = {}, credential?: Upstream['credential']): Promise<Answer> {
  return proxyTo(url, credential)(args, fixedContext())
}

/** What the buyer would be told. */
async function failure(work: Promise<unknown>): Promise<Failure> {
  try {
    await work
  } catch (fault) {
    if (fault instanceof Failure) return fault
    throw fault
  }
  throw new Error('the answer was sold')
}

t.test('parameters fill the path, the others travel in the query, both encoded', async (t) => {
  const { url, asked } = await upstream(t, json('{"ok":true}'))
  await call(`${url}/v1/prices/{sku}/in/{region}?fixed=1`, {
    sku: 'a/b?c#d%20e ø',
    region: 'eu',
    note: 'x&y=z+ ø',
    count: 3,
    list: ['a', 'b'],
    absent: undefined,
  })
  const sent = new URL(asked[0]?.url ?? '', url)
  t.equal(sent.pathname, '/v1/prices/a%2Fb%3Fc%23d%2520e%20%C3%B8/in/eu')
  t.strictSame(Object.fromEntries(sent.searchParams), {
    fixed: '1',
    note: 'x&y=z+ ø',
    count: '3',
    list: 'a,b',
  })
})

t.test('no value climbs out of the place it fills', async (t) => {
  const { url, asked } = await upstream(t, json('{"secret":true}'))
  for (const [template, args] of [
    ['/public/{sku}/price', { sku: '..' }],
    ['/public/{sku}/price', { sku: '.' }],
    ['/public/{sku}', { sku: '..' }],
    ['/public/{sku}?x=1', { sku: '..' }],
    ['/public/{a}{b}/price', { a: '.', b: '.' }],
  ] as const) {
    t.equal((await failure(call(url + template, args))).code, 'not_found', JSON.stringify(args))
  }
  t.equal(asked.length, 0, 'the upstream was not asked')
  for (const sku of [
    '../x',
    '..%2fx',
    '%2e%2e',
    '..\\x',
    '/..',
    '...',
    '?/..',
    '#',
    '@evil.example',
    '..;',
  ]) {
    await call(`${url}/public/{sku}/price`, { sku })
  }
  for (const { url: target, headers } of asked) {
    t.match(target, /^\/public\/[^/?#\\]+\/price$/)
    t.match(headers.host, /^127\.0\.0\.1:/)
  }
})

t.test('the key is sent in the form the catalog asks for, and nothing of the buyer is', async (t) => {
  const { url, asked } = await upstream(t, json('{}'))
  await call(url, {}, { env: 'ACME_TOKEN', header: 'Authorization', prefix: 'Bearer ' })
  await call(url, {}, { env: 'ACME_TOKEN', header: 'X-Api-Key', prefix: '' })
  await call(url)
  t.equal(asked[0]?.headers.authorization, `Bearer ${KEY}`)
  t.equal(asked[1]?.headers['x-api-key'], KEY)
  t.equal(asked[1]?.headers.authorization, undefined)
  t.equal(asked[2]?.headers.authorization, undefined)
  for (const { headers, method } of asked) {
    t.equal(method, 'GET')
    t.notOk(Object.keys(headers).some((name) => /payment|cookie|referer|forwarded/.test(name)))
  }
})

t.test('without its key the route says that it is not set up', async (t) => {
  const { url, asked } = await upstream(t, json('{}'))
  const keyed = { env: 'ACME_TOKEN', header: 'Authorization', prefix: 'Bearer ' }
  const fault = await failure(proxyTo(url, keyed, () => undefined)({}, fixedContext()))
  t.equal(fault.code, 'not_configured')
  t.notMatch(fault.detail, 'ACME_TOKEN')
  t.equal(asked.length, 0)
})

t.test('an answer is passed on as it is', async (t) => {
  const text = '{ "b": 1.10,\n "a": "\\u00f8" }'
  const plain = await upstream(t, json(text))
  t.strictSame(await call(plain.url), { content: { type: 'application/json; charset=utf-8', text } })
  const special = await upstream(t, json('{"a":1}', 'application/vnd.acme+json; v=2'))
  t.strictSame(await call(special.url), {
    content: { type: 'application/vnd.acme+json; charset=utf-8', text: '{"a":1}' },
  })
  const csv = await upstream(t, json('a,b\n1,2\n', 'text/csv'))
  t.strictSame(await call(csv.url), { content: { type: 'text/csv; charset=utf-8', text: 'a,b\n1,2\n' } })
})

t.test('text keeps its letters whatever the upstream encodes it in', async (t) => {
  const { url } = await upstream(t, (_, response) =>
    response.writeHead(200, { 'Content-Type': 'text/plain; charset="ISO-8859-1"' }).end(Buffer.from([0xf8])),
  )
  t.strictSame(await call(url), { content: { type: 'text/plain; charset=utf-8', text: 'ø' } })
})

t.test('what is no answer is not sold', async (t) => {
  const status =
    (code: number, headers: Record<string, string> = {}): RequestListener =>
    (_, response) =>
      response.writeHead(code, { 'Content-Type': 'application/json', ...headers }).end('{"secret":"inner"}')
  const cases: readonly (readonly [string, RequestListener, string, number])[] = [
    ['unknown', status(404), 'not_found', 404],
    ['gone', status(410), 'not_found', 404],
    ['refused', status(400), 'source_error', 502],
    ['refused', status(422), 'source_error', 502],
    ['key is wrong', status(401), 'source_error', 502],
    ['broken', status(500), 'source_error', 502],
    ['overloaded', status(503), 'source_error', 502],
    ['moved', status(301, { Location: 'http://127.0.0.1:1/x' }), 'source_error', 502],
    ['moved', status(307, { Location: '/y' }), 'source_error', 502],
    ['no content', (_, response) => response.writeHead(204).end(), 'source_error', 502],
    ['empty', json(''), 'source_error', 502],
    ['empty', json('', 'text/plain'), 'source_error', 502],
    ['a page', json('<!doctype html><title>Log in</title>', 'text/html'), 'source_error', 502],
    ['a page', json('<html/>', 'Text/HTML; charset=utf-8'), 'source_error', 502],
    ['a page', json('<html/>', 'application/xhtml+xml'), 'source_error', 502],
    ['an image', json('PNG', 'image/png'), 'source_error', 502],
    ['no type', (_, response) => response.writeHead(200).end('x'), 'source_error', 502],
    ['not JSON', json('{"a":'), 'source_error', 502],
    ['not JSON', json('null null'), 'source_error', 502],
    ['strange charset', json('x', 'text/plain; charset=klingon'), 'source_error', 502],
    [
      'broken off',
      (_, response) => {
        response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '100' })
        response.write('{"a":', () => response.destroy())
      },
      'source_error',
      502,
    ],
    ['huge', json(JSON.stringify('x'.repeat(1_000_001))), 'answer_too_large', 502],
  ]
  for (const [name, listener, code, expected] of cases) {
    const { url, asked } = await upstream(t, listener)
    const fault = await failure(
      call(`${url}/hidden/path`, {}, { env: 'ACME_TOKEN', header: 'Authorization', prefix: 'Bearer ' }),
    )
    t.equal(fault.code, code, name)
    t.equal(fault.status, expected, name)
    t.equal(asked.length, 1, `${name}: asked once, no redirect followed`)
    t.notMatch(
      fault.detail + JSON.stringify(fault.extra),
      /127\.0\.0\.1|hidden|secret|inner|upstream-key/,
      name,
    )
  }
})

t.test('a limit of the upstream is passed on with its wait', async (t) => {
  for (const [said, expected] of [
    ['7', 7],
    ['999999', 3600],
    ['Wed, 21 Oct 2026 07:28:00 GMT', 30],
    ['-1', 30],
    ['', 30],
  ] as const) {
    const { url } = await upstream(t, (_, response) => response.writeHead(429, { 'Retry-After': said }).end())
    const fault = await failure(call(url))
    t.equal(fault.code, 'source_limited')
    t.equal(fault.retryAfter, expected)
  }
})

t.test('an endless answer is left, not stored', async (t) => {
  let closed = false
  const { url } = await upstream(t, (_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/plain' })
    const more = (): boolean => response.write('x'.repeat(65_536))
    response.on('drain', () => {
      while (more());
    })
    response.once('close', () => {
      closed = true
    })
    while (more());
  })
  t.equal((await failure(call(url))).code, 'answer_too_large')
  while (!closed) await new Promise((resolve) => setTimeout(resolve, 5))
  t.pass('the connection to the upstream is closed')
})

t.test('an upstream that is not there, or never answers, is a failure of the source', async (t) => {
  t.equal((await failure(call('http://127.0.0.1:1/x'))).code, 'source_error')
  t.equal((await failure(call('http://user:pass@127.0.0.1:1/x'))).code, 'source_error')
  const silent = await upstream(t, () => undefined)
  const controller = new AbortController()
  const waiting = failure(proxyTo(silent.url)({}, fixedContext({ signal: controller.signal })))
  while (silent.asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  controller.abort()
  t.equal((await waiting).code, 'source_error')
})
