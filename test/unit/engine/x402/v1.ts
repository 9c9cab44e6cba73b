import { readFileSync } from 'node:fs'
import t from 'tap'
import { ERRORS } from '../../../../src/engine/base/errors.ts'
import { isJsonObject, type JsonObject } from '../../../../src/engine/base/json.ts'
import type { Detection, Payment } from '../../../../src/engine/payment/payment.ts'
import type { Receipt } from '../../../../src/engine/ledger/payment-record.ts'
import { fixedPriceOf } from '../../../support/catalogs.ts'
import { fc } from '../../../support/fast-check.ts'
import { makeRecord } from '../../../support/payment-records.ts'
import { addressOf, challengeIn, encode, randomKey, sign, writtenInV1 } from '../../../support/payment.ts'
import {
  BASE_URL,
  firstOffer,
  paidRoutes,
  PAY_TO,
  quietX402,
  shippedCatalog,
} from '../../../support/shipped-catalog.ts'

const catalog = shippedCatalog()
const x402 = quietX402(catalog)
const routes = paidRoutes(catalog)
const { route, resource, offer } = firstOffer(catalog)
const NOW = Date.parse('2026-11-20T20:00:00Z')
const SECONDS = BigInt(NOW / 1000)

const unpaid = { resource, scope: 'none', error: 'payment_required' } as const
const issued = x402.challenge(route)?.issue(unpaid)
const signed = await sign(challengeIn(issued), randomKey(), { validBefore: SECONDS + 60n })
const older = writtenInV1(signed, 'base')

function detect(value: unknown, protocol = x402): Detection {
  return protocol.detect({ 'x-payment': Buffer.from(JSON.stringify(value)).toString('base64') })
}

function paymentIn(detection: Detection): Payment {
  if (detection.kind !== 'payment') throw new Error(`${detection.kind} ${JSON.stringify(detection)}`)
  return detection.payment
}

function bodyOf(members: string | undefined): JsonObject {
  const body: unknown = JSON.parse(`{${members}}`)
  if (!isJsonObject(body)) throw new Error('no body')
  return body
}

