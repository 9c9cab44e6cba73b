import t, { type Test } from 'tap'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fillPath } from '../../../../src/engine/catalog/catalog.ts'
import { loadCatalog } from '../../../../src/engine/catalog/load-catalog.ts'
import { documentNames } from '../../../../src/engine/documents/all.ts'
import type { Json } from '../../../../src/engine/base/json.ts'
import { PAID, SAMPLES } from '../../../fixtures/specification.ts'
import { at, items } from '../../../support/documents.ts'
import { startServer } from '../../../support/server.ts'
import { dial, exchange, readAnswer } from '../../../support/http.ts'

const FILE = fileURLToPath(new URL('../../../../catalog.yaml', import.meta.url))
const { catalog } = loadCatalog(FILE, { handlers: undefined, documents: documentNames })

/** Words that only programs, never people, put into an answer. */
const LEAKS =
  /node_modules|node:internal|\bat [\w.<>]+ \((?:file:|node:|\/)|\.[jt]s:\d+|TypeError|SyntaxError|ReferenceError|ECONN|ENOENT|\bundici\b|\bajv\b|\bkoa\b|0x[0-9a-f]{64}\b/i

const server = await startServer({ args: ['--sandbox', '--offline'] })
t.teardown(() => server.stop())
const { url } = server

interface Asked {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Json | undefined
}

/** One request; whatever it is answered, it says that this is a sandbox, is open to browsers, and leaks nothing. */
async function ask(t: Test, target: string, options: RequestInit = {}, base = url): Promise<Asked> {
  const response = await fetch(base + target, { redirect: 'manual', ...options })
  const text = await response.text()
  const { status, headers } = response
  const name = `${options.method ?? 'GET'} ${target.slice(0, 80)}`
  t.equal(headers.get('ratecard-sandbox'), '1', `${name} says that it is a sandbox`)
  t.equal(headers.get('access-control-allow-origin'), '*', `${name} can be read in browsers`)
  t.match(
    headers.get('access-control-expose-headers'),
    /PAYMENT-REQUIRED.*PAYMENT-RESPONSE.*WWW-Authenticate.*Payment-Receipt/,
  )
  const all = text + JSON.stringify([...headers])
  t.equal(LEAKS.exec(all)?.[0], undefined, `${name} leaks nothing`)
  const isJson = /json/.test(headers.get('content-type') ?? '')
  return { status, headers, text, json: isJson && text !== '' ? JSON.parse(text) : undefined }
}

function challengeOf({ headers }: Asked): Json {
  return JSON.parse(Buffer.from(headers.get('payment-required') ?? '', 'base64').toString('utf8'))
}

/** A concrete path: templates filled with their examples. */
function concrete(path: string): string {
  const route = catalog.routes.find((each) => each.path === path)
  return fillPath(path, (name) => String(route?.parameters.find((each) => each.name === name)?.example))
}

/** A query of examples for what is required, from the catalog. */
function query(path: string): string {
  const route = catalog.routes.find((each) => each.path === path)
  const given = (route?.parameters ?? []).filter(({ in: place, required }) => place === 'query' && required)
  return new URLSearchParams(
    given.map(({ name, example }): [string, string] => [name, String(example)]),
  ).toString()
}

/** The offer without the one member that is new each time. */
function withoutToken(challenge: Json): string {
  const token = at(challenge, 'extensions', 'redelivery', 'info', 'token')
  t.type(token, 'string')
  return JSON.stringify(challenge).replace(JSON.stringify(token), '')
}

t.test(
  'asks for its price on every paid path of the specification, whatever the request carries',
  async (t) => {
    for (const { path, price } of PAID) {
      const target = concrete(path)
      const got = await ask(t, target)
      t.equal(got.status, 402, target)
      t.equal(got.headers.get('content-type'), 'application/problem+json')
      t.equal(got.headers.get('cache-control'), 'no-store')
      t.equal(got.headers.get('vary'), 'Accept')
      const challenge = challengeOf(got)
      t.equal(at(challenge, 'x402Version'), 2)
      t.equal(at(challenge, 'resource', 'url'), url + target)
      t.equal(
        at(challenge, 'accepts', 0, 'amount'),
        String(Math.round(Number(price) * 1e6)),
        `${target} costs ${price}`,
      )
      t.equal(at(got.json, 'accepts', 0, 'maxAmountRequired'), at(challenge, 'accepts', 0, 'amount'))
      t.match(got.json, {
        status: 402,
        code: 'payment_required',
        charged: 'no',
        price: { amount: Number(price).toFixed(6), currency: 'USD' },
      })
      const page = at(got.json, 'docs')
      const docs = await ask(t, new URL(typeof page === 'string' ? page : '').pathname)
      t.match(
        docs.text.replaceAll('&#x27;', "'").replaceAll('&#x3D;', '='),
        `{ maxAmountPerPayment: '$${shorten(price)}' }`,
        target,
      )

      const head = await ask(t, target, { method: 'HEAD' })
      t.equal(head.status, 402)
      t.equal(head.text, '')
      t.strictSame(withoutToken(challengeOf(head)), withoutToken(challenge))
      const varying = ['date', 'payment-required', 'connection', 'keep-alive', 'x-request-id']
      // Each challenge of MPP has an end, and an id that binds it.
      const lasting = (value: string): string => value.replace(/(id|expires|opaque)="[^"]*"/g, '$1')
      const names = (asked: Asked): unknown =>
        Object.fromEntries(
          [...asked.headers].flatMap(([name, value]) =>
            varying.includes(name) ? [] : [[name, lasting(value)]],
          ),
        )
      t.strictSame(names(head), names(got), `HEAD ${target} has the headers of GET`)

      for (const strange of ['?', '?a=1&a=2', `?${query(path)}`, '?%zz=%&&', `?x=${'y'.repeat(9_000)}`]) {
        t.equal((await ask(t, target + strange)).status, 402, target + strange.slice(0, 40))
      }
    }
  },
)

t.test('tells a prober of a template or an impossible value a path that works', async (t) => {
  for (const value of ['%7Bappid%7D', ':appid', 'abc', '0', '99999999999']) {
    const got = await ask(t, `/paid/gamestore/app/${value}`)
    t.equal(got.status, 402, value)
    const challenge = challengeOf(got)
    t.equal(at(challenge, 'resource', 'url'), `${url}/paid/gamestore/app/730`, value)
    const bazaar = at(challenge, 'extensions', 'bazaar')
    t.strictSame(at(bazaar, 'info', 'input', 'pathParams'), { appid: '730' })
    t.equal(at(bazaar, 'routeTemplate'), '/paid/gamestore/app/:appid')
    t.match(at(got.json, 'would_fail'), { status: 422, code: 'parameters_invalid' })
  }
  const real = await ask(t, '/paid/gamestore/app/440')
  t.equal(at(challengeOf(real), 'resource', 'url'), `${url}/paid/gamestore/app/440`)
  // A wrong query leaves the path as it is.
  const query = await ask(t, '/paid/gamestore/deals?count=many')
  t.equal(at(challengeOf(query), 'resource', 'url'), `${url}/paid/gamestore/deals`)
})

t.test('answers reading methods only, and tells browsers so', async (t) => {
  const places = [
    concrete('/paid/gamestore/app/{appid}'),
    '/paid/ping',
    '/sample/ping',
    '/health',
    '/openapi.json',
    '/',
  ]
  for (const path of places) {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const got = await ask(t, path, { method, ...(method === 'DELETE' ? {} : { body: '{"a":1}' }) })
      t.equal(got.status, 405, `${method} ${path}`)
      t.equal(got.headers.get('allow'), 'GET, HEAD, OPTIONS')
      t.match(got.json, { status: 405, code: 'method_not_allowed', charged: 'no' })
      t.equal(got.headers.get('payment-required'), null)
    }
    const preflight = await ask(t, path, {
      method: 'OPTIONS',
      headers: {
        Origin: 'https://app.example',
        'Access-Control-Request-Method': 'GET',
        'Access-Control-Request-Headers': 'payment-signature',
      },
    })
    t.equal(preflight.status, 204, `OPTIONS ${path}`)
    t.equal(preflight.text, '')
    t.equal(preflight.headers.get('access-control-allow-methods'), 'GET, HEAD, OPTIONS')
    for (const name of ['PAYMENT-SIGNATURE', 'X-PAYMENT', 'Authorization', 'Content-Type']) {
      t.match(preflight.headers.get('access-control-allow-headers'), name)
    }
  }
})

