/**
 * What x402 v2 asks of a server over HTTP, with the tightenings of this service, against the program as it is run.
 * Numbers follow the check list of the protocol notes; 14 and 15 are in copies.ts, 23 and 24 go on in trouble.ts.
 */
import { request } from 'node:http'
import { once } from 'node:events'
import { decodePaymentRequiredHeader } from '@x402/core/http'
import { PaymentRequiredV2Schema } from '@x402/core/schemas'
import t from 'tap'
import { isJsonObject } from '../../../../src/engine/base/json.ts'
import { readProblem } from '../../../support/http.ts'
import {
  addressOf,
  challengeOf,
  encode,
  randomKey,
  readHeader,
  send,
  sign,
  stockFetch,
  type Faults,
} from '../../../support/payment.ts'
import { openShop } from '../../../support/shop.ts'

const shop = await openShop()
t.teardown(() => shop.close())
const work = `${shop.url}/paid/work`
const key = await shop.wallet()
const payer = addressOf(key)
const challenge = await challengeOf(work)
const now = (): bigint => BigInt(Math.floor(Date.now() / 1000))

t.test('1 lets a client that knows only x402 read the offer', async (t) => {
  const response = await fetch(work)
  t.equal(response.status, 402)
  const header = response.headers.get('payment-required') ?? ''
  t.match(
    header,
    /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
    'padded standard base64',
  )
  t.doesNotThrow(() => decodePaymentRequiredHeader(header))
  await response.body?.cancel()
})

t.test('2 names the path of the offer at the public address, without the query', async (t) => {
  const { x402Version, resource, accepts } = await challengeOf(`${work}?n=3`)
  t.equal(x402Version, 2)
  t.equal(resource.url, 'https://api.example.com/paid/work')
  t.ok(accepts.length >= 1)
})

t.test('3 gives every entry its six fields, each of its type', async (t) => {
  t.ok(PaymentRequiredV2Schema.safeParse(challenge).success, 'by the schema of the SDK')
  for (const { scheme, network, amount, asset, payTo, maxTimeoutSeconds } of challenge.accepts) {
    t.equal(scheme, 'exact')
    t.match(network, /^eip155:[1-9]\d*$/)
    t.match(amount, /^[1-9]\d*$/)
    t.match(asset, /^0x[0-9a-fA-F]{40}$/)
    t.match(payTo, /^0x[0-9a-fA-F]{40}$/)
    t.ok(Number.isInteger(maxTimeoutSeconds) && maxTimeoutSeconds > 0)
  }
})

t.test('4 and 5 asks for the network, token, payee and price of the catalog', async (t) => {
  t.strictSame(challenge.accepts, [
    {
      scheme: 'exact',
      network: 'eip155:8453',
      amount: '10000',
      asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      payTo: shop.payTo,
      maxTimeoutSeconds: 60,
      extra: { name: 'USD Coin', version: '2' },
    },
  ])
})

t.test('6 keeps an offer out of caches, and repeats its price in the body', async (t) => {
  const response = await fetch(work)
  t.match(response.headers.get('cache-control'), 'no-store')
  const body = await readProblem(response)
  t.match(body, { status: 402, code: 'payment_required', charged: 'no', price: { amount: '0.01' } })
  t.match(body, { x402Version: 1, accepts: [{ network: 'base', maxAmountRequired: '10000' }] })
})

t.test('7 answers HEAD with 402 and refuses every other method', async (t) => {
  const runs = shop.upstream.runs()
  const { header } = await sign(challenge, key)
  const head = await fetch(work, { method: 'HEAD' })
  t.equal(head.status, 402)
  t.ok(readHeader(head, 'payment-required')['accepts'])
  const paidHead = await fetch(work, { method: 'HEAD', headers: { 'payment-signature': header } })
  t.equal(paidHead.status, 402, 'and claims no payment')
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    for (const headers of [{}, { 'payment-signature': header }]) {
      const response = await fetch(work, { method, headers })
      t.equal(response.status, 405, method)
      t.equal(response.headers.get('allow'), 'GET, HEAD, OPTIONS')
      await readProblem(response)
    }
  }
  t.equal(shop.upstream.runs(), runs, 'nothing was done')
  t.equal((await send(work, header)).status, 200, 'the payment is still good')
})

