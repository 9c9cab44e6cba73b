import { createServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { UpstreamCause } from '../../../../src/engine/base/upstream-cause.ts'
import { onchainClient, startBase } from '../../../support/base-chain.ts'
import { writeShop } from '../../../support/catalogs.ts'
import { addressOf, randomKey, stockFetch } from '../../../support/payment.ts'
import { startServer, type LogLine } from '../../../support/server.ts'
import { askJson } from '../../../support/http.ts'
import { freePort } from '../../../support/reverse-proxy.ts'
import { until } from '../../../support/until.ts'

const METHODS = ['GET', 'POST', 'DELETE'] as const
type Method = (typeof METHODS)[number]

/** What becomes of a call: it is sold, or the upstream has failed, or the request was not acceptable to it. */
type Expected = 'sold' | UpstreamCause | 'upstream_rejected' | 'not_found'

interface Awkward {
  readonly answer: (socket: Socket) => void
  readonly expected: Expected
  /** For methods where it is another. */
  readonly also?: Partial<Record<Method, Expected>>
}

const JSON_TYPE = 'Content-Type: application/json'

function head(status: string, ...headers: readonly string[]): string {
  return [`HTTP/1.1 ${status}`, 'Connection: close', ...headers, '', ''].join('\r\n')
}

/** Sends these bytes and ends. */
function sends(bytes: string | Buffer, expected: Expected, also: Awkward['also'] = {}): Awkward {
  return { answer: (socket) => void socket.end(bytes), expected, also }
}

function answers(
  status: string,
  headers: readonly string[],
  body: string | Buffer,
  expected: Expected,
): Awkward {
  const length = `Content-Length: ${Buffer.byteLength(body)}`
  return sends(Buffer.concat([Buffer.from(head(status, length, ...headers)), Buffer.from(body)]), expected)
}

function says(status: string, expected: Expected): Awkward {
  return answers(status, [JSON_TYPE], '{"a":1}', expected)
}

/** Sends these bytes and then nothing. */
function stops(bytes: string, expected: Expected): Awkward {
  return { answer: (socket) => void socket.write(bytes), expected }
}

const AWKWARD: Readonly<Record<string, Awkward>> = {
  'closes-at-once': sends('', 'refused'),
  resets: { answer: (socket) => void socket.resetAndDestroy(), expected: 'refused' },
  'half-a-status-line': sends('HTTP/1.1 20', 'refused'),
  'half-of-the-headers': sends('HTTP/1.1 200 OK\r\nContent-Ty', 'refused'),
  'no-http': sends('SSH-2.0-OpenSSH_9.2\r\n', 'body'),
  'no-status': sends('HTTP/1.1 OK\r\n\r\n', 'body'),
  'status-of-four-digits': sends(head('2000 OK', JSON_TYPE), 'body'),
  'large-headers': sends(head('200 OK', JSON_TYPE, `X-Much: ${'a'.repeat(100_000)}`), 'body'),
  'a-header-without-a-colon': sends('HTTP/1.1 200 OK\r\nnonsense\r\n\r\n{}', 'body'),
  'two-lengths': sends(head('200 OK', JSON_TYPE, 'Content-Length: 2', 'Content-Length: 3') + '{}', 'body'),
  'a-length-that-is-no-number': sends(head('200 OK', JSON_TYPE, 'Content-Length: two') + '{}', 'body'),
  silent: stops('', 'timeout'),
  'silent-after-the-headers': stops(head('200 OK', JSON_TYPE, 'Content-Length: 7'), 'timeout'),
  'silent-in-the-body': stops(`${head('200 OK', JSON_TYPE, 'Content-Length: 7')}{"a"`, 'timeout'),
  'half-a-body': sends(`${head('200 OK', JSON_TYPE, 'Content-Length: 7')}{"a"`, 'body'),
  'half-of-the-chunks': sends(
    `${head('200 OK', JSON_TYPE, 'Transfer-Encoding: chunked')}3\r\n{"a\r\n`,
    'body',
  ),
  'a-chunk-without-a-size': sends(
    `${head('200 OK', JSON_TYPE, 'Transfer-Encoding: chunked')}x\r\n{}\r\n`,
    'body',
  ),
  'broken-gzip': answers('200 OK', [JSON_TYPE, 'Content-Encoding: gzip'], 'no gzip', 'body'),
  'half-of-gzip': answers(
    '200 OK',
    [JSON_TYPE, 'Content-Encoding: gzip'],
    gzipSync(JSON.stringify({ a: 'b'.repeat(9_000) })).subarray(0, 20),
    'body',
  ),
  'json-that-is-none': answers('200 OK', [JSON_TYPE], 'oops', 'body'),
  'half-of-json': answers('200 OK', [JSON_TYPE], '{"a":', 'body'),
  'too-large': answers('200 OK', [JSON_TYPE], JSON.stringify('a'.repeat(20_000)), 'body'),
  nothing: { ...answers('200 OK', [JSON_TYPE], '', 'body'), also: { POST: 'sold', DELETE: 'sold' } },
  page: answers('200 OK', ['Content-Type: text/html'], '<p>Log in', 'type'),
  'xhtml-page': answers('200 OK', ['Content-Type: application/xhtml+xml'], '<p/>', 'type'),
  'no-type': answers('200 OK', [], '{"a":1}', 'type'),
  '500': says('500 Internal Server Error', 'status'),
  '501': says('501 Not Implemented', 'status'),
  '502': says('502 Bad Gateway', 'status'),
  '503': says('503 Service Unavailable', 'status'),
  '504': says('504 Gateway Timeout', 'status'),
  '507': says('507 Insufficient Storage', 'status'),
  '599': says('599 Odd', 'status'),
  '429': says('429 Too Many Requests', 'status'),
  '408': says('408 Request Timeout', 'status'),
  '425': says('425 Too Early', 'status'),
  '401': says('401 Unauthorized', 'status'),
  '402': says('402 Payment Required', 'status'),
  '403': says('403 Forbidden', 'status'),
  '405': says('405 Method Not Allowed', 'status'),
  '407': says('407 Proxy Authentication Required', 'status'),
  '300': says('300 Multiple Choices', 'status'),
  '302-without-an-address': says('302 Found', 'status'),
  '302-in-a-circle': answers('302 Found', ['Location: /302-in-a-circle'], '', 'status'),
  '302-to-another-host': answers('302 Found', ['Location: http://other.invalid/'], '', 'status'),
  '302-to-no-address': answers('302 Found', ['Location: http://['], '', 'status'),
  '400': says('400 Bad Request', 'upstream_rejected'),
  '404': says('404 Not Found', 'not_found'),
  '410': says('410 Gone', 'not_found'),
  '422': says('422 Unprocessable Content', 'upstream_rejected'),
  'early-hints': sends(
    `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${head('200 OK', JSON_TYPE, 'Content-Length: 7')}{"a":1}`,
    'sold',
  ),
  'json-with-a-mark': answers('200 OK', [JSON_TYPE], '\ufeff{"a":1}', 'sold'),
  '204': sends(head('204 No Content'), 'sold'),
}

const upstream = createServer((socket) => {
  socket.on('error', () => undefined)
  socket.once('data', (chunk) => {
    const [, path = ''] = /^\w+ \/([^ ?]*)/.exec(chunk.toString('latin1')) ?? []
    const awkward = AWKWARD[decodeURIComponent(path)]
    if (awkward === undefined) socket.end(head('400 Bad Request'))
    else awkward.answer(socket)
  })
})
const open = new Set<Socket>()
upstream.on('connection', (socket) => {
  open.add(socket)
  socket.once('close', () => open.delete(socket))
})
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
const address = upstream.address()
const port = typeof address === 'object' && address !== null ? address.port : 0

/** Upstreams that are not reached, by the path of their routes. */
const UNREACHED: Readonly<Record<string, readonly [url: string, cause: UpstreamCause]>> = {
  closed: [`http://127.0.0.1:${await freePort()}/`, 'refused'],
  blocked: ['http://127.0.0.1:1/', 'refused'],
  unknown: ['http://upstream.invalid/', 'name'],
  plain: [`https://127.0.0.1:${port}/closes-at-once`, 'tls'],
}

const LIMITS = 'response: { max_size: 10 KB }'
const routes = METHODS.flatMap((method) => [
  // Only what is to time out has little time: a busy machine is no upstream that fails.
  ...[
    ['up', '30s'],
    ['silent', '2s'],
  ].map(
    ([folder, timeout]) =>
      `  ${method} /paid/${folder}/{case}: { price: 0.001, upstream: 'http://127.0.0.1:${port}/{case}', summary: Fails, timeout: ${timeout}, ${LIMITS}, parameters: { case: { type: string, example: '204' } } }\n`,
  ),
  ...Object.entries(UNREACHED).map(
    ([name, [url]]) =>
      `  ${method} /paid/${name}: { price: 0.001, upstream: '${url}', summary: Fails, ${LIMITS} }\n`,
  ),
]).join('')

t.test(
  'charges no awkward answer of an upstream, and names the cause of each failure in the log',
  async (t) => {
    t.ok(Object.keys(AWKWARD).length >= 50)
    const chain = await startBase()
    t.teardown(() => chain.stop())
    t.teardown(() => {
      for (const socket of open) socket.destroy()
      upstream.close()
    })
    const signerKey = randomKey()
    await chain.setGas(addressOf(signerKey), 10n ** 18n)
    const server = await startServer({
      args: ['--catalog', writeShop(t, routes).catalog],
      env: {
        HOST: '127.0.0.1',
        PAY_TO: addressOf(randomKey()),
        SETTLER_PRIVATE_KEY: signerKey,
        RPC_URL_8453: chain.rpcUrl,
      },
    })
    t.teardown(() => server.stop())
    const calls = METHODS.flatMap((method) => [
      ...Object.entries(AWKWARD).map(([name, { expected, also }]) => ({
        name: `${method} ${name}`,
        method,
        path: `/paid/${expected === 'timeout' ? 'silent' : 'up'}/${name}`,
        expected: also?.[method] ?? expected,
      })),
      ...Object.entries(UNREACHED).map(([name, [, expected]]) => ({
        name: `${method} ${name}`,
        method,
        path: `/paid/${name}`,
        expected,
      })),
    ])
    const lineOf = async (requestId: string | null): Promise<LogLine | undefined> => {
      const find = (): LogLine | undefined => server.log().find((line) => line['requestId'] === requestId)
      await until('the line is written', () => find() !== undefined)
      return find()
    }
    const keys = Array.from({ length: 8 }, randomKey)
    for (const key of keys) await chain.mint(addressOf(key), 10_000_000n)
    const waiting = Array.from(calls)
    let [sold, due] = [0, 0]
    const buy = async (key: `0x${string}`): Promise<void> => {
      const pay = stockFetch(key)
      for (let call = waiting.shift(); call !== undefined; call = waiting.shift()) {
        const { name, method, path, expected } = call
        const answer = await pay(`${server.url}${path}`, { method })
        const text = await answer.text()
        const { outcome, cause, detail, status } = (await lineOf(answer.headers.get('x-request-id'))) ?? {}
        t.equal(status, answer.status, `${name}: status`)
        if (expected === 'sold') {
          t.ok(answer.ok, `${name}: ${answer.status} ${text}`)
          sold += 1
          continue
        }
        const { charged } = JSON.parse(text) as { charged: string }
        if (method === 'DELETE') {
          // It is settled before the work, since a refusal afterwards would not undo what was deleted.
          const payment = await askJson(`${server.url}/payments/${answer.headers.get('ratecard-payment')}`)
          t.equal(charged, 'yes', `${name}: charged`)
          // What may pass is tried again for the same payment; a refund is due when that does not happen.
          if (payment['refund'] !== 'due') t.match(payment, { next: /^send the same payment/ }, name)
          due += 1
        } else t.equal(charged, 'no', `${name}: charged`)
        if (expected === 'upstream_rejected' || expected === 'not_found') t.equal(outcome, expected, name)
        else {
          t.equal(cause, expected, `${name}: ${String(outcome)}, ${String(detail)}`)
          t.type(detail, 'string', `${name}: detail`)
        }
      }
    }
    await Promise.all(keys.map(buy))
    const onchain = onchainClient(chain)
    const charges = await Promise.all(keys.map((key) => onchain.charges(addressOf(key))))
    t.equal(
      charges.reduce((sum, each) => sum + each, 0),
      sold + due,
      'what was answered is charged, and what is owed back or tried again',
    )
  },
)