t.test('serves free paths without asking for or reading a payment', async (t) => {
  const payments: Record<string, string>[] = [
    {},
    { 'PAYMENT-SIGNATURE': 'garbage' },
    { 'PAYMENT-SIGNATURE': 'e30=', Authorization: 'Payment e30' },
    { 'X-PAYMENT': 'old', Authorization: 'Bearer x' },
  ]
  const samples = SAMPLES.map(({ path }) => `${path}?${query(path)}`)
  for (const path of [...samples, '/health', '/', '/llms.txt']) {
    const statuses = new Set<number>()
    for (const headers of payments) {
      const got = await ask(t, path, { headers })
      statuses.add(got.status)
      t.equal(got.headers.get('payment-required'), null)
      t.equal(got.headers.get('payment-response'), null)
    }
    t.equal(statuses.size, 1, `${path}: payments change nothing`)
    const [status] = statuses
    t.ok(status === 200 || status === 422 || status === 501, `${path} is ${status}`)
  }
})

t.test('wraps a free answer in its envelope', async (t) => {
  const got = await ask(t, '/sample/util/workday?country=de')
  t.equal(got.status, 200)
  t.match(got.json, { endpoint: '/sample/util/workday', preview: true, full: { path: '/paid/util/workday' } })
  t.equal(got.headers.get('cache-control'), 'no-cache')
  const head = await ask(t, '/sample/util/workday?country=de', { method: 'HEAD' })
  t.equal(head.status, 200)
  t.equal(head.text, '')
})

