import t, { type Test } from 'tap'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Upstream } from '../../../../src/engine/catalog/catalog.ts'
import { compileParameter } from '../../../../src/engine/catalog/parameter.ts'
import { ERRORS, Failure, InvalidParameter } from '../../../../src/engine/base/errors.ts'
import type { Answer, Arguments } from '../../../../src/engine/handler.ts'
import { createProxy } from '../../../../src/engine/http/proxy.ts'
import { fixedContext } from '../../../support/handler-context.ts'

const KEY = 'upstream-key-7f3a'

/** A real upstream on a free port, and what it was asked. */
async function upstream(t: Test, answer: (...args: Parameters<RequestListener>) => unknown) {
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

/** What the operator was told. */
const reported: string[] = []

type More = Partial<Omit<Parameters<typeof createProxy>[0], 'upstream'>>

function proxyTo(
  upstream: string | Partial<Upstream>,
  credential?: Upstream['credential'],
  secret: (name: string) => string | undefined = (name) => (name === 'ACME_TOKEN' ? KEY : undefined),
  more: More = {},
) {
  const given = typeof upstream === 'string' ? { url: upstream } : upstream
  return createProxy(
    {
      method: 'GET',
      parameters: [],
      body: undefined,
      response: {
        mediaType: undefined,
        maxSize: 1_000_000,
        statuses: [200],
        headers: [],
        stream: false,
        receiptEvent: false,
      },
      ...more,
      upstream: { url: '', headers: {}, credential, ...given },
    },
    { fetcher: fetch, secret, report: ({ message }) => reported.push(message) },
  )
}

async function call(
  upstream: string | Partial<Upstream>,
  args: Arguments = {},
  credential?: Upstream['credential'],
  more: More = {},
): Promise<Answer> {
  const answer = await proxyTo(upstream, credential, undefined, more)(args, fixedContext())
  if ('content' in answer && 'stream' in answer.content) throw new Error('an answer in pieces')
  return answer as Answer
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

t.test('fills the path with parameters and sends the others in the query, encoded', async (t) => {
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

t.test('keeps every value inside its place in the path', async (t) => {
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

t.test('sends the credential in the form the catalog names, and nothing of the buyer', async (t) => {
  const { url, asked } = await upstream(t, json('{}'))
  const secrets: Record<string, string> = { ACME_TOKEN: KEY, ACME_USER: 'grüße', ACME_APP: 'a+b&c' }
  for (const credential of [
    { kind: 'bearer', token: 'ACME_TOKEN' },
    { kind: 'header', values: { 'X_Api.Key': 'ACME_TOKEN', 'X-App': 'ACME_APP' } },
    { kind: 'query', values: { key: 'ACME_TOKEN', app: 'ACME_APP' } },
    { kind: 'basic', user: 'ACME_USER', password: 'ACME_TOKEN' },
    { kind: 'basic', user: 'ACME_TOKEN', password: undefined },
    undefined,
  ] as const)
    await proxyTo(url, credential, (name) => secrets[name])({ key: 'of the buyer' }, fixedContext())
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`
  t.strictSame(
    asked.map(({ headers }) => headers.authorization),
    [`Bearer ${KEY}`, undefined, undefined, basic(`grüße:${KEY}`), basic(`${KEY}:`), undefined],
  )
  t.match(asked[1]?.headers, { 'x_api.key': KEY, 'x-app': 'a+b&c' })
  t.strictSame(
    [...new URL(asked[2]?.url ?? '', url).searchParams],
    [
      ['key', KEY],
      ['app', 'a+b&c'],
    ],
    'a parameter of the buyer does not replace the credential',
  )
  for (const { headers, method } of asked) {
    t.equal(method, 'GET')
    t.notOk(Object.keys(headers).some((name) => /payment|cookie|referer|forwarded/.test(name)))
  }
})

t.test('answers not_configured without the credential, and with one that no header can carry', async (t) => {
  const { url, asked } = await upstream(t, json('{}'))
  const keyed = { kind: 'bearer', token: 'ACME_TOKEN' } as const
  for (const value of [undefined, 'line\nbreak']) {
    const fault = await failure(proxyTo(url, keyed, () => value)({}, fixedContext()))
    t.equal(fault.code, 'not_configured')
    t.notMatch(`${fault.stack}${String(fault.cause)}`, /ACME_TOKEN|break/)
  }
  t.equal(asked.length, 0)
})

t.test('fills headers from parameters, and repeats the key of a list', async (t) => {
  const { url, asked } = await upstream(t, json('{}'))
  const upstreamOf = {
    url: `${url}/pets?tag={tags*}&id[]={ids*}&q={q}`,
    headers: { 'Accept-Language': '{language}', 'Api-Version': '2026-11-22', Trace: 'v1-{trace}' },
  }
  await call(upstreamOf, { tags: ['a b', 'c&d'], ids: [1, 2], language: 'de', trace: 7, other: ['x', 'y'] })
  const [first] = asked
  t.strictSame(
    [...new URL(first?.url ?? '', url).searchParams],
    [
      ['tag', 'a b'],
      ['tag', 'c&d'],
      ['id[]', '1'],
      ['id[]', '2'],
      ['other', 'x,y'],
    ],
  )
  t.match(first?.headers, { 'accept-language': 'de', 'api-version': '2026-11-22', trace: 'v1-7' })
  await call(upstreamOf)
  t.notMatch(asked[1]?.headers['accept-language'], 'de')
  t.equal(asked[1]?.url, '/pets')
  await t.rejects(
    call(upstreamOf, { language: 'de\r\nX-Evil: 1' }),
    new InvalidParameter('language', 'has characters that no header can carry'),
  )
  t.equal(asked.length, 2)
})

t.test('sends the id of the payment as the idempotency key', async (t) => {
  const { url, asked } = await upstream(t, json('{}'))
  const payment = { id: 'pay_7', protocol: 'x402', network: 'base', payer: '0x1', account: 'key' } as const
  await proxyTo(url)({}, fixedContext({ payment }))
  await call(url)
  t.strictSame(
    asked.map(({ headers }) => headers['idempotency-key']),
    ['pay_7', undefined],
  )
})

t.test('follows redirects within the host of the upstream', async (t) => {
  const { url, asked } = await upstream(t, (request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://x')
    const target = { '/a': '/b?from=a', '/b': `${url}/c`, '/loop': '/loop', '/out': 'http://localhost:1/x' }[
      pathname
    ]
    if (target === undefined) return response.setHeader('content-type', 'application/json').end('{"ok":1}')
    return response.writeHead(307, { Location: target }).end()
  })
  const credential = { kind: 'query', values: { key: 'ACME_TOKEN' } } as const
  t.match(await call(`${url}/a`, {}, credential), { content: { text: '{"ok":1}' } })
  t.strictSame(
    asked.map((request) => request.url),
    [`/a?key=${KEY}`, `/b?from=a&key=${KEY}`, `/c?key=${KEY}`],
  )
  for (const [path, words] of [
    ['/out', /another host/],
    ['/loop', /in a loop/],
  ] as const) {
    const fault = await failure(call(url + path, {}, credential))
    t.equal(fault.code, 'upstream_misconfigured')
    t.match(fault.detail, words)
  }
})

t.test(
  'tells the buyer what the upstream says about a rejected request, without the credential',
  async (t) => {
    const said = { error: `no ${KEY}`, ['key ' + KEY]: [`${KEY}!`] }
    for (const [status, code] of [
      [400, 'upstream_rejected'],
      [404, 'not_found'],
      [409, 'upstream_rejected'],
      [410, 'not_found'],
      [422, 'upstream_rejected'],
    ] as const) {
      const { url } = await upstream(t, (_, response) =>
        response.writeHead(status, { 'Content-Type': 'application/problem+json' }).end(JSON.stringify(said)),
      )
      const fault = await failure(call(url, {}, { kind: 'bearer', token: 'ACME_TOKEN' }))
      t.equal(fault.code, code)
      t.notOk(ERRORS[fault.code].retryable)
      t.strictSame(fault.extra, { upstream: { status, body: { error: 'no ***', 'key ***': ['***!'] } } })
    }
    const long = await upstream(t, (_, response) =>
      response.writeHead(400, { 'Content-Type': 'text/plain' }).end('é'.repeat(100_000)),
    )
    const { extra } = await failure(call(long.url))
    t.strictSame(extra, { upstream: { status: 400, body: 'é'.repeat(4_000), truncated: true } })
    for (const type of ['text/html', 'image/png', 'text/plain; charset=klingon']) {
      const odd = await upstream(t, (_, response) =>
        response.writeHead(400, { 'Content-Type': type }).end('no'),
      )
      t.match((await failure(call(odd.url))).extra, { upstream: { status: 400 } })
    }
  },
)

t.test('reports to the operator that the upstream refuses the credential', async (t) => {
  for (const status of [401, 403]) {
    const { url } = await upstream(t, (_, response) => response.writeHead(status).end(`bad ${KEY}`))
    reported.length = 0
    const fault = await failure(call(url, {}, { kind: 'bearer', token: 'ACME_TOKEN' }))
    t.match(fault, { code: 'upstream_misconfigured', status: 502 })
    t.notOk(ERRORS[fault.code].retryable)
    t.strictSame(reported, [
      `upstream_misconfigured: ${new URL(url).host} does not accept our calls: it answers with status ${status}`,
    ])
    t.notMatch(JSON.stringify(fault.extra) + fault.detail, /127\.0\.0\.1|bad|7f3a/)
  }
})

/** A promise of the catalog about answers. */
function promising(mediaType: string | undefined, headers: readonly string[] = []): More {
  return {
    response: { mediaType, headers, maxSize: 1_000_000, statuses: [200], stream: false, receiptEvent: false },
  }
}

t.test('passes an answer on byte for byte under the media type of the upstream', async (t) => {
  const bom = '\ufeff{"a":1}'
  for (const [type, body, mediaType] of [
    ['application/json', '{ "b": 1.10,\n "a": "\\u00f8" }', undefined],
    [
      'application/json',
      '{"id":12345678901234567890,"a":1.0,"b":-0,"c":1E+2,"d":0.1234567890123456789}',
      undefined,
    ],
    ['application/vnd.acme+json; v=2', '{"a":1}', 'application/json'],
    ['application/json', bom, undefined],
    ['text/csv', 'a,b\n1,2\n', 'text/csv'],
    ['text/html; charset=utf-8', '<title>ø</title>', 'text/html'],
    ['text/plain; charset="ISO-8859-1"', Buffer.from([0xf8]), undefined],
    ['text/plain; charset=klingon', Buffer.from([0xf8]), undefined],
    ['image/png', Buffer.from([0x89, 0x50, 0, 0xff]), 'image/png'],
    ['application/pdf', Buffer.from('%PDF'), undefined],
  ] as const) {
    const { url } = await upstream(t, (_, response) =>
      response.writeHead(200, { 'Content-Type': type }).end(body),
    )
    const answer = await call(url, {}, undefined, promising(mediaType))
    if (!('content' in answer)) return t.fail('an answer of an upstream has no envelope')
    const { content } = answer
    t.equal(content.type, type)
    const bytes = 'bytes' in content ? content.bytes : Buffer.from(content.text)
    t.ok(Buffer.from(body).equals(bytes), type)
  }
})

t.test('passes on the headers that the catalog names, except those of the connection', async (t) => {
  const { url } = await upstream(t, (_, response) =>
    response
      .writeHead(200, { 'Content-Type': 'text/plain', ETag: '"7"', 'X-Inner': 'a', 'Set-Cookie': 'b=c' })
      .end('x'),
  )
  const answer = await call(
    url,
    {},
    undefined,
    promising(undefined, ['etag', 'Link', 'Set-Cookie', 'Content-Length']),
  )
  t.strictSame(answer, { content: { status: 200, type: 'text/plain', text: 'x', headers: { etag: '"7"' } } })
})

t.test('sends the method and the body of the operation', async (t) => {
  const bodies: string[] = []
  const { url, asked } = await upstream(t, async (request, response) => {
    bodies.push(Buffer.concat(await request.toArray()).toString('latin1'))
    response.writeHead(204).end()
  })
  const inBody = (name: string) => compileParameter(name, 'body', { type: 'string' })
  const whole = { form: 'whole', maxSize: 1000, schema: undefined, example: undefined } as const
  const members = { ...whole, form: 'properties' } as const
  const two = { parameters: [inBody('To'), inBody('tags')] }
  for (const [more, args] of [
    [
      { method: 'PUT', body: { ...whole, kind: 'json', mediaType: 'application/json' } },
      { body: [{ a: 1 }], id: 7 },
    ],
    [
      { method: 'POST', body: { ...whole, kind: 'bytes', mediaType: 'image/png' } },
      { body: new Uint8Array([0, 255]) },
    ],
    [{ method: 'POST', body: { ...whole, kind: 'text', mediaType: 'text/plain' } }, { body: 'ø' }],
    [
      { method: 'POST', body: { ...members, kind: 'json', mediaType: 'application/json' }, ...two },
      { To: 'ann', id: 7 },
    ],
    [
      {
        method: 'PATCH',
        body: { ...members, kind: 'form', mediaType: 'application/x-www-form-urlencoded' },
        ...two,
      },
      { To: 'a b&c', tags: ['x', 'y'], id: 7 },
    ],
    [{ method: 'DELETE' }, { id: 7 }],
  ] as const)
    t.strictSame(await call(`${url}/x`, args, undefined, more), {
      content: { status: 204, type: 'text/plain; charset=utf-8', text: '', headers: {} },
    })
  t.strictSame(
    asked.map(({ method, url: target, headers }) => [method, target, headers['content-type']]),
    [
      ['PUT', '/x?id=7', 'application/json'],
      ['POST', '/x', 'image/png'],
      ['POST', '/x', 'text/plain'],
      ['POST', '/x?id=7', 'application/json'],
      ['PATCH', '/x?id=7', 'application/x-www-form-urlencoded'],
      ['DELETE', '/x?id=7', undefined],
    ],
  )
  t.strictSame(bodies, ['[{"a":1}]', '\0ÿ', 'Ã¸', '{"To":"ann"}', 'To=a+b%26c&tags=x&tags=y', ''])
})

t.test('redirects a POST as fetch does', async (t) => {
  for (const [status, expected] of [
    [303, 'GET '],
    [302, 'GET '],
    [307, 'POST {"a":1}'],
  ] as const) {
    const seen: string[] = []
    const { url } = await upstream(t, async (request, response) => {
      seen.push(`${request.method} ${Buffer.concat(await request.toArray()).toString()}`)
      if (request.url === '/a') response.writeHead(status, { Location: '/b' }).end()
      else response.setHeader('content-type', 'application/json').end('{}')
    })
    const body = {
      form: 'whole',
      kind: 'json',
      mediaType: 'application/json',
      maxSize: 1000,
      schema: undefined,
      example: undefined,
    } as const
    await call(`${url}/a`, { body: { a: 1 } }, undefined, { method: 'POST', body })
    t.strictSame(seen, ['POST {"a":1}', expected])
  }
})

t.test('refuses to sell an invalid answer', async (t) => {
  const status =
    (code: number, headers: Record<string, string> = {}): RequestListener =>
    (_, response) =>
      response.writeHead(code, { 'Content-Type': 'application/json', ...headers }).end('{"secret":"inner"}')
  const cases: readonly (readonly [string, RequestListener, string, number])[] = [
    ['broken', status(500), 'source_error', 502],
    ['overloaded', status(503), 'source_error', 502],
    ['moved to nowhere', status(301), 'source_error', 502],
    ['moved elsewhere', status(301, { Location: 'http://127.0.0.1:1/x' }), 'upstream_misconfigured', 502],
    ['empty', json(''), 'source_error', 502],
    ['empty', json('', 'text/plain'), 'source_error', 502],
    ['a page', json('<!doctype html><title>Log in</title>', 'text/html'), 'source_error', 502],
    ['a page', json('<html/>', 'Text/HTML; charset=utf-8'), 'source_error', 502],
    ['a page', json('<html/>', 'application/xhtml+xml'), 'source_error', 502],
    ['no type', (_, response) => response.writeHead(200).end('x'), 'source_error', 502],
    ['not JSON', json('{"a":'), 'source_error', 502],
    ['not JSON', json('null null'), 'source_error', 502],
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
    const fault = await failure(call(`${url}/hidden/path`, {}, { kind: 'bearer', token: 'ACME_TOKEN' }))
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

t.test('passes on a limit of the upstream with its wait', async (t) => {
  for (const [said, expected] of [
    ['7', 7],
    ['999999', 3600],
    ['Wed, 21 Oct 2026 07:28:00 GMT', 30],
    ['Fri, 20 Nov 2026 20:01:30 GMT', 90],
    ['-1', 30],
    ['', 30],
  ] as const) {
    const { url } = await upstream(t, (_, response) => response.writeHead(429, { 'Retry-After': said }).end())
    const fault = await failure(call(url))
    t.equal(fault.code, 'source_limited')
    t.equal(fault.retryAfter, expected)
  }
})

t.test('stops reading an endless answer', async (t) => {
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

t.test('reports an unreachable or silent upstream as a failure of the source', async (t) => {
  t.equal((await failure(call('http://127.0.0.1:1/x'))).code, 'source_error')
  t.equal((await failure(call('http://user:pass@127.0.0.1:1/x'))).code, 'source_error')
  const silent = await upstream(t, () => undefined)
  const controller = new AbortController()
  const waiting = failure(proxyTo(silent.url)({}, fixedContext({ signal: controller.signal })))
  while (silent.asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  controller.abort()
  t.equal((await waiting).code, 'source_error')
})
