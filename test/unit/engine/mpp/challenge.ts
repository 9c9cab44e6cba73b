import { createHmac } from 'node:crypto'
import { Challenge, Credential } from 'mppx'
import { Mppx, tempo } from 'mppx/server'
import { createClient, http } from 'viem'
import { tempo as chain } from 'viem/tempo/chains'
import t from 'tap'
import {
  createChallenge,
  isIssued,
  opaqueOf,
  realmOf,
  requestOf,
} from '../../../../src/engine/mpp/mpp-challenge.ts'
import { findCredential } from '../../../../src/engine/mpp/credential.ts'
import { createTokens } from '../../../../src/engine/payment/random-token.ts'
import type { IssuedChallenge } from '../../../../src/engine/payment/challenge.ts'
import type { Route } from '../../../../src/engine/catalog/catalog.ts'
import { parsePrice } from '../../../../src/engine/base/money.ts'
import { paidRoutes, shippedCatalog } from '../../../support/shipped-catalog.ts'
import { randomBytes } from '../../../support/random.ts'
import { fixedPriceOf } from '../../../support/catalogs.ts'

const SECRET = 'a secret of thirty-two bytes, at least'
const TERMS = {
  realm: 'api.example.com',
  chainId: 4217,
  currency: '0x20C000000000000000000000b9537d11c60E8b50',
  recipient: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  testnet: false,
}
const NOW = Date.parse('2026-11-20T20:19:26.867Z')
const SCOPE = 'gamestore/app:4wcWLuDZ5ZyyJYJdYLvTkVw_JK9hkvBhRMIVhGSgA8k'
const NONCE = 'a-nonce-of-18-bytes-here'
const routes = paidRoutes(shippedCatalog())

function issue(route: Route, scope = SCOPE): IssuedChallenge {
  const settings = { terms: TERMS, secretKey: SECRET, now: () => NOW, nextNonce: () => NONCE }
  return createChallenge(route, fixedPriceOf(route), settings).issue({
    resource: 'https://api.example.com/paid/x',
    scope,
    error: 'payment_required',
  })
}

function headerOf({ headers }: IssuedChallenge): string {
  return headers['WWW-Authenticate'] ?? ''
}

/** As the reader of a vector would take it out of the header. */
function parameter(header: string, name: string): string {
  return new RegExp(`[ ,]${name}="([^"]*)"`).exec(header)?.[1] ?? ''
}

t.test(
  'issues challenges that mppx reads, verifies and would write the same way, for every route',
  async (t) => {
    const mppx = Mppx.create({
      realm: TERMS.realm,
      secretKey: SECRET,
      methods: [
        tempo.charge({
          currency: TERMS.currency as `0x${string}`,
          recipient: TERMS.recipient as `0x${string}`,
          chainId: TERMS.chainId,
          supportedModes: ['pull'],
          getClient: () => createClient({ chain, transport: http('http://127.0.0.1:1') }),
        }),
      ],
    })
    for (const route of routes) {
      const issued = issue(route)
      const challenge = Challenge.deserialize(headerOf(issued))
      t.ok(Challenge.verify(challenge, { secretKey: SECRET }), `${route.path} is bound`)
      t.notOk(Challenge.verify(challenge, { secretKey: `${SECRET}!` }))
      t.strictSame(JSON.parse(`{${issued.members}}`), { challengeId: challenge.id })
      const amount = String(Number(fixedPriceOf(route)) / 1e6)
      const expires = new Date(NOW + 300_000)
      const theirs = await mppx.challenge.tempo.charge({
        amount,
        scope: SCOPE,
        meta: { nonce: NONCE },
        expires,
      })
      t.equal(theirs.id, challenge.id, 'the same id')
      t.equal(
        Challenge.serialize({ ...theirs, description: parameter(headerOf(issued), 'description') }),
        headerOf(issued),
        'and the same header to the byte',
      )
    }
  },
)

t.test('computes an id as the HMAC of the seven slots', async (t) => {
  const [route] = routes
  if (route === undefined) throw new Error('no route')
  const header = headerOf(issue(route))
  const slots = ['realm', 'method', 'intent', 'request', 'expires', 'digest', 'opaque']
  const input = slots.map((name) => parameter(header, name)).join('|')
  t.equal(input.split('|').length, 7)
  t.equal(createHmac('sha256', SECRET).update(input).digest('base64url'), parameter(header, 'id'))
  t.match(parameter(header, 'id'), /^[A-Za-z0-9_-]{43}$/)
})