t.test('names wrong parameters uncharged, and foretells them in the 402', async (t) => {
  const wanted = {
    detail: [
      {
        type: 'value_error',
        loc: ['query', 'country'],
        msg: 'country must be an ISO 3166-1 alpha-2 code',
        input: 'Germany',
        ctx: { error: {} },
      },
    ],
    charged: 'no',
    code: 'parameters_invalid',
    hint: 'detail names each parameter and what it should be.',
    retryable: false,
  }
  const sample = await ask(t, '/sample/util/workday?country=Germany')
  t.equal(sample.status, 422)
  t.equal(sample.headers.get('content-type'), 'application/json; charset=utf-8')
  t.strictSame(sample.json, wanted)
  const paid = await ask(t, '/paid/util/workday?country=Germany&days=x')
  t.equal(paid.status, 402)
  t.equal(at(paid.json, 'would_fail', 'status'), 422)
  t.equal(at(paid.json, 'would_fail', 'code'), 'parameters_invalid')
  t.strictSame(
    items(at(paid.json, 'would_fail', 'detail')).map((item) => at(item, 'loc')),
    [
      ['query', 'country'],
      ['query', 'days'],
    ],
  )
  const path = await ask(t, '/paid/gamestore/app/abc')
  t.equal(path.status, 402)
  t.equal(at(challengeOf(path), 'resource', 'url'), `${url}/paid/gamestore/app/730`, 'one that can be paid')
  const missing = await ask(t, '/paid/util/json')
  t.strictSame(at(missing.json, 'would_fail', 'detail'), [
    { type: 'missing', loc: ['query', 'op'], msg: 'Field required', input: null },
  ])
  t.equal(at((await ask(t, '/paid/util/workday?country=DE')).json, 'would_fail'), undefined)
  for (const word of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    t.equal(at((await ask(t, `/paid/ping?nonce=${word}`)).json, 'would_fail'), undefined, word)
  }
})

