import t from 'tap'
import { readExact } from '../../../../src/engine/x402/exact-evm/exact-payload.ts'
import { readBase64, readPayload } from '../../../../src/engine/x402/payload.ts'
import type { Json } from '../../../../src/engine/base/json.ts'
import { encode } from '../../../support/payment.ts'

const AUTHORIZATION = {
  from: `0x${'aB'.repeat(20)}`,
  to: `0x${'cd'.repeat(20)}`,
  value: '10000',
  validAfter: '0',
  validBefore: '1795206294',
  nonce: `0x${'0f'.repeat(32)}`,
}
const PAYLOAD = {
  x402Version: 2,
  accepted: {
    scheme: 'exact',
    network: 'eip155:8453',
    amount: '10000',
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    payTo: `0x${'cd'.repeat(20)}`,
    maxTimeoutSeconds: 60,
    extra: { name: 'USD Coin', version: '2' },
  },
  payload: { signature: `0x${'11'.repeat(65)}`, authorization: AUTHORIZATION },
}

const authorized = (change: object) =>
  encode({ ...PAYLOAD, payload: { ...PAYLOAD.payload, authorization: { ...AUTHORIZATION, ...change } } })

function decode(header: string) {
  const decoded = readBase64(header, readPayload)
  return decoded.kind === 'payload' ? readExact(decoded.payload) : decoded
}

function faultOf(header: string): string {
  const decoded = decode(header)
  return decoded.kind === 'malformed' ? `${decoded.code}: ${decoded.detail}` : 'none'
}

t.test('reads a payment in every form of JSON and base64', async (t) => {
  const padded = encode(PAYLOAD)
  const umlaut = encode({ ...PAYLOAD, resource: { url: 'https://ex.example/ä', description: '価格 ✓' } })
  for (const header of [
    padded,
    padded.replace(/=+$/, ''),
    Buffer.from(JSON.stringify(PAYLOAD, null, 2)).toString('base64'),
    umlaut,
    encode({ ...PAYLOAD, resource: null, extensions: null }),
    encode({ ...PAYLOAD, accepted: { ...PAYLOAD.accepted, extra: null } }),
    encode({ ...PAYLOAD, somethingNew: [1, 2] }),
    encode({ ...PAYLOAD, payload: { ...PAYLOAD.payload, signature: `0x${'11'.repeat(200)}` } }),
  ]) {
    t.equal(decode(header).kind, 'payload')
  }
})

t.test('reads every length of padding', async (t) => {
  for (const pad of ['', ' ', '  ']) {
    const header = Buffer.from(JSON.stringify(PAYLOAD) + pad).toString('base64')
    t.equal(decode(header).kind, 'payload')
    t.equal(decode(header.replace(/=+$/, '')).kind, 'payload')
  }
})

t.test('refuses non-standard base64 as such', async (t) => {
  const bytes = Buffer.from(JSON.stringify({ ...PAYLOAD, x: '???>>>~~~' }))
  const url = bytes.toString('base64url')
  t.match(url, /[-_]/, 'the case is what it says')
  for (const header of [
    '',
    ' ',
    '=',
    'a b',
    'a,b',
    '%7B',
    '{}',
    'Zm9v===',
    url,
    `${encode(PAYLOAD)}\u00e9`,
  ]) {
    t.match(faultOf(header), /^invalid_payload: the text is not standard base64/, JSON.stringify(header))
  }
})

t.test('refuses base64 of anything but an object', async (t) => {
  for (const text of ['hello', '', '{', 'null', '[]', '7', '"pay"', 'true', '{}{}', '\u0000', '\ufeff{}']) {
    const header = Buffer.from(text).toString('base64')
    t.match(faultOf(header), /^invalid_payload: the text/, JSON.stringify(text))
  }
  t.match(faultOf(Buffer.from([0xff, 0xfe, 0x00]).toString('base64')), /^invalid_payload/)
})

t.test('names another version, whatever the rest contains', async (t) => {
  t.match(
    faultOf(encode({ ...PAYLOAD, x402Version: 1 })),
    /^invalid_x402_version: x402Version 1 is not supported/,
  )
  t.match(faultOf(encode({ x402Version: 3 })), /^invalid_x402_version: x402Version 3/)
  t.match(
    faultOf(encode({ ...PAYLOAD, x402Version: '2' })),
    /^invalid_payload: x402Version must be the number 2/,
  )
  t.match(faultOf(encode({})), /^invalid_payload: x402Version must be/)
})

