import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { Challenge, Receipt } from 'mppx'
import { validate } from 'mppx/discovery'
import { privateKeyToAccount } from 'viem/accounts'
import t, { type Test } from 'tap'
import { canonicalJson, type Json, type JsonObject } from '../../../../src/engine/base/json.ts'
import { readProblem } from '../../../support/http.ts'
import { openMppService } from '../../../support/mpp.ts'
import { addressOf, randomKey, type Hex } from '../../../support/payment.ts'
import { startServer } from '../../../support/server.ts'
import {
  closeCredential,
  mppChallengeOf,
  openCredential,
  PATH_USD,
  signTempo,
  stockPayer,
  TEMPO_CHAIN,
  type TransactionFaults,
} from '../../../support/tempo.ts'
import { until } from '../../../support/until.ts'

const PROBLEMS = 'https://paymentauth.org/problems/'
const shop = await openMppService()
const key = await shop.chain.wallet()
const payer = stockPayer(shop.chain.rpcUrl, privateKeyToAccount(key))
t.teardown(() => shop.close())
t.afterEach(() => {
  shop.node.set('open')
  shop.upstream.during(async () => {})
})

const WORK = `${shop.url}/paid/work`

function ask(url: string, authorization?: string, more: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { headers: { ...(authorization === undefined ? {} : { authorization }), ...more } })
}

/** A credential of the stock client for what a path asks. */
async function fresh(url = WORK): Promise<string> {
  return payer.createCredential(await fetch(url))
}

async function signed(faults: TransactionFaults = {}, by: Hex = key, url = WORK): Promise<string> {
  return signTempo(shop.chain.rpcUrl, by, await mppChallengeOf(url), faults)
}

/** How many transfers have come in so far. */
async function transfers(): Promise<number> {
  return (await shop.chain.received(shop.recipient)).length
}

/** A refusal as the scheme has it: its type, nothing cached, no receipt, and on a 402 a challenge that can be paid. */
async function refused(t: Test, response: Response, status: number, type: string): Promise<JsonObject> {
  t.equal(response.status, status, type)
  t.match(response.headers.get('content-type'), /^application\/problem\+json/)
  t.equal(response.headers.get('cache-control'), 'no-store')
  t.equal(response.headers.get('payment-receipt'), null)
  const problem = await readProblem(response)
  t.match(problem, { type: PROBLEMS + type, status, charged: 'no' })
  t.match(problem['title'], /\w/)
  t.match(problem['detail'], /\w/)
  if (status === 402) {
    t.equal(problem['challengeId'], Challenge.fromResponse(response).id)
    t.ok(response.headers.get('payment-required'), 'x402 is offered beside it')
  }
  return problem
}

/** Of a request with several Authorization lines, which `fetch` would join. */
async function statusOf(url: string, authorization: string[]): Promise<number | undefined> {
  const asked = request(url)
  asked.setHeader('authorization', authorization)
  asked.end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  response.resume()
  return response.statusCode
}

function parameter(header: string | null, name: string): string {
  return new RegExp(`[ ,]${name}="([^"]*)"`).exec(header ?? '')?.[1] ?? ''
}

t.test('1, 2, 3, 4, 5: asks an unpaid request for the same money by both protocols', async (t) => {
  const response = await ask(WORK)
  const header = response.headers.get('www-authenticate')
  const challenge = Challenge.fromResponse(response.clone() as Response)
  const problem = await refused(t, response, 402, 'payment-required')
  t.strictSame([challenge.method, challenge.intent, challenge.realm], ['tempo', 'charge', 'localhost'])
  const left = Date.parse(challenge.expires ?? '') - Date.now()
  t.ok(left > 0 && left <= 300_000)
  t.strictSame(challenge.request, {
    amount: '5000',
    currency: PATH_USD,
    recipient: shop.recipient,
    methodDetails: { chainId: TEMPO_CHAIN, supportedModes: ['pull'] },
  })
  const request = parameter(header, 'request')
  t.notMatch(request, '=')
  t.equal(Buffer.from(canonicalJson(challenge.request as Json)).toString('base64url'), request)
  const slots = ['realm', 'method', 'intent', 'request', 'expires', 'digest', 'opaque']
  const input = slots.map((name) => parameter(header, name)).join('|')
  t.equal(createHmac('sha256', shop.secret).update(input).digest('base64url'), challenge.id)
  await delay(2)
  t.not((await mppChallengeOf(WORK)).id, challenge.id, 'each is another')
  const x402 = JSON.parse(
    Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString('utf8'),
  )
  t.equal(x402.x402Version, 2)
  t.equal(new URL(x402.resource.url).pathname, '/paid/work')
  t.equal(x402.accepts[0].amount, '5000')
  t.match(problem, { x402Version: 1, price: { amount: '0.005000' } }, 'one body for both')
})