t.test('8 lets a page in a browser pay: preflight and exposed headers', async (t) => {
  const preflight = await fetch(work, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://shop.example',
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'payment-signature,access-control-expose-headers',
    },
  })
  t.equal(preflight.status, 204)
  const allowed = (preflight.headers.get('access-control-allow-headers') ?? '').toLowerCase().split(/, */)
  t.ok(allowed.includes('payment-signature'))
  t.ok(allowed.includes('access-control-expose-headers'), '@x402/fetch sends it as a request header')
  const unpaid = await fetch(work, { headers: { origin: 'https://shop.example' } })
  t.equal(unpaid.headers.get('access-control-allow-origin'), '*')
  t.match(unpaid.headers.get('access-control-expose-headers'), /PAYMENT-REQUIRED, PAYMENT-RESPONSE/)
})

t.test('9 protects every spelling of the path', async (t) => {
  const runs = shop.upstream.runs()
  for (const path of [
    '//paid/work',
    '/paid//work',
    '/paid/work/',
    '/PAID/work',
    '/paid/Work',
    '/paid/wor%6b',
    '/paid%2fwork',
    '/paid/./work',
    '/paid/../paid/work',
    '/paid/work;x',
    '/paid/work%00',
    '/paid/work\\',
  ]) {
    const { port } = new URL(shop.url)
    const sent = request({ port, path }).end()
    const [response] = (await once(sent, 'response')) as [{ statusCode: number; resume: () => void }]
    response.resume()
    t.ok([400, 402, 404].includes(response.statusCode), `${path} is answered ${response.statusCode}`)
  }
  t.equal(shop.upstream.runs(), runs)
})

t.test('10 and 11 answers a payment with the proof of exactly one charge', async (t) => {
  const payment = await sign(challenge, key)
  const before = { payer: await shop.chain.balance(payer), payee: await shop.chain.balance(shop.payTo) }
  const uses = (await shop.onchain.uses()).length
  const response = await send(work, payment.header)
  t.equal(response.status, 200)
  t.match(response.headers.get('cache-control'), /private/)
  const receipt = readHeader(response, 'payment-response')
  t.match(receipt, { success: true, transaction: /^0x[0-9a-f]{64}$/, network: 'eip155:8453', payer })
  t.equal(await shop.chain.balance(payer), before.payer - 10_000n)
  t.equal(await shop.chain.balance(shop.payTo), before.payee + 10_000n)
  const fresh = (await shop.onchain.uses()).slice(uses)
  const { nonce } = payment.authorization
  t.equal(fresh.length, 1)
  t.match(fresh, [{ payer, nonce, transaction: receipt['transaction'], amount: 10_000n }])
})

/** Contracts that answer every question with one word: the yes of ERC-1271, and something else. */
const YES = '0x631626ba7e60e01b60005260206000f3'
const NO = '0x63deadbeef60e01b60005260206000f3'

t.test('10 accepts a contract wallet whose contract confirms the signature (ERC-1271)', async (t) => {
  const wallet = addressOf(randomKey())
  await shop.chain.mint(wallet, 50_000n)
  await shop.chain.setCode(wallet, YES)
  const signature = `0x${'5a'.repeat(97)}` as const
  const payment = await sign(challenge, key, { from: wallet, signature })
  const response = await send(work, payment.header)
  t.equal(response.status, 200)
  t.match(readHeader(response, 'payment-response'), { success: true, payer: wallet })
  t.equal(await shop.chain.balance(wallet), 40_000n)
  t.equal((await send(work, payment.header)).status, 200, 'and has its answer again')
  await shop.chain.setCode(wallet, NO)
  for (const { header } of [payment, await sign(challenge, key, { from: wallet, signature })]) {
    const refused = await send(work, header)
    t.equal(refused.status, 402)
    t.match(await readProblem(refused), { code: 'invalid_exact_evm_signature', charged: 'no' })
  }
  t.equal(await shop.chain.balance(wallet), 40_000n)
})

/** A contract that stands by signatures whose last byte, the 65th, is 1: it sees what it was sent. */
const LAST_BYTE_ONE = '0x60a43560001a600114631626ba7e0260e01b60005260206000f3'

