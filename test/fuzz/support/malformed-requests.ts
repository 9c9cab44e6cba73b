import { fc } from '../../support/fast-check.ts'

/** Mostly the valid value. */
function mostly(right: string, ...wrong: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 12, arbitrary: fc.constant(right) },
    { weight: 1, arbitrary: fc.constantFrom(...wrong) },
  )
}

const ends = mostly('\r\n', '\n', '\r', '\r\n ', '\0\r\n', '\r\r\n', '')
const methods = fc.oneof(
  { weight: 2, arbitrary: fc.constant('GET') },
  {
    weight: 1,
    arbitrary: mostly('POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PRI', 'get', 'G\tT', 'CONNECT', ''),
  },
)
const targets = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('/health', '/paid/ping', '/sample/ping', '/', 'http://x/health') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('*', 'x:1', '/\u00ff', '/ x', '/\t', '', `/${'x'.repeat(70_000)}`),
  },
)
const versions = mostly(
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/0.9',
  'HTTP/2.0',
  'HTTP/9',
  'http/1.1',
  'HTTP/1.1 x',
  '',
)

const odd = fc.oneof(
  fc.constantFrom(
    'Host: x',
    'Host: x',
    'Host: x',
    'Host: a\r\nHost: b',
    'Host:',
    'hOsT: \u00ff',
    'Host: x, y',
  ),
  fc.constantFrom('Connection: close', 'Connection: keep-alive', 'Connection: upgrade\r\nUpgrade: websocket'),
  fc.constantFrom('Upgrade: h2c', 'Expect: 100-continue', 'Expect: 200-ok', 'TE: trailers', 'Trailer: X'),
  fc.constantFrom(
    'Content-Length: 0',
    'Content-Length: 5',
    'Content-Length: -1',
    'Content-Length: 1e1',
    'Content-Length: 5, 5',
  ),
  fc.constantFrom(
    'Content-Length: 18446744073709551616',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip, chunked',
  ),
  fc.constantFrom(
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding : chunked',
    'Transfer-Encoding:\tchunked',
  ),
  fc.constantFrom(
    'PAYMENT-SIGNATURE: e30=',
    'PAYMENT-SIGNATURE: e30=\r\nPAYMENT-SIGNATURE: e30=',
    'X-PAYMENT: e30=',
  ),
  fc.constantFrom(
    'Authorization: Payment e30',
    'Authorization: Payment e30\r\nAuthorization: Payment e30',
    ': x',
    'x',
    ' x: y',
  ),
  fc.constantFrom(
    'If-None-Match: *',
    'If-None-Match: "x", W/"y"',
    'Range: bytes=0-',
    'Cookie: a=b',
    '__proto__: x',
  ),
  fc.integer({ min: 1, max: 70_000 }).map((length) => `X-Long: ${'x'.repeat(length)}`),
  fc.integer({ min: 1, max: 3_000 }).map((count) => 'X: y\r\n'.repeat(count).slice(0, -2)),
  fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
)

const bodies = fc.constantFrom(
  '',
  '',
  'hello',
  '5\r\nhello\r\n0\r\n\r\n',
  '0\r\n\r\n',
  'ffffffffffffffff\r\n',
  '5;x="\r\n"\r\nhello\r\n0\r\nX: y\r\n\r\n',
  '-1\r\n',
  'GET /health HTTP/1.1\r\nHost: x\r\n\r\n',
)

const fine = fc.constantFrom(
  'Host: x',
  'Accept: */*',
  'Connection: keep-alive',
  'Content-Length: 5',
  'Transfer-Encoding: chunked',
  'Authorization: Payment e30',
  'PAYMENT-SIGNATURE: e30=',
  'If-None-Match: *',
)
const headers = fc.oneof({ weight: 3, arbitrary: fine }, { weight: 1, arbitrary: odd })

const request = fc
  .tuple(
    fc.tuple(methods, targets, versions),
    fc.array(fc.tuple(headers, ends), { maxLength: 4 }),
    ends,
    fc.oneof({ weight: 2, arbitrary: fc.constant('') }, { weight: 1, arbitrary: bodies }),
  )
  .map(([line, lines, end, body]) => {
    const head = lines.map((parts) => parts.join('')).join('')
    return `${line.join(' ')}\r\nHost: x\r\n${head}${end}${body}`
  })

/** Bytes of a connection: requests, some of them broken, several at once, and noise. As latin1. */
export const octets: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: fc.array(request, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('')) },
  {
    weight: 1,
    arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '\r\n\r\n',
      '\u0016\u0003\u0001\u0002\u0000',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      '',
    ),
  },
)

/** Valid pipelined requests, and the expected status of each. */
export const pipeline: fc.Arbitrary<readonly (readonly [request: string, status: number])[]> = fc.array(
  fc
    .constantFrom<readonly [string, number]>(
      ['/health', 200],
      ['/paid/ping', 402],
      ['/none', 404],
      ['/sample/ping', 200],
    )
    .map(([path, status]) => [`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`, status] as const),
  { minLength: 1, maxLength: 8 },
)

const HIDDEN = 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n'

/** Two ways to end a body, and invalid ones. */
const lengths = ['Content-Length: 5', `Content-Length: ${5 + HIDDEN.length}`]
const codings = [
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: gzip, chunked',
]
const wrong = [
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding : chunked',
  'Content-Length: 5, 6',
  'Content-Length: +5',
  'Content-Length: 0x5',
]

/** A request whose end two readers would place differently, with another request hidden after the nearer end. */
export const ambiguous: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom('POST', 'GET', 'PUT'),
    fc.oneof(
      fc.constant(lengths),
      fc.tuple(fc.constantFrom(...lengths), fc.constantFrom(...codings)),
      fc.tuple(fc.constantFrom(...lengths, ...codings), fc.constantFrom(...wrong)),
    ),
    fc.boolean(),
  )
  .map(([method, lines, turned]) => {
    const framing = turned ? lines.toReversed() : lines
    return `${method} /none HTTP/1.1\r\nHost: x\r\n${framing.join('\r\n')}\r\n\r\n0\r\n\r\n${HIDDEN}`
  })