t.test('keeps the id of a fixed challenge, so that outstanding challenges stay valid', async (t) => {
  const price = parsePrice('0.005')
  if (price.kind !== 'price') throw new Error('no price')
  const request = requestOf(TERMS, price.value)
  t.equal(
    Buffer.from(request, 'base64url').toString(),
    '{"amount":"5000","currency":"0x20C000000000000000000000b9537d11c60E8b50","methodDetails":{"chainId":4217,"supportedModes":["pull"]},"recipient":"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}',
    'RFC 8785: sorted, no space',
  )
  const opaque = opaqueOf(SCOPE, NONCE)
  t.equal(Buffer.from(opaque, 'base64url').toString(), `{"_mppx_scope":"${SCOPE}","nonce":"${NONCE}"}`)
  t.notMatch(request + opaque, /[=+/]/, 'base64url without padding')
  const challenge = {
    id: 'G5cOfk84y4M2dqFGzW8o3s5QVgUjeCGrphHAf_yZL3I',
    realm: TERMS.realm,
    method: 'tempo',
    intent: 'charge',
    request,
    expires: '2026-11-20T20:24:26.867Z',
    opaque,
  }
  t.ok(isIssued(challenge, [SECRET]))
})

t.test('binds a challenge to each of its parameters, and accepts it under every secret in use', async (t) => {
  const [route] = routes
  if (route === undefined) throw new Error('no route')
  const authorization = Credential.serialize({
    challenge: Challenge.deserialize(headerOf(issue(route))),
    payload: { type: 'transaction', signature: '0x76c0' },
  })
  const found = findCredential(authorization)
  if (found.kind !== 'credential') throw new Error(found.kind)
  const { challenge } = found.credential
  t.ok(isIssued(challenge, [SECRET]))
  t.ok(isIssued(challenge, ['another secret of thirty-two bytes', SECRET]), 'the last one is still known')
  t.notOk(isIssued(challenge, ['another secret of thirty-two bytes', 'a third one of thirty-two bytes!']))
  t.notOk(isIssued(challenge, []))
  for (const name of ['id', 'realm', 'method', 'intent', 'request', 'expires', 'opaque'] as const)
    t.notOk(isIssued({ ...challenge, [name]: `${challenge[name]}x` }, [SECRET]), name)
  t.notOk(isIssued({ ...challenge, digest: 'sha-256=x' }, [SECRET]), 'digest')
  const { opaque: _, ...unbound } = challenge
  t.notOk(isIssued(unbound, [SECRET]), 'without its scope')
})

t.test('computes an id as the HMAC with secrets of every length', async (t) => {
  const [route] = routes
  if (route === undefined) throw new Error('no route')
  for (const secretKey of ['s'.repeat(32), 's'.repeat(64), 's'.repeat(65), 'é'.repeat(40)]) {
    const settings = { terms: TERMS, secretKey, now: () => NOW, nextNonce: () => NONCE }
    const challenge = createChallenge(route, fixedPriceOf(route), settings)
    const issued = challenge.issue({ resource: 'https://x', scope: SCOPE, error: 'payment_required' })
    t.ok(Challenge.verify(Challenge.deserialize(headerOf(issued)), { secretKey }), secretKey)
  }
})

t.test('issues unique challenges that last five minutes', async (t) => {
  const [route] = routes
  if (route === undefined) throw new Error('no route')
  const nextNonce = createTokens(randomBytes)
  const settings = { terms: TERMS, secretKey: SECRET, now: () => NOW, nextNonce }
  const challenge = createChallenge(route, fixedPriceOf(route), settings)
  const ask = (scope: string): string =>
    headerOf(challenge.issue({ resource: 'https://x', scope, error: 'payment_required' }))
  const first = ask(SCOPE)
  t.equal(parameter(first, 'expires'), '2026-11-20T20:24:26.867Z')
  t.not(parameter(ask(SCOPE), 'id'), parameter(first, 'id'), 'in the same millisecond')
  t.not(parameter(ask(`${SCOPE}x`), 'id'), parameter(first, 'id'), 'other parameters are another purchase')
})

t.test(
  'writes challenges that common parsers read, with quotes and letters beyond ASCII escaped',
  async (t) => {
    const [route] = routes
    if (route === undefined) throw new Error('no route')
    const summary = 'Says "caf\u00e9" \\ and \u2014 \u{1f600}\r\nmore'
    const header = headerOf(issue({ ...route, summary }))
    t.equal(parameter(header, 'description'), 'Says cafe  and  more')
    t.match(header, /^[ -~]+$/)
    t.notMatch(headerOf(issue({ ...route, summary: '\u4e2d\u6587' })), /description/)
  },
)

t.test('states the size of a challenge and keeps it small', async (t) => {
  for (const route of routes) {
    const settings = { terms: TERMS, secretKey: SECRET, now: () => NOW, nextNonce: () => NONCE }
    const challenge = createChallenge(route, fixedPriceOf(route), settings)
    const scope = `${route.operation.id}:${'x'.repeat(43)}`
    t.equal(headerOf(issue(route, scope)).length, challenge.headerBytes)
    t.ok(challenge.headerBytes < 1_000, `${challenge.headerBytes}`)
    t.strictSame(challenge.published, {
      intent: 'charge',
      method: 'tempo',
      amount: fixedPriceOf(route).toString(),
      currency: TERMS.currency,
    })
  }
})

t.test('uses the host alone as realm, as mppx does', async (t) => {
  t.equal(realmOf('https://api.example.com'), 'api.example.com')
  t.equal(realmOf('https://api.example.com:8443'), 'api.example.com')
  t.equal(realmOf('http://localhost:4021'), 'localhost')
})