t.test('10 passes 65 bytes of a contract wallet to its contract as they are', async (t) => {
  const wallet = addressOf(randomKey())
  await shop.chain.mint(wallet, 50_000n)
  await shop.chain.setCode(wallet, LAST_BYTE_ONE)
  const signatureWith = (last: string): `0x${string}` => `0x${'5a'.repeat(64)}${last}`
  const wrong = await sign(challenge, key, { from: wallet, signature: signatureWith('1c') })
  const refused = await send(work, wrong.header)
  t.equal(refused.status, 402)
  t.match(await readProblem(refused), { code: 'invalid_exact_evm_signature', charged: 'no' })
  const payment = await sign(challenge, key, { from: wallet, signature: signatureWith('01') })
  const response = await send(work, payment.header)
  t.equal(response.status, 200)
  t.match(readHeader(response, 'payment-response'), { success: true, payer: wallet })
  t.equal(await shop.chain.balance(wallet), 40_000n)
  t.equal((await send(work, payment.header)).status, 200, 'and has its answer again')
  t.equal(await shop.chain.balance(wallet), 40_000n)
})

t.test('12 reads header names in any case', async (t) => {
  for (const name of ['PAYMENT-SIGNATURE', 'Payment-Signature', 'pAyMeNt-sIgNaTuRe']) {
    const { header } = await sign(challenge, key)
    const { port } = new URL(shop.url)
    const sent = request({ port, path: '/paid/work', headers: { [name]: header } }).end()
    const [response] = (await once(sent, 'response')) as [{ statusCode: number; resume: () => void }]
    response.resume()
    t.equal(response.statusCode, 200, name)
  }
})

t.test('13 answers the same payment again with the same answer and one charge', async (t) => {
  const { header } = await sign(challenge, key)
  const first = await send(work, header)
  const balance = await shop.chain.balance(payer)
  const runs = shop.upstream.runs()
  const again = await send(work, header)
  t.equal(again.status, 200)
  t.equal(again.headers.get('payment-response'), first.headers.get('payment-response'))
  t.equal(await again.text(), await first.text())
  t.equal(await shop.chain.balance(payer), balance)
  t.equal(shop.upstream.runs(), runs)
})

t.test('16 and 17 answers an unreadable payment with 400 and the reason', async (t) => {
  const { payload } = await sign(challenge, key)
  const part = payload['payload']
  const authorization = isJsonObject(part) ? part['authorization'] : undefined
  if (!isJsonObject(authorization) || !isJsonObject(part)) throw new Error('no authorization')
  const { payload: _, ...noPayload } = payload
  const { accepted: __, ...noAccepted } = payload
  const { x402Version: ___, ...noVersion } = payload
  const unreadable = {
    'no base64': 'not base64!',
    base64url: `${encode(payload).slice(0, 40)}-_`,
    'no JSON': Buffer.from('hello').toString('base64'),
    'half a JSON': encode(payload).slice(0, 200),
    null: encode(null),
    'an empty object': encode({}),
    'an array': encode([payload]),
    'a number': encode(7),
    'a string': encode('pay'),
    'no payload': encode(noPayload),
    'no accepted': encode(noAccepted),
    'no version': encode(noVersion),
    'an empty payload': encode({ ...payload, payload: {} }),
    'a payload of null': encode({ ...payload, payload: null }),
    'no signature': encode({ ...payload, payload: { authorization } }),
    'a value that is no number': encode({
      ...payload,
      payload: { ...part, authorization: { ...authorization, value: 'abc' } },
    }),
    'a hexadecimal value': encode({
      ...payload,
      payload: { ...part, authorization: { ...authorization, value: '0x2710' } },
    }),
    'more than a uint256': encode({
      ...payload,
      payload: { ...part, authorization: { ...authorization, validBefore: '9'.repeat(78) } },
    }),
  }
  for (const [name, header] of Object.entries(unreadable)) {
    const response = await send(work, header)
    t.equal(response.status, 400, name)
    t.match(await readProblem(response), { code: 'invalid_payload', charged: 'no' })
  }
  for (const x402Version of [1, 3, 0, 2.5]) {
    const response = await send(work, encode({ ...payload, x402Version }))
    t.equal(response.status, 400)
    t.match(await readProblem(response), { code: 'invalid_x402_version', charged: 'no' })
  }
  const old = encode({ x402Version: 1, scheme: 'exact', network: 'base', payload: part })
  const misplaced = await send(work, old)
  t.equal(misplaced.status, 400, 'version 1 has a header of its own')
  const { code, detail } = await readProblem(misplaced)
  t.equal(code, 'invalid_x402_version')
  for (const word of ['PAYMENT-SIGNATURE', '"x402Version": 2', '"accepted"', 'PAYMENT-REQUIRED', 'X-PAYMENT'])
    t.match(detail, word, 'what to send, and where the offers are')
  t.equal((await send(work, encode(payload).replace(/=+$/, ''))).status, 200, 'padding may be left out')
})

