import t from 'tap'
import { ERRORS } from '../../../../src/engine/base/errors.ts'
import type { Detection, Payment } from '../../../../src/engine/payment/payment.ts'
import { challengeIn, encode, randomKey, sign } from '../../../support/payment.ts'
import { firstOffer, quietX402, shippedCatalog } from '../../../support/shipped-catalog.ts'
import { fc } from '../../../support/fast-check.ts'

const catalog = shippedCatalog()
const x402 = quietX402(catalog)
const { route, resource, offer } = firstOffer(catalog)
const NOW = Date.parse('2026-11-20T20:00:00Z')
const SECONDS = BigInt(NOW / 1000)

const issued = x402.challenge(route)?.issue({ resource, scope: 'none', error: 'payment_required' })
const challenge = challengeIn(issued)
const { payload } = await sign(challenge, randomKey(), { validBefore: SECONDS + 60n })

function detect(header: string | undefined): Detection {
  return x402.detect(header === undefined ? {} : { 'payment-signature': header })
}

function paymentIn(value: unknown): Payment {
  const detection = detect(Buffer.from(JSON.stringify(value)).toString('base64'))
  if (detection.kind !== 'payment') throw new Error(detection.kind)
  return detection.payment
}

/** Whatever it is, it is one of four things, in our own words. */
async function isDetection(detection: Detection): Promise<boolean> {
  switch (detection.kind) {
    case 'none':
      return true
    case 'malformed':
    case 'refused':
      return detection.code in ERRORS && !/Error|undefined|\bat \//.test(detection.detail)
    case 'payment': {
      const refusal = detection.payment.check(offer, NOW)
      return refusal === undefined || refusal.code in ERRORS
    }
    case 'action':
      return false
  }
}

t.test('finds a payment, matches its offer and verifies its signature', async (t) => {
  const payment = paymentIn(payload)
  t.equal(payment.check(offer, NOW), undefined)
  t.match(await payment.verify(), { kind: 'verified', validBefore: NOW + 60_000 })
  t.equal(payment.network, 'eip155:8453')
  t.equal(payment.token, '_'.repeat(24))
})

t.test('keys a payment by its signed fields, in any spelling', async (t) => {
  const { key } = paymentIn(payload)
  const part = payload['payload'] as { signature: string; authorization: Record<string, string> }
  const { from = '', nonce = '' } = part.authorization
  const respelt = {
    ...payload,
    resource: null,
    extensions: null,
    payload: {
      ...part,
      authorization: {
        ...part.authorization,
        from: from.toLowerCase(),
        nonce: `0x${nonce.slice(2).toUpperCase()}`,
      },
    },
  }
  t.equal(paymentIn(respelt).key, key)
})

t.test('reads the identifier that a client gives its purchase', async (t) => {
  t.equal(paymentIn(payload).identifier, undefined)
  const id = 'pay_7d5d747be160e280504c099d984bcfe0'
  const extensions = {
    ...challenge.extensions,
    'payment-identifier': { info: { required: false, id }, schema: {} },
  }
  t.equal(paymentIn({ ...payload, extensions }).identifier, id)
  t.equal(paymentIn({ ...payload, extensions }).key, paymentIn(payload).key, 'it is no part of the payment')
})

t.test('compares an offer that is nested as deep as a header allows', async (t) => {
  const deep = `${'['.repeat(9_000)}${']'.repeat(9_000)}`
  const text = JSON.stringify(payload).replaceAll('"USD Coin"', deep)
  const detection = detect(Buffer.from(text).toString('base64'))
  t.equal(detection.kind, 'payment')
  if (detection.kind === 'payment')
    t.match(detection.payment.check(offer, NOW), { code: 'no_matching_requirements' })
})

t.test('tells a missing payment from an empty one', async (t) => {
  t.strictSame(detect(undefined), { kind: 'none' })
  t.match(detect(''), { kind: 'malformed', code: 'invalid_payload' })
})

const json = fc.jsonValue({ maxDepth: 4 })
/** The right payload with one member, anywhere, put wrong. */
const mutated = fc
  .tuple(
    fc.constantFrom(...pathsOf(payload)),
    fc.oneof(json, fc.constantFrom('0x', '', '-1', '1e9', '9'.repeat(80))),
  )
  .map(([path, value]) => replaced(payload, path, value))

t.test('answers any content of PAYMENT-SIGNATURE: 5,000 headers', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        { arbitrary: mutated.map(encodeAny), weight: 4 },
        { arbitrary: json.map(encodeAny), weight: 1 },
        { arbitrary: fc.string({ unit: 'binary', maxLength: 300 }), weight: 1 },
        { arbitrary: fc.base64String({ maxLength: 300 }), weight: 1 },
        { arbitrary: fc.nat(encode(payload).length).map((end) => encode(payload).slice(0, end)), weight: 1 },
      ),
      async (header) => isDetection(detect(header)),
    ),
    { numRuns: 5_000 },
  )
  t.pass()
})

function encodeAny(value: unknown): string {
  return Buffer.from(JSON.stringify(value) ?? '').toString('base64')
}

function pathsOf(value: unknown, path: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [[...path]]
  return [[...path], ...Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, [...path, key]))]
}

function replaced(value: unknown, [key, ...rest]: readonly string[], by: unknown): unknown {
  if (key === undefined) return by
  if (typeof value !== 'object' || value === null) return value
  const inner: unknown = Object.entries(value).find(([name]) => name === key)?.[1]
  return { ...value, [key]: replaced(inner, rest, by) }
}