t.test('6: answers the stock client with a receipt and exactly one transfer', async (t) => {
  const before = await transfers()
  const response = await payer.fetch(`${WORK}?n=7`)
  t.equal(response.status, 200)
  t.match(await response.json(), { n: 7, payer: addressOf(key) })
  const header = response.headers.get('payment-receipt') ?? ''
  t.match(header, /^[A-Za-z0-9_-]+$/, 'base64url without padding')
  const receipt = Receipt.deserialize(header)
  t.match(receipt, { method: 'tempo', status: 'success', reference: /^0x[0-9a-f]{64}$/ })
  t.match(receipt.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  t.match(response.headers.get('cache-control'), /\bprivate\b/)
  t.equal(response.headers.get('payment-response'), null, 'the receipt of one protocol')
  t.equal((await transfers()) - before, 1)
  t.match(await shop.chain.ask('eth_getTransactionReceipt', [receipt.reference]), { status: '0x1' })
})

t.test('7: answers a credential once', async (t) => {
  const credential = await fresh()
  const first = await ask(WORK, credential)
  t.equal(first.status, 200)
  await first.text()
  // The answer has arrived for certain only after a while.
  await delay(2_500)
  const [before, runs] = [await transfers(), shop.upstream.runs()]
  const problem = await refused(t, await ask(WORK, credential), 402, 'invalid-challenge')
  t.not(problem['challengeId'], openCredential(credential).challenge['id'])
  t.strictSame([await transfers(), shop.upstream.runs()], [before, runs])
})

t.test('8: answers five simultaneous copies with one answer, one run and one transfer', async (t) => {
  const credential = await fresh()
  const [before, runs] = [await transfers(), shop.upstream.runs()]
  shop.upstream.during(async () => {
    await delay(200)
  })
  const responses = await Promise.all([1, 2, 3, 4, 5].map(() => ask(WORK, credential)))
  t.strictSame(
    responses.map(({ status }) => status).sort((a, b) => a - b),
    [200, 402, 402, 402, 402],
  )
  for (const response of responses.filter(({ status }) => status === 402))
    await refused(t, response, 402, 'invalid-challenge')
  t.strictSame([(await transfers()) - before, shop.upstream.runs() - runs], [1, 1])
})

t.test('9: answers two transactions for one challenge with one answer and one transfer', async (t) => {
  const challenge = await mppChallengeOf(WORK)
  const sign = (seconds: number): Promise<string> =>
    signTempo(shop.chain.rpcUrl, key, challenge, { validBefore: Math.floor(Date.now() / 1000) + seconds })
  const [one, two] = [await sign(25), await sign(24)]
  const before = await transfers()
  t.equal((await ask(WORK, one)).status, 200)
  await refused(t, await ask(WORK, two), 402, 'invalid-challenge')
  t.equal((await transfers()) - before, 1)
})

t.test('10: refuses a challenge in which anything was changed', async (t) => {
  const { challenge, payload } = openCredential(await fresh())
  const encode = (value: Json): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  for (const [name, value] of Object.entries({
    request: encode({ amount: '1' }),
    expires: '2099-01-01T00:00:00.000Z',
    realm: 'evil',
    opaque: encode({ a: 'b' }),
    id: 'A'.repeat(43),
  })) {
    const tampered = closeCredential({ challenge: { ...challenge, [name]: value }, payload })
    await refused(t, await ask(WORK, tampered), 402, 'invalid-challenge')
  }
})

t.test('11: binds a challenge to its path and parameters, in any spelling', async (t) => {
  const credential = await fresh(`${WORK}?n=1`)
  await refused(t, await ask(`${WORK}?n=2`, credential), 402, 'invalid-challenge')
  await refused(t, await ask(`${shop.url}/paid/dear?n=1`, credential), 402, 'invalid-challenge')
  t.equal((await ask(WORK, credential)).status, 200, 'n=1 is what goes without saying')
})

t.test('12: tells a client that its challenge has expired', async (t) => {
  const { expires: _, ...challenge } = await mppChallengeOf(WORK)
  const expired = { ...challenge, expires: new Date(Date.now() - 1_000).toISOString() }
  const bound = Challenge.from({ ...expired, request: expired.request }, {})
  const slots = [
    bound.realm,
    bound.method,
    bound.intent,
    Buffer.from(canonicalJson(bound.request as Json)).toString('base64url'),
    bound.expires,
    '',
    bound.opaque,
  ].join('|')
  const id = createHmac('sha256', shop.secret).update(slots).digest('base64url')
  const credential = await signTempo(shop.chain.rpcUrl, key, { ...bound, id })
  await refused(t, await ask(WORK, credential), 402, 'payment-expired')
})

t.test('13: answers an unreadable credential with a challenge', async (t) => {
  const encode = (text: string): string => `Payment ${Buffer.from(text).toString('base64url')}`
  for (const header of ['Payment !!', encode('{'), encode('{"payload":{}}')])
    await refused(t, await ask(WORK, header), 402, 'malformed-credential')
})

t.test(
  '14, 15, 16, 17: refuses a payment that differs from the challenge, and leaves its money in place',
  async (t) => {
    const [{ challenge, payload }, other] = [openCredential(await fresh()), openCredential(await fresh())]
    const before = await transfers()
    const wrong: Readonly<Record<string, string>> = {
      'the transaction of another challenge': closeCredential({ challenge, payload: other.payload }),
      'less than the price': await signed({ amount: 4_999n }),
      'more than the price': await signed({ amount: 5_001n }),
      'another recipient': await signed({ to: addressOf(randomKey()) }),
      'another token': await signed({ token: '0x20c0000000000000000000000000000000000001' }),
      'no memo': await signed({ memo: null }),
      'broadcast already': closeCredential({
        challenge,
        payload: { type: 'hash', hash: `0x${'1'.repeat(64)}` },
      }),
      garbage: closeCredential({ challenge, payload: { ...payload, signature: `0x76${'ab'.repeat(40)}` } }),
      'an empty wallet': await signed({}, randomKey()),
    }
    for (const [name, credential] of Object.entries(wrong)) {
      t.comment(name)
      await refused(t, await ask(WORK, credential), 402, 'verification-failed')
    }
    t.equal(await transfers(), before)
  },
)

t.test('18: names an unknown method in the refusal', async (t) => {
  const { challenge, payload } = openCredential(await fresh())
  const credential = closeCredential({ challenge: { ...challenge, method: 'stripe' }, payload })
  await refused(t, await ask(WORK, credential), 400, 'method-unsupported')
})

t.test('19: refuses two payments in one request, and leaves both unspent', async (t) => {
  const [one, two] = [await fresh(), await fresh()]
  const before = await transfers()
  await refused(t, await ask(WORK, `${one}, ${two}`), 400, 'bad-request')
  await refused(t, await ask(WORK, one, { 'payment-signature': 'e30=' }), 400, 'bad-request')
  t.equal(await statusOf(WORK, [one, two]), 400, 'in two header lines as well')
  t.equal(await transfers(), before)
  t.equal((await ask(WORK, one)).status, 200, 'and good afterwards')
})

t.test('20: leaves failed work uncharged, and accepts its payment again', async (t) => {
  const credential = await fresh()
  const before = await transfers()
  shop.upstream.during(() => Promise.reject(new Error('no')))
  const failed = await ask(WORK, credential)
  t.equal(failed.status, 500)
  t.equal(failed.headers.get('payment-receipt'), null)
  t.match(await readProblem(failed), { charged: 'no' })
  const invalid = await ask(`${WORK}?n=0`, credential)
  t.equal(invalid.status, 422)
  t.equal(await transfers(), before)
  shop.upstream.during(async () => {})
  t.equal((await ask(WORK, credential)).status, 200)
  t.equal((await transfers()) - before, 1)
})

t.test('21, 22, 23: sends challenges exactly where something is to be paid', async (t) => {
  await refused(t, await ask(WORK, 'Bearer x'), 402, 'payment-required')
  for (const authorization of [undefined, await fresh()]) {
    const nowhere = await ask(`${shop.url}/paid/nowhere`, authorization)
    t.equal(nowhere.status, 404)
    t.equal(nowhere.headers.get('www-authenticate'), null)
  }
  const head = await fetch(WORK, { method: 'HEAD', headers: { authorization: await fresh() } })
  t.equal(head.status, 402, 'a payment that comes with HEAD is left alone')
  t.ok(Challenge.fromResponse(head).id)
  t.equal(await head.text(), '')
})

t.test(
  '24: keeps a payment unspent while the network is down, and accepts the same credential afterwards',
  async (t) => {
    const credential = await fresh()
    const before = await transfers()
    shop.node.set('down')
    const response = await ask(WORK, credential)
    t.equal(response.status, 503)
    t.equal(response.headers.get('cache-control'), 'no-store')
    t.ok(response.headers.get('retry-after'))
    t.equal(response.headers.get('payment-receipt'), null)
    t.match(await readProblem(response), { code: 'chain_unavailable', charged: 'no', retryable: true })
    await shop.server.said(
      /"outcome":"chain_unavailable".*"detail":"the payment network cannot be reached now/,
    )
    shop.node.set('open')
    t.equal((await ask(WORK, credential)).status, 200)
    t.equal((await transfers()) - before, 1)
  },
)

t.test('25: answers unpaid requests without running the handler or asking a node', async (t) => {
  const runs = shop.upstream.runs()
  // Blocks of earlier payments are looked at now and then, also while these are answered.
  await until('twenty are answered without any call of the node', async () => {
    const calls = shop.node.calls().length
    for (let n = 0; n < 20; n += 1) await (await ask(WORK)).text()
    return shop.node.calls().length === calls
  })
  t.equal(shop.upstream.runs(), runs)
})

t.test('26: describes the offer in OpenAPI for registries, as the 402 makes it', async (t) => {
  const response = await fetch(`${shop.url}/openapi.json`)
  t.equal(response.status, 200)
  t.match(response.headers.get('content-type'), /^application\/json/)
  t.match(response.headers.get('cache-control'), /max-age/)
  const document = (await response.json()) as { paths: Record<string, { get: Record<string, unknown> }> }
  t.strictSame(
    validate(document).filter(({ severity }) => severity === 'error'),
    [],
    'as mppx judges it',
  )
  const operation = document.paths['/paid/work']?.get
  t.strictSame(operation?.['security'], [])
  t.match(operation?.['responses'], { 402: {} })
  const { amount, currency } = (await mppChallengeOf(WORK)).request as Record<string, string>
  t.strictSame(operation?.['x-payment-info'], {
    price: { mode: 'fixed', currency: 'USD', amount: '0.005000' },
    protocols: [{ x402: {} }, { mpp: { method: 'tempo', intent: 'charge', currency } }],
    offers: [{ intent: 'charge', method: 'tempo', amount, currency }],
  })
})

t.test('27: keeps secrets and credentials out of every log line and file', async (t) => {
  const credential = await fresh()
  await (await ask(WORK, credential)).text()
  const output = shop.server.output()
  t.match(output, new RegExp(`mpp: Tempo \\(eip155:${TEMPO_CHAIN}\\) to ${shop.recipient}`))
  t.notMatch(output, shop.secret)
  t.notMatch(output, credential.slice(8, 60))
  t.notMatch(output, /0x76[0-9a-f]{40}|transferWithMemo/)
})

t.test('28: withholds challenges over plain HTTP on a public host, and tells the operator why', async (t) => {
  const open = async (env: Record<string, string>) => {
    const server = await startServer({
      args: [
        '--catalog',
        new URL('../../../fixtures/payments/mpp.yaml', import.meta.url).pathname,
        '--handlers',
        new URL('../../../fixtures/payments/handlers', import.meta.url).pathname,
      ],
      env: {
        HOST: '127.0.0.1',
        PAY_TO: addressOf(randomKey()),
        SETTLER_PRIVATE_KEY: randomKey(),
        RPC_URL_8453: 'http://127.0.0.1:1',
        ...env,
      },
    })
    t.teardown(() => server.stop())
    return server
  }
  const means = {
    [`RPC_URL_${TEMPO_CHAIN}`]: 'http://127.0.0.1:1',
    MPP_RECIPIENT: shop.recipient,
    MPP_SECRET_KEY: shop.secret,
  }
  for (const [env, missing] of [
    [{ ...means, BASE_URL: 'http://api.example.com' }, 'BASE_URL with https'],
    [{ ...means, MPP_RECIPIENT: '' }, 'MPP_RECIPIENT'],
    [{ ...means, MPP_SECRET_KEY: '' }, 'MPP_SECRET_KEY'],
    [{ ...means, [`RPC_URL_${TEMPO_CHAIN}`]: '' }, `RPC_URL_${TEMPO_CHAIN}`],
  ] as const) {
    const server = await open(env)
    t.match(server.output(), `is not offered: ${missing} missing`)
    const response = await fetch(`${server.url}/paid/work`, { headers: { authorization: 'Payment x' } })
    t.equal(response.status, 402)
    t.equal(response.headers.get('www-authenticate'), null)
    const document = await (await fetch(`${server.url}/openapi.json`)).text()
    t.notMatch(document, /"mpp"|"offers"|WWW-Authenticate/, 'nor a word of it in the documents')
  }
  const server = await open({ ...means, BASE_URL: 'https://api.example.com:8443' })
  t.equal((await mppChallengeOf(`${server.url}/paid/work`)).realm, 'api.example.com', 'the public host')
})