const REFUSED: readonly {
  readonly name: string
  readonly faults: () => Faults
  readonly code: string
}[] = [
  {
    name: '18 one unit too little',
    faults: () => ({ value: 9_999n }),
    code: 'invalid_exact_evm_payload_authorization_value_mismatch',
  },
  {
    name: '18 one unit too much',
    faults: () => ({ value: 10_001n }),
    code: 'invalid_exact_evm_payload_authorization_value_mismatch',
  },
  {
    name: '19 expired',
    faults: () => ({ validBefore: now() - 1n }),
    code: 'invalid_exact_evm_payload_authorization_valid_before',
  },
  {
    name: '19 expiring in five seconds',
    faults: () => ({ validBefore: now() + 5n }),
    code: 'invalid_exact_evm_payload_authorization_valid_before',
  },
  {
    name: '19 valid for longer than was offered, and than clocks differ',
    faults: () => ({ validBefore: now() + 700n }),
    code: 'invalid_exact_evm_payload_authorization_valid_before',
  },
  {
    name: '19 valid for ever',
    faults: () => ({ validBefore: 253_402_300_799n }),
    code: 'invalid_exact_evm_payload_authorization_valid_before',
  },
  {
    name: '19 too short to do the work in',
    faults: () => ({ validBefore: now() + 8n }),
    code: 'deadline_too_short',
  },
  {
    name: '19 not valid yet',
    faults: () => ({ validAfter: now() + 60n }),
    code: 'invalid_exact_evm_payload_authorization_valid_after',
  },
  {
    name: '20 paid to somebody else',
    faults: () => ({ to: payer }),
    code: 'invalid_exact_evm_recipient_mismatch',
  },
  {
    name: '20 signed by another key',
    faults: () => ({ from: addressOf(randomKey()) }),
    code: 'invalid_exact_evm_signature',
  },
  {
    name: '20 signed for another token name',
    faults: () => ({ domain: { name: 'USDC' } }),
    code: 'invalid_exact_evm_signature',
  },
  {
    name: '20 signed for another chain',
    faults: () => ({ domain: { chainId: 1 } }),
    code: 'invalid_exact_evm_signature',
  },
  {
    name: '20 signed for another token',
    faults: () => ({ domain: { verifyingContract: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' } }),
    code: 'invalid_exact_evm_signature',
  },
  ...Object.entries({
    scheme: 'deferred',
    amount: '1',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    payTo: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    maxTimeoutSeconds: 61,
    network: 'eip155:137',
    extra: { name: 'USDC', version: '2' },
  }).map(([field, value]) => ({
    name: `21 the accepted offer is altered in ${field}`,
    faults: (): Faults => ({ accepted: { [field]: value } }),
    code: 'no_matching_requirements',
  })),
  {
    name: '25 a payment for another path of the same price',
    faults: () => ({ resource: { url: 'https://api.example.com/paid/other' } }),
    code: 'payment_wrong_resource',
  },
  {
    name: '25 a payment for another host',
    faults: () => ({ resource: { url: 'https://evil.example/paid/work' } }),
    code: 'payment_wrong_resource',
  },
]

for (const { name, faults, code } of REFUSED) {
  t.test(`refuses before any work, with the reason: ${name}`, async (t) => {
    const { header } = await sign(challenge, key, faults())
    const [runs, calls, balance] = [
      shop.upstream.runs(),
      shop.node.calls().length,
      await shop.chain.balance(payer),
    ]
    const response = await send(work, header)
    t.equal(response.status, 402)
    t.equal(readHeader(response, 'payment-required')['error'], code)
    t.match(await readProblem(response), { code, charged: 'no' })
    t.equal(shop.upstream.runs(), runs)
    // Whether the address is a contract that stands by the signature, only the network can tell.
    const questions = code === 'invalid_exact_evm_signature' ? 1 : 0
    t.equal(shop.node.calls().length - calls, questions, 'the network is asked about signatures only, once')
    t.equal(await shop.chain.balance(payer), balance)
  })
}

t.test('21 recognises a payment with additions or in other letters as the same', async (t) => {
  const [offer] = challenge.accepts
  if (offer === undefined) throw new Error('no offer')
  const harmless: Record<string, Faults> = {
    'another key in extra': { accepted: { extra: { ...offer.extra, hint: { more: [1] } } } },
    'payTo in lower case': { accepted: { payTo: offer.payTo.toLowerCase() } },
    'no resource': { resource: null },
    'no extensions': { extensions: null },
    'an extension nobody knows': { extensions: { unknown: { info: {} } } },
  }
  for (const [name, faults] of Object.entries(harmless)) {
    const { header } = await sign(challenge, key, faults)
    const response = await send(work, header)
    t.equal(response.status, 200, name)
    await response.body?.cancel()
  }
})

t.test('21 accepts a payment whose addresses carry a wrong checksum', async (t) => {
  const { payload, authorization, signature } = await sign(challenge, key)
  const { value, validAfter, validBefore, nonce } = authorization
  const addresses = { from: swapCase(authorization.from), to: swapCase(authorization.to) }
  const written = { value: `${value}`, validAfter: `${validAfter}`, validBefore: `${validBefore}`, nonce }
  const header = encode({ ...payload, payload: { signature, authorization: { ...addresses, ...written } } })
  const balance = await shop.chain.balance(payer)
  t.equal((await send(work, header)).status, 200)
  t.equal(await shop.chain.balance(payer), balance - 10_000n, 'charged once')
})

function swapCase(address: string): string {
  return address.replace(/[a-f]/gi, (letter) => (letter < 'a' ? letter.toLowerCase() : letter.toUpperCase()))
}

t.test('22 tells a payer without money so before any work', async (t) => {
  const runs = shop.upstream.runs()
  const response = await send(work, (await sign(challenge, await shop.wallet(9_999n))).header)
  t.equal(response.status, 402)
  t.match(await readProblem(response), { code: 'invalid_exact_evm_insufficient_balance', charged: 'no' })
  t.equal(shop.upstream.runs(), runs)
})

t.test('23 answers wrong parameters with 422, uncharged, before and after payment', async (t) => {
  const { header } = await sign(challenge, key)
  const balance = await shop.chain.balance(payer)
  const response = await send(`${work}?n=1000`, header)
  t.equal(response.status, 422)
  t.equal(response.headers.get('payment-response'), null)
  t.match(await response.json(), { detail: [{ loc: ['query', 'n'] }] })
  t.equal(await shop.chain.balance(payer), balance)
  t.equal((await send(work, header)).status, 200, 'the payment is still good')
  const unpaid = await fetch(`${work}?n=1000`)
  t.equal(unpaid.status, 402, 'without a payment it is a 402 that says so')
  t.match(await readProblem(unpaid), { would_fail: { status: 422, code: 'parameters_invalid' } })
})

t.test('offers payment-identifier in every challenge, and refuses a malformed one', async (t) => {
  t.match(challenge.extensions, { 'payment-identifier': { info: { required: false }, schema: Object } })
  const named = (id: string) => ({
    ...challenge.extensions,
    'payment-identifier': { info: { required: false, id }, schema: {} },
  })
  const short = await sign(challenge, key, { extensions: named('short') })
  const response = await send(work, short.header)
  t.equal(response.status, 400)
  t.match(await readProblem(response), { code: 'invalid_payload', charged: 'no' })
  const balance = await shop.chain.balance(payer)
  const good = await sign(challenge, key, { extensions: named('pay_7d5d747be160e280504c099d984bcfe0') })
  t.equal((await send(work, good.header)).status, 200)
  t.equal(await shop.chain.balance(payer), balance - 10_000n)
})

t.test('25 asks the ledger first: refuses a used payment for another path', async (t) => {
  const { header } = await sign(challenge, key)
  t.equal((await send(work, header)).status, 200)
  const response = await send(`${shop.url}/paid/other`, header)
  t.equal(response.status, 409)
  t.match(await readProblem(response), { code: 'payment_reused', charged: 'yes' })
})

t.test('25 refuses a payment on a network that is missing from the offer, unspent', async (t) => {
  const { header } = await sign(challenge, key, { accepted: { network: 'eip155:10' } })
  const response = await send(work, header)
  t.equal(response.status, 402)
  t.match(await readProblem(response), { code: 'no_matching_requirements', charged: 'no' })
})

t.test('25 accepts two payments of the stock client in its default configuration', async (t) => {
  const before = (await shop.onchain.uses()).length
  for (const n of [41, 42]) t.equal((await stockFetch(key)(`${work}?n=${n}`)).status, 200)
  t.equal((await shop.onchain.uses()).length - before, 2)
})