t.test('offers version 1 in the body on the networks that each of its packages knows', async (t) => {
  for (const each of routes) {
    const url = `${BASE_URL}/é?`
    const body = bodyOf(x402.challenge(each)?.issue({ ...unpaid, resource: url }).members)
    t.strictSame(Object.keys(body), ['x402Version', 'error', 'accepts'])
    t.match(body, { x402Version: 1, error: 'payment_required' })
    const rest = {
      scheme: 'exact',
      maxAmountRequired: fixedPriceOf(each).toString(),
      resource: url,
      description: each.summary,
      mimeType: 'application/json',
      payTo: PAY_TO,
      maxTimeoutSeconds: 60,
      outputSchema: { input: { type: 'http', method: 'GET' } },
    }
    t.match(body['accepts'], [
      { ...rest, network: 'base', asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' },
      { ...rest, network: 'avalanche', asset: '0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E' },
    ])
  }
})

t.test(
  'leaves the body to version 2 where version 1 has no name for a network, and where it is off',
  async (t) => {
    for (const protocol of [
      quietX402(catalog, ['polygon']),
      quietX402(catalog, undefined, 'version 2 alone'),
    ]) {
      const { headers, members } = protocol.challenge(route)?.issue(unpaid) ?? { headers: {} }
      t.strictSame(bodyOf(members), challengeIn({ headers }))
    }
  },
)

t.test('reads an authorization in both versions as the same payment', async (t) => {
  const [first, second] = [
    paymentIn(detect(older)),
    paymentIn(x402.detect({ 'payment-signature': signed.header })),
  ]
  t.equal(first.key, second.key)
  t.equal(first.authorizationHash, second.authorizationHash)
  t.equal(first.check(offer, NOW), undefined)
  t.match(await first.verify(), { kind: 'verified', payer: signed.authorization.from })
  t.equal(first.token, undefined, 'it has no room for one')
})

t.test('reads a payment as the Python package writes it', async (t) => {
  // As json.dumps of Python writes it, with a space after each colon and comma.
  const file = new URL('../../../fixtures/x402/python-v1.txt', import.meta.url)
  const payment = paymentIn(x402.detect({ 'x-payment': readFileSync(file, 'utf8') }))
  t.equal(payment.check(offer, NOW), undefined)
  t.match(await payment.verify(), { kind: 'verified', payer: addressOf(`0x${'11'.repeat(32)}`) })
})

t.test('compares what is signed with the offer', async (t) => {
  const refusals: readonly (readonly [JsonObject, string])[] = [
    [{ value: '1' }, 'no_matching_requirements'],
    [{ to: `0x${'1'.repeat(40)}` }, 'no_matching_requirements'],
    [{ validBefore: String(SECONDS - 1n) }, 'invalid_exact_evm_payload_authorization_valid_before'],
    [{ validBefore: String(SECONDS + 6_000n) }, 'invalid_exact_evm_payload_authorization_valid_before'],
    [{ validAfter: String(SECONDS + 5n) }, 'invalid_exact_evm_payload_authorization_valid_after'],
  ]
  for (const [change, code] of refusals) {
    const payment = paymentIn(detect(withAuthorization(change)))
    t.match(payment.check(offer, NOW), { code }, JSON.stringify(change))
  }
})

t.test('honours an offer with another validity, and one that is paid before the work', async (t) => {
  t.equal(paymentIn(detect(older)).check({ ...offer, timeoutSeconds: 300 }, NOW), undefined)
  const upfront = routes.find(({ operation }) => operation.settle === 'upfront')
  if (upfront === undefined) throw new Error('no such route')
  const url = BASE_URL + upfront.path
  const challenge = challengeIn(x402.challenge(upfront)?.issue({ ...unpaid, resource: url }))
  const paid = writtenInV1(await sign(challenge, randomKey(), { validBefore: SECONDS + 60n }), 'base')
  const bought = { endpoint: upfront, resource: url, scope: 'none', price: fixedPriceOf(upfront) }
  t.equal(paymentIn(detect(paid)).check(bought, NOW), undefined)
})

t.test('refuses other networks, schemes and versions', async (t) => {
  for (const change of [
    { network: 'solana' },
    { network: 'toString' },
    { network: 'eip155:8453' },
    { scheme: 'upto' },
    { network: '' },
  ])
    t.match(detect({ ...older, ...change }), { kind: 'refused', code: 'no_matching_requirements' })
  for (const version of [0, 2, 3, -1])
    t.match(detect({ ...older, x402Version: version }), {
      kind: 'malformed',
      code: 'invalid_x402_version',
      detail: /^the payment is of x402 version /,
    })
  for (const version of ['1', null, true, [1]])
    t.match(detect({ ...older, x402Version: version }), { kind: 'malformed', code: 'invalid_payload' })
  t.match(detect(signed.payload), { code: 'invalid_x402_version' }, 'PAYMENT-SIGNATURE has its own header')
  t.match(x402.detect({ 'payment-signature': encode(older) }), { code: 'invalid_x402_version' })
})

t.test('refuses a request with payments of both versions', async (t) => {
  const both = { 'payment-signature': signed.header, 'x-payment': encode(older) }
  t.match(x402.detect(both), { kind: 'malformed', code: 'multiple_payments' })
  t.match(x402.detect({ ...both, 'x-payment': '' }), { kind: 'malformed', code: 'multiple_payments' })
})

t.test('says that version 1 is not accepted where it is off', async (t) => {
  const off = quietX402(catalog, undefined, 'version 2 alone')
  t.match(detect(older, off), { kind: 'malformed', code: 'invalid_x402_version' })
  const inTool = off.tools.detect({ 'x402/payment': older })
  t.match(inTool, { kind: 'malformed', code: 'invalid_x402_version' })
})

t.test(
  'takes a payment of version 1 in the call of a tool, as an object or as the text of the header',
  async (t) => {
    for (const sent of [older, encode(older), ` ${encode(older)} `])
      t.equal(paymentIn(x402.tools.detect({ 'x402/payment': sent })).key, paymentIn(detect(older)).key)
  },
)

t.test('states the receipt in the version in which the payment came', async (t) => {
  const record = { ...makeRecord('x402:exact:key'), network: 'eip155:8453', payer: 'buyer' }
  const receipt: Receipt = { transaction: '0x01', network: 'eip155:8453', payer: 'buyer', amount: '5000' }
  const settled = { success: true, transaction: '0x01', network: 'base', payer: 'buyer' }
  const failed = {
    success: false,
    errorReason: 'settlement_failed',
    transaction: '',
    network: 'base',
    payer: 'buyer',
  }
  const { protocol } = paymentIn(detect(older))
  t.equal(protocol.name, x402.name)
  t.strictSame(protocol.receiptHeaders(record, receipt, 200), { 'X-PAYMENT-RESPONSE': encode(settled) })
  t.strictSame(protocol.failureHeaders(record, 'settlement_failed'), { 'X-PAYMENT-RESPONSE': encode(failed) })
  t.strictSame(protocol.tools.receipt(record, receipt, 200), { 'x402/payment-response': settled })
  t.strictSame(protocol.tools.failure(record, 'settlement_failed'), { 'x402/payment-response': failed })
  const newer = paymentIn(x402.detect({ 'payment-signature': signed.header })).protocol
  t.strictSame(Object.keys(newer.receiptHeaders(record, receipt, 200)), ['PAYMENT-RESPONSE'])
})

const json = fc.jsonValue({ maxDepth: 4 })
const MEMBERS = ['x402Version', 'scheme', 'network', 'payload']
const SIGNED = ['from', 'to', 'value', 'validAfter', 'validBefore', 'nonce']

t.test('answers any content of X-PAYMENT: 5,000 headers', async (t) => {
  const changed = fc
    .tuple(fc.constantFrom(...MEMBERS), json)
    .map(([name, value]) => ({ ...older, [name]: value }))
  const signedOtherwise = fc
    .tuple(
      fc.constantFrom(...SIGNED),
      fc.oneof(json, fc.constantFrom('0x', '', '-1', '1e9', '9'.repeat(80), '0x10')),
    )
    .map(([name, value]) => withAuthorization({ [name]: value }))
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        { arbitrary: changed.map(encodeAny), weight: 2 },
        { arbitrary: signedOtherwise.map(encodeAny), weight: 3 },
        { arbitrary: json.map(encodeAny), weight: 1 },
        { arbitrary: fc.string({ unit: 'binary', maxLength: 300 }), weight: 1 },
        { arbitrary: fc.base64String({ maxLength: 300 }), weight: 1 },
        { arbitrary: fc.nat(encode(older).length).map((end) => encode(older).slice(0, end)), weight: 1 },
      ),
      async (header) => isDetection(x402.detect({ 'x-payment': header })),
    ),
    { numRuns: 5_000 },
  )
  t.pass()
})

/** Whatever it is, it is one of three things, in our own words. */
function isDetection(detection: Detection): boolean {
  switch (detection.kind) {
    case 'malformed':
    case 'refused':
      return detection.code in ERRORS && !/Error|undefined|\bat \//.test(detection.detail)
    case 'payment': {
      const refusal = detection.payment.check(offer, NOW)
      return refusal === undefined || refusal.code in ERRORS
    }
    default:
      return false
  }
}

function withAuthorization(change: object): object {
  const { payload } = older
  const { authorization } = payload
  return { ...older, payload: { ...payload, authorization: { ...authorization, ...change } } }
}

function encodeAny(value: unknown): string {
  return Buffer.from(JSON.stringify(value) ?? '').toString('base64')
}