t.test('serves every document of the catalog at one address, cacheable', async (t) => {
  for (const [name, { paths, planned }] of Object.entries(catalog.documents)) {
    // Its proof is the operator's: without one there is nothing to serve.
    if (name === 'mcp-registry-auth') continue
    for (const path of paths) {
      const got = await ask(t, path)
      if (planned) {
        t.equal(got.status, 501, `${path} is announced`)
        continue
      }
      t.equal(got.status, 200, path)
      if (name === 'health') {
        t.match(got.json, { status: 'ok' })
        continue
      }
      if (name === 'status-json' || name === 'stats') {
        t.match(got.json, { sandbox: true, checked_at: /Z$/ })
        if (name === 'status-json')
          t.strictSame(at(got.json, 'unavailable'), [], 'every route of the catalog is served')
        t.equal(got.headers.get('cache-control'), 'no-store')
        continue
      }
      if (name === 'status') {
        t.equal(got.headers.get('cache-control'), 'no-cache')
        continue
      }
      t.equal(got.headers.get('cache-control'), 'public, max-age=300', path)
      const etag = got.headers.get('etag') ?? ''
      t.match(etag, /^W\/"[\w-]{27}"$/)
      for (const match of [etag, etag.slice(2), '*', `"other", ${etag}`]) {
        const again = await ask(t, path, { headers: { 'If-None-Match': match } })
        t.equal(again.status, 304, `${path} ${match}`)
        t.equal(again.text, '')
        t.equal(again.headers.get('etag'), etag)
        t.equal(again.headers.get('cache-control'), 'public, max-age=300')
      }
      t.equal((await ask(t, path, { headers: { 'If-None-Match': '"other"' } })).status, 200)
      const head = await ask(t, path, { method: 'HEAD' })
      t.equal(head.status, 200)
      t.equal(head.text, '')
      for (const header of [
        'content-length',
        'content-encoding',
        'etag',
        'content-type',
        'link',
        'vary',
        'cache-control',
      ])
        t.equal(head.headers.get(header), got.headers.get(header), `HEAD ${path} ${header}`)
      t.equal((await ask(t, `${path}?v=2`)).text, got.text, 'a query changes nothing')
    }
  }
})

t.test('lists for registries what the 402 offers', async (t) => {
  const listing = (await ask(t, '/x402-resources')).json
  const listed = items(at(listing, 'items'))
  t.equal(listed.length, at(listing, 'pagination', 'total'))
  t.ok(listed.length >= 20)
  for (const item of listed) {
    const resource = at(item, 'resource')
    if (typeof resource !== 'string') throw new Error('an item has no address')
    const challenge = challengeOf(await ask(t, resource.slice(url.length)))
    t.strictSame(at(item, 'accepts'), at(challenge, 'accepts'), resource)
    // The header of a 402 has less room for examples and descriptions.
    const [listing, issued] = [item, challenge].map((each) => at(each, 'extensions', 'bazaar'))
    t.strictSame(at(listing, 'info', 'input'), at(issued, 'info', 'input'))
    t.equal(at(listing, 'routeTemplate'), at(issued, 'routeTemplate'))
    t.equal(at(challenge, 'resource', 'url'), resource)
    for (const part of ['mimeType', 'serviceName'])
      t.strictSame(at(item, part), at(challenge, 'resource', part))
    const [whole, cut] = [at(item, 'description'), at(challenge, 'resource', 'description')].map(String)
    t.ok(whole?.startsWith(cut ?? ''), 'the same words')
  }
  const manifest = (await ask(t, '/.well-known/x402')).json
  t.strictSame(
    at(manifest, 'resources'),
    listed.map((item) => at(item, 'resource')),
  )
})

