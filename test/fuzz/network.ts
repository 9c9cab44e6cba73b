import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { loadCatalog } from '../../src/engine/catalog/load-catalog.ts'
import { documentNames } from '../../src/engine/documents/all.ts'
import type { Json } from '../../src/engine/base/json.ts'
import { attempt } from './support/property-run.ts'
import { Connection, flood } from './support/connection.ts'
import { authorizationValues, wrongKeys, x402Values } from './support/credentials.ts'
import { checkAnswer } from './support/answer-rules.ts'
import { ambiguous, octets, pipeline } from './support/malformed-requests.ts'
import { API_KEY, writeOpenCatalog } from './support/open-catalog.ts'
import { accepts, paths, queries, targetsOf } from './support/request-targets.ts'
import { challengeOf, randomKey, sign, writtenInV1, type SignedPayment } from '../support/payment.ts'
import { startServer } from '../support/server.ts'
import { fc } from '../support/fast-check.ts'

const catalog = writeOpenCatalog()
t.teardown(() => catalog.remove())
const server = await startServer({ args: ['--sandbox', '--offline', '--catalog', catalog.file] })
t.teardown(() => server.stop())
const targets = targetsOf(
  loadCatalog(catalog.file, { handlers: undefined, documents: documentNames }).catalog,
)
const paid = targets.filter(({ path }) => path.startsWith('/paid/'))
const begun = residentMB()

/** A wallet without money: whatever it signs can be looked at and never settled. */
const key = randomKey()
const PING = '/paid/ping'
const signed = await signedFor(PING)
const { payload } = signed
/** The network of a sandbox. */
const older = writtenInV1(signed, 'base-sepolia')
const credential = await credentialFor(PING)
/** A payment made for one path, sent to that one and to another. */
const shops = fc.constantFrom(PING, `${PING}?nonce=1`, '/paid/util/workday?days=x', '/paid/gamestore/app/730')

async function signedFor(path: string): Promise<SignedPayment> {
  // As long as any may be: an expired payment is refused before anything else is looked at.
  const validBefore = BigInt(Math.floor(Date.now() / 1000) + 600)
  return sign(await challengeOf(server.url + path), key, { validBefore })
}

/** Shaped as MPP has it; the challenge is a real one where one is offered. */
async function credentialFor(path: string): Promise<Json> {
  const response = await fetch(server.url + path)
  const offered = response.headers.get('www-authenticate') ?? ''
  const parameters = [...offered.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [
    name,
    value,
  ])
  const usual = { id: 'a'.repeat(43), realm: 'localhost', method: 'tempo', intent: 'charge', request: 'e30' }
  return {
    challenge: { ...usual, expires: '2036-01-01T00:00:00.000Z', ...Object.fromEntries(parameters) },
    payload: { type: 'transaction', signature: `0x76${'ab'.repeat(300)}` },
    source: 'did:pkh:eip155:4217:0x0000000000000000000000000000000000000001',
  }
}

function residentMB(): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8')
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024)
}

/** One request on a connection that is kept. */
async function fuzz<T>(
  t: Test,
  share: number,
  values: fc.Arbitrary<T>,
  write: (value: T) => {
    readonly target: string
    readonly headers?: readonly string[]
    readonly method?: string
  },
): Promise<void> {
  const connection = new Connection(server.url)
  await attempt(t, share, values, async (value) => {
    const { target, headers = [], method = 'GET' } = write(value)
    const lines = [`${method} ${target} HTTP/1.1`, 'Host: localhost', ...headers]
    const request = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
    return [checkAnswer(await connection.ask(request, method), method)]
  })
  connection.close()
}

t.test('explains to a buyer what is wrong with a damaged payment', (t) =>
  fuzz(t, 16, fc.tuple(shops, x402Values(payload)), ([target, value]) => ({
    target,
    headers: [`PAYMENT-SIGNATURE: ${value}`],
  })),
)

t.test('explains to a buyer what is wrong with a damaged payment of version 1', (t) =>
  fuzz(t, 6, fc.tuple(shops, x402Values(older)), ([target, value]) => ({
    target,
    headers: [`X-PAYMENT: ${value}`],
  })),
)

t.test('explains to a buyer what is wrong with a damaged credential', (t) =>
  fuzz(t, 10, fc.tuple(shops, authorizationValues(credential)), ([target, value]) => ({
    target,
    headers: [`Authorization: ${value}`],
  })),
)