t.test('accepts 16 to 128 letters, digits, - or _ as a client’s identifier', async (t) => {
  const named = (extension: Json) => encode({ ...PAYLOAD, extensions: { 'payment-identifier': extension } })
  for (const id of ['a'.repeat(16), 'Z-_9'.repeat(32), 'pay_7d5d747be160e280504c099d984bcfe0']) {
    const decoded = decode(named({ info: { required: false, id }, schema: {} }))
    if (decoded.kind !== 'payload') throw new Error(decoded.detail)
    t.equal(decoded.payload.extensions?.['payment-identifier']?.info?.id, id)
  }
  for (const extension of [null, {}, { info: null }, { info: {} }, { info: { required: false }, schema: {} }])
    t.equal(faultOf(named(extension)), 'none', 'the echo of a client that does not know it')
  for (const id of [
    '',
    'a'.repeat(15),
    'a'.repeat(129),
    'a b'.repeat(8),
    'ä'.repeat(20),
    `${'a'.repeat(20)}\n`,
    7,
    null,
  ])
    t.match(
      faultOf(named({ info: { id } })),
      /^invalid_payload: .*payment-identifier.* 16 to 128/,
      String(id),
    )
  t.match(faultOf(named('x'.repeat(20))), /^invalid_payload: .*payment-identifier/)
})

t.test('names the field that is missing or wrong', async (t) => {
  t.match(faultOf(encode({ x402Version: 2 })), '/accepted is missing')
  t.match(faultOf(encode({ ...PAYLOAD, payload: {} })), '/payload/signature is missing')
  t.match(faultOf(encode({ ...PAYLOAD, payload: null })), '/payload is not what x402 v2')
  t.match(faultOf(encode({ ...PAYLOAD, resource: {} })), '/resource/url is missing')
  t.match(
    faultOf(encode({ ...PAYLOAD, accepted: { ...PAYLOAD.accepted, amount: 10000 } })),
    '/accepted/amount is not',
  )
  const permit2 = { ...PAYLOAD, payload: { signature: PAYLOAD.payload.signature, permit2Authorization: {} } }
  t.match(faultOf(encode(permit2)), '/payload/authorization is missing', 'another way to move tokens')
})

t.test('reads only decimal numbers that the token can hold', async (t) => {
  const largest = String(2n ** 256n - 1n)
  for (const value of ['0', '1', '10000', largest]) t.equal(faultOf(authorized({ value })), 'none', value)
  for (const value of [
    '0x2710',
    '-1',
    '+1',
    '1.0',
    '1e4',
    '010',
    ' 1',
    '1 ',
    '1_000',
    '',
    'NaN',
    '١٢',
    String(2n ** 256n),
    '9'.repeat(78),
    '9'.repeat(400),
    10000,
    null,
    [10000],
  ]) {
    for (const name of ['value', 'validAfter', 'validBefore']) {
      t.match(faultOf(authorized({ [name]: value })), /^invalid_payload/, `${name} ${JSON.stringify(value)}`)
    }
  }
})

t.test('requires the exact length of addresses, nonces and signatures', async (t) => {
  for (const change of [
    { from: `0x${'ab'.repeat(19)}` },
    { from: `0x${'ab'.repeat(21)}` },
    { to: 'cd'.repeat(20) },
    { to: `0X${'cd'.repeat(20)}` },
    { nonce: `0x${'0f'.repeat(31)}` },
    { nonce: `0x${'0f'.repeat(33)}` },
    { nonce: `0x${'zz'.repeat(32)}` },
    { nonce: `0x${'0f'.repeat(32)}\n` },
  ]) {
    t.match(
      faultOf(authorized(change)),
      /^invalid_payload: \/payload\/authorization\//,
      JSON.stringify(change),
    )
  }
  for (const signature of [
    '0x',
    '0x1',
    `0x${'11'.repeat(64)}`,
    `0x${'11'.repeat(65)}1`,
    `0x${'11'.repeat(3000)}`,
  ]) {
    t.match(faultOf(encode({ ...PAYLOAD, payload: { ...PAYLOAD.payload, signature } })), /^invalid_payload/)
  }
})

t.test('answers a header of any size at once', async (t) => {
  t.match(faultOf('A'.repeat(60_000)), /^invalid_payload/)
  t.match(faultOf(encode({ ...PAYLOAD, extensions: { x: 'y'.repeat(40_000) } })), /^invalid_payload/)
  const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`
  const nested = JSON.stringify(PAYLOAD).replace('"USD Coin"', deep)
  t.equal(decode(Buffer.from(nested).toString('base64')).kind, 'payload')
})