t.test('serves every document from the origin and at its old names', async (t) => {
  const root = await ask(t, '/')
  const links = Object.fromEntries(
    [...(root.headers.get('link') ?? '').matchAll(/<([^>]*)>; rel="([^"]*)"/g)].map(([, to, rel]) => [
      rel,
      to,
    ]),
  )
  t.match(links, {
    'service-desc': '/openapi.json',
    'service-doc': '/docs',
    'api-catalog': '/.well-known/api-catalog',
    describedby: '/llms.txt',
    ard: '/.well-known/ard.json',
    'ai-catalog': '/.well-known/ai-catalog.json',
  })
  t.equal(root.headers.get('vary'), 'Accept-Encoding, Accept')
  for (const to of Object.values(links)) t.equal((await ask(t, String(to))).status, 200, String(to))
  const linkset = await ask(t, '/.well-known/api-catalog', { method: 'HEAD' })
  t.equal(linkset.headers.get('link'), `<${url}/.well-known/api-catalog>; rel="api-catalog"`)
  t.equal(
    linkset.headers.get('content-type'),
    'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
  )
  for (const { paths } of Object.values(catalog.documents)) {
    const texts = await Promise.all(paths.map(async (path) => (await ask(t, path)).text))
    t.equal(new Set(texts).size, 1, paths.join(' = '))
  }
})