t.test('leaves a buyer who sends several payments at once uncharged', (t) => {
  const lines = fc.array(
    fc.oneof(
      x402Values(payload).map((value) => `payment-signature: ${value}`),
      x402Values(older).map((value) => `x-payment: ${value}`),
      authorizationValues(credential).map((value) => `authorization: ${value}`),
    ),
    { minLength: 2, maxLength: 4 },
  )
  return fuzz(t, 5, fc.tuple(shops, lines), ([target, headers]) => ({ target, headers }))
})

/** A header line with a key, in one of the places where it may stand. */
const places = fc.constantFrom(
  'X-API-Key: ',
  'x-api-key:',
  'Authorization: Bearer ',
  'authorization:bearer  ',
)

t.test('sells to whoever sends a key that is none, with and without a payment', (t) => {
  const payment = fc.oneof(
    x402Values(payload).map((value) => [`payment-signature: ${value}`]),
    x402Values(older).map((value) => [`x-payment: ${value}`]),
    fc.constant([]),
  )
  const wrong = fc.tuple(places, wrongKeys(API_KEY)).map((parts) => parts.join(''))
  return fuzz(t, 6, fc.tuple(shops, wrong, payment), ([target, line, headers]) => ({
    target,
    headers: [line, ...headers],
  }))
})

t.test('serves a customer with a key whatever payment comes along, and uses none', async (t) => {
  const connection = new Connection(server.url)
  const payment = fc.oneof(
    x402Values(payload).map((value) => `payment-signature: ${value}`),
    x402Values(older).map((value) => `x-payment: ${value}`),
    authorizationValues(credential).map((value) => `authorization: ${value}`),
  )
  await attempt(t, 6, fc.tuple(shops, fc.array(payment, { maxLength: 3 })), async ([target, headers]) => {
    const lines = [`GET ${target} HTTP/1.1`, 'Host: localhost', `X-API-Key: ${API_KEY}`, ...headers]
    const answer = await connection.ask(Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), 'GET')
    if (answer.status === 402) throw new Error('a customer is asked to pay')
    return [answer.status === 200 ? '200 to a customer' : checkAnswer(answer)]
  })
  connection.close()
})

t.test('asks for payment on every spelling of a paid path, and stays healthy', (t) => {
  const served = [...targets.map(({ path }) => path), '/openapi.json', '/llms.txt', '/health', '/']
  const method = fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'OPTIONS')
  return fuzz(t, 13, fc.tuple(paths(served), method), ([path, method]) => ({
    target: path.replace(/[\0-\x20\x7f]/g, '+'),
    method,
  }))
})

t.test('answers any query with what is wrong', (t) => fuzz(t, 13, queries(targets), (target) => ({ target })))

t.test('answers any query with a payment with what is wrong', (t) => {
  const value = Buffer.from(JSON.stringify(payload)).toString('base64')
  return fuzz(t, 5, queries(paid), (target) => ({ target, headers: [`PAYMENT-SIGNATURE: ${value}`] }))
})

t.test('answers a browser’s odd request with a page, free of the request’s text', (t) =>
  fuzz(t, 5, fc.tuple(queries(paid), accepts), ([target, accept]) => ({
    target,
    headers: [`Accept: ${accept}`],
  })),
)

t.test('refuses noise on the wire and closes the connection', (t) =>
  attempt(t, 7, octets, async (text) => {
    const answers = await flood(server.url, Buffer.from(text, 'latin1'))
    return answers.map((answer) => checkAnswer(answer))
  }),
)

t.test('answers pipelined requests in their order', (t) =>
  attempt(t, 2, pipeline, async (requests) => {
    const text = requests.map(([request]) => request).join('')
    const answers = await flood(server.url, Buffer.from(text, 'latin1'))
    const statuses = answers.map(({ status }) => status)
    if (statuses.join() !== requests.map(([, status]) => status).join()) throw new Error(statuses.join())
    return answers.map((answer) => checkAnswer(answer))
  }),
)

t.test('refuses a request that is hidden in another one', (t) =>
  attempt(t, 3, ambiguous, async (text) => {
    const answers = await flood(server.url, Buffer.from(text, 'latin1'))
    if (answers.length !== 1 || answers[0]?.status !== 400)
      throw new Error(answers.map(({ status }) => status).join())
    return answers.map((answer) => checkAnswer(answer))
  }),
)

t.test('stays healthy through all of it, and logs only known errors', async (t) => {
  t.equal((await fetch(`${server.url}/health`)).status, 200)
  t.equal(server.process.exitCode, null)
  // One work of the stand-in has no publisher, which the service reports once.
  const known = /^source crossref: unexpected form at message\/publisher: absent$/gm
  t.notMatch(server.output().replace(known, ''), /unexpected|unhandled|warning:/i)
  t.comment(`resident memory: ${begun} MB before, ${residentMB()} MB after`)
})