t.test('answers every address that a document names on this origin', async (t) => {
  const documents = ['/.well-known/x402', '/.well-known/agent-card.json', '/.well-known/ard.json']
  const more = ['/.well-known/api-catalog', '/robots.txt', '/sitemap.xml', '/.well-known/security.txt']
  for (const path of [...documents, ...more]) {
    const { text } = await ask(t, path)
    const addresses = new Set(text.match(/https?:\/\/localhost:\d+[^\s"<]*/g) ?? [])
    t.not(addresses.size, 0, path)
    for (const address of addresses) {
      t.ok(address.startsWith(url), address)
      const target = address
        .slice(url.length)
        .replace('{appid}', '730')
        .replace(/[).,;]+$/, '')
      if (/^\/mcp\/\w+$/.test(target)) {
        // A tool server answers what is posted.
        t.equal((await fetch(url + target)).status, 405, `${path} names ${address}`)
        continue
      }
      const { status } = await ask(t, target || '/')
      t.equal(status, target.startsWith('/paid/') ? 402 : 200, `${path} names ${address}`)
    }
  }
})

t.test('answers 404 on unknown paths, free of charge', async (t) => {
  const paths = [
    '/paid',
    '/paid/',
    '/paid/ping/',
    '/paid//ping',
    '/paid/Ping',
    '/PAID/ping',
    '/paid/%70ing',
    '/paid/ping%2f',
    '/paid/ping;x',
    '/paid/nothing',
    '/sample',
    '/sample/nothing',
    '/paid/gamestore/app',
    '/paid/gamestore/app/730/reviews',
    '/paid/gamestore/app/%37%33%30',
    '/.well-known/nothing',
    '/.well-known/mcp-registry-auth',
    '/.well-known/security.txt/',
    '/.well-known/',
    '/.env',
    '/.git/config',
    '/wp-login.php',
    '/payments/unknown-id',
    '/constructor',
    '/__proto__',
    '/openapi.json/',
    '/etc/passwd',
  ]
  for (const path of paths) {
    const got = await ask(t, path)
    t.equal(got.status, 404, path)
    t.equal(got.headers.get('content-type'), 'application/problem+json')
    t.match(got.json, { status: 404, charged: 'no', retryable: false })
    t.equal(got.headers.get('payment-required'), null)
    t.equal(got.headers.get('www-authenticate'), null)
    // A payment's path exists for every id, to be read.
    const posted = path.startsWith('/payments/') ? 405 : 404
    t.equal((await ask(t, path, { method: 'POST', body: 'x' })).status, posted, `POST ${path}`)
  }
})

t.test('accepts one spelling of a path on the wire', async (t) => {
  for (const target of [
    '/paid/../paid/ping',
    '/./paid/ping',
    '/paid/%2e%2e/paid/ping',
    '/paid/ping#x',
    '/paid\\ping',
    '/paid/ping%00',
    '*',
  ]) {
    const got = await exchange(url, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    t.ok([400, 404].includes(got.status), `${target} is ${got.status}`)
    t.equal(got.headers['payment-required'], undefined)
  }
  const absolute = await exchange(
    url,
    'GET http://evil.example/paid/ping?nonce=1 HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n',
  )
  t.equal(absolute.status, 402)
  t.notMatch(JSON.stringify(absolute), 'evil.example')
})

t.test('keeps the Host of a request out of documents and offers', async (t) => {
  const evil = {
    Host: 'evil.example',
    'X-Forwarded-Host': 'evil.example',
    'X-Forwarded-Proto': 'gopher',
    Forwarded: 'host=evil.example',
  }
  const documents = Object.values(catalog.documents).flatMap(({ paths }) => paths)
  for (const path of [...documents, '/paid/ping', '/sample/ping', '/nothing']) {
    for (const accept of ['*/*', 'text/html']) {
      const headers = Object.entries({ ...evil, Accept: accept }).map(
        ([name, value]) => `${name}: ${value}\r\n`,
      )
      const got = await exchange(url, `GET ${path} HTTP/1.1\r\n${headers.join('')}Connection: close\r\n\r\n`)
      t.ok(got.status >= 200, path)
      const offer = Buffer.from(got.headers['payment-required'] ?? '', 'base64').toString('utf8')
      t.notMatch(JSON.stringify(got) + offer, /evil\.example|gopher/, path)
    }
  }
})

t.test('refuses headers beyond the limit in JSON, and serves the next request', async (t) => {
  const long = `GET /paid/ping HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(80_000)}\r\n\r\n`
  const got = await exchange(url, long)
  t.equal(got.status, 431)
  t.equal(got.headers['content-type'], 'application/problem+json')
  t.equal(got.headers['ratecard-sandbox'], '1')
  t.match(JSON.parse(got.body), { status: 431, code: 'headers_too_large', charged: 'no' })
  const path = await exchange(url, `GET /paid/ping?nonce=${'x'.repeat(80_000)} HTTP/1.1\r\nHost: x\r\n\r\n`)
  t.equal(path.status, 431)
  t.equal(
    (await ask(t, `/paid/util/guard?text=${'x'.repeat(60_000)}`)).status,
    402,
    'long texts travel in the URL',
  )
})

t.test('refuses malformed HTTP in JSON, and serves the next request', async (t) => {
  for (const bytes of [
    'hello\r\n\r\n',
    'GET /paid/ping HTTP/9.9\r\nHost: x\r\n\r\n',
    'GET /paid/ping HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n',
    'GET /paid/ping HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
    'GET /paid/ping HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n',
    'GET /paid/\0ping HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /paid/p ing HTTP/1.1\r\nHost: x\r\n\r\n',
    Buffer.from('160301020001000001fc0303', 'hex'),
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ]) {
    const got = await exchange(url, bytes)
    t.equal(got.status, 400, JSON.stringify(bytes.toString()).slice(0, 60))
    t.match(JSON.parse(got.body), { status: 400, code: 'request_malformed', charged: 'no' })
    t.equal(got.headers['connection'], 'close')
    t.equal(got.headers['ratecard-sandbox'], '1')
    t.notMatch(got.body, /HPE|llhttp|parse/i)
  }
  t.equal((await exchange(url, 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n')).status, 400, 'no Host')
  t.equal((await ask(t, '/health')).status, 200)
})

t.test('keeps serving when a client breaks off', async (t) => {
  for (const part of ['', 'G', 'GET /paid/ping HTTP/1.1\r\nHo']) {
    const socket = await dial(url)
    socket.write(part)
    socket.resetAndDestroy()
    if (!socket.closed) await once(socket, 'close')
  }
  t.equal((await ask(t, '/health')).status, 200)
})

t.test('waits for a slow client and serves others meanwhile', async (t) => {
  const slow = await dial(url)
  const request = 'GET /paid/ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  for (const character of request.slice(0, -2)) slow.write(character)
  t.equal((await ask(t, '/paid/ping')).status, 402)
  slow.write(request.slice(-2))
  t.equal((await readAnswer(slow)).status, 402)
})

t.test('serves many requests on one connection, and several at once in order', async (t) => {
  const socket = await dial(url)
  const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
  socket.write(get('/health') + get('/nothing') + get('/paid/ping') + get('/health', 'Connection: close\r\n'))
  const { status, body } = await readAnswer(socket)
  const later = [...body.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => Number(match[1]))
  t.strictSame([status, ...later], [200, 404, 402, 200])
})

t.test('skips an unexpected body, and reads the next request correctly', async (t) => {
  const socket = await dial(url)
  socket.write(
    'GET /paid/ping HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\nGET /admin HTTP/1.1\r\nHost: y\r\nGET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  )
  const { status, body } = await readAnswer(socket)
  t.equal(status, 402)
  t.strictSame(
    [...body.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => Number(match[1])),
    [200],
  )
})

/** A browser's own words. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'

t.test('shows a browser what is sold, for how much, and the free preview', async (t) => {
  const got = await ask(t, "/paid/util/workday?country=DE&x='%22%3Cscript%3E", {
    headers: { Accept: BROWSER },
  })
  t.equal(got.status, 402)
  t.equal(got.headers.get('content-type'), 'text/html; charset=utf-8')
  t.equal(got.headers.get('vary'), 'Accept')
  t.equal(got.headers.get('cache-control'), 'no-store')
  t.match(got.text, /^<!doctype html>/)
  t.match(got.text, '$0.002')
  t.match(got.text, 'Returns working days, weekends and public holidays')
  t.match(got.text, `<a href="${url}/sample/util/workday">`)
  t.match(got.text, `curl -i '${url}/paid/util/workday?country&#x3D;DE&amp;x&#x3D;%27%22%3Cscript%3E'`)
  t.match(got.text, 'wrapFetchWithPayment')
  t.match(got.text, 'play money')
  t.notMatch(got.text, /<script(?! type="module" src="\/pay\.js"><\/script>)/i)
  const policy = got.headers.get('content-security-policy') ?? ''
  t.match(policy, /^default-src 'none'; style-src 'sha256-[\w+/]+='/)
  t.notMatch(policy, 'unsafe')
  const json = await ask(t, '/paid/util/workday?country=DE')
  t.strictSame(withoutToken(challengeOf(got)), withoutToken(challengeOf(json)), 'the same offer for both')

  const raw = await exchange(
    url,
    `GET /paid/ping?x=';touch<b>"$(id) HTTP/1.1\r\nHost: x\r\nAccept: ${BROWSER}\r\nConnection: close\r\n\r\n`,
  )
  t.match(raw.body, `'${url}/paid/ping?x&#x3D;%27;touch&lt;b&gt;&quot;$(id)'`, 'nothing ends the quotes')

  const head = await ask(t, '/paid/util/workday', { method: 'HEAD', headers: { Accept: BROWSER } })
  t.equal(head.headers.get('content-type'), 'text/html; charset=utf-8')
  t.equal(head.text, '')
})

t.test('tells on the page when a request would be refused', async (t) => {
  const wrong = await ask(t, '/paid/util/workday?country=<b>Germany</b>', { headers: { Accept: BROWSER } })
  t.match(wrong.text, 'country: country must be an ISO 3166-1 alpha-2 code')
  t.notMatch(wrong.text, '<b>')
})

t.test('has a page for every paid path', async (t) => {
  for (const { path, price } of PAID) {
    const got = await ask(t, concrete(path), { headers: { Accept: BROWSER } })
    t.equal(got.status, 402)
    t.match(got.text, `$${shorten(price)}`)
    t.match(got.text, '</html>')
  }
})

t.test('serves JSON to programs, whatever else they accept', async (t) => {
  for (const [accept, type] of [
    ['*/*', 'application/problem+json'],
    ['application/json', 'application/problem+json'],
    ['application/json, text/html;q=0.9', 'application/problem+json'],
    ['text/html;q=0', 'application/problem+json'],
    ['text/plain', 'application/problem+json'],
    ['text/html', 'text/html; charset=utf-8'],
    [';;;,,text/html;q=x', undefined],
  ] as const) {
    const got = await ask(t, '/paid/ping', { headers: { Accept: accept } })
    t.equal(got.status, 402, accept)
    if (type !== undefined) t.equal(got.headers.get('content-type'), type, accept)
  }
  const none = await exchange(url, 'GET /paid/ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  t.equal(none.headers['content-type'], 'application/problem+json')
})

t.test('names the path and the methods that were probably meant', async (t) => {
  const missed = await ask(t, '/paid/pin')
  t.equal(missed.status, 404)
  t.match(missed.json, {
    code: 'route_not_found',
    detail: /— did you mean "\/paid\/ping"\?; http\S+\/llms\.txt lists all paths$/,
  })
  t.match((await ask(t, '/nothing-like-any-other-path')).json, { detail: /^there is nothing at this path; / })
  const method = await ask(t, '/paid/ping', { method: 'DELETE' })
  t.equal(method.status, 405)
  t.match(method.json, { detail: 'DELETE is not served here: GET, HEAD, OPTIONS are' })
})

t.test('says that a route lacks credentials, and takes no money for it', async (t) => {
  const directory = t.testdir({
    'catalog.yaml': `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] } }
routes:
  /paid/keyed: { price: 0.01, handler: answer, summary: Needs a key, sources: [keyed], sample: true }
  /paid/open: { price: 0.01, handler: other, summary: Needs none }
  /clock: { price: free, handler: clock, summary: Tells the time }
  /broken: { price: free, handler: broken, summary: Fails }
  /ugly: { price: free, handler: ugly, summary: 'Answers nonsense' }
documents: { index: /, health: /health, openapi: /openapi.json, llms: /llms.txt }
sources: { keyed: { title: Keyed, resale: allowed, credentials: [SHOP_KEY] } }
`,
    handlers: {
      'package.json': '{"type":"module"}',
      'index.js': `const answer = async () => ({ source: [{ name: 'computed' }], body: { ok: true } })
export const handlers = {
  answer, other: answer, clock: answer,
  broken: async () => { throw new TypeError('secret at /srv/shop/node_modules/x.js:1') },
  ugly: async () => undefined,
}
`,
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
  const unpaid = await ask(t, '/paid/keyed', {}, shop.url)
  t.equal(unpaid.status, 402)
  t.match(at(unpaid.json, 'would_fail'), { status: 503, code: 'not_configured' })
  const sample = await ask(t, '/sample/keyed', {}, shop.url)
  t.equal(sample.status, 503)
  t.match(sample.json, { code: 'not_configured', charged: 'no', retryable: false })
  t.notMatch(unpaid.text + sample.text, 'SHOP_KEY')
  t.equal(at((await ask(t, '/paid/open', {}, shop.url)).json, 'would_fail'), undefined)
  t.equal((await ask(t, '/clock', {}, shop.url)).status, 200)
  t.notMatch((await ask(t, '/llms.txt', {}, shop.url)).text, '/paid/keyed')
  for (const path of ['/broken', '/ugly']) {
    const got = await ask(t, path, {}, shop.url)
    t.equal(got.status, 500, path)
    t.match(got.json, { code: 'internal', charged: 'no', retryable: true })
    t.notMatch(got.text, 'secret')
  }
  await shop.said(/secret at \/srv\/shop/)
  t.equal((await ask(t, '/clock', {}, shop.url)).status, 200)
})

t.test('the server stays healthy through all of this', async (t) => {
  t.notMatch(server.output(), /unexpected|Unhandled|Warning/)
  t.equal(server.process.exitCode, null)
})

/** As people write a price: without the zeros at its end. */
function shorten(price: string): string {
  return price.replace(/(\.\d\d\d*?)0+$/, '$1')
}
