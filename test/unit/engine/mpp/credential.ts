import { Challenge, Credential } from 'mppx'
import t from 'tap'
import { findCredential } from '../../../../src/engine/mpp/credential.ts'

const CHALLENGE = Challenge.from({
  id: 'q9k7v2n5Qk2WmW0R1bY1v1mU3s8b1m5tUeXW4v3t2pA',
  realm: 'api.example.com',
  method: 'tempo',
  intent: 'charge',
  request: { amount: '5000', currency: '0x20c0', recipient: '0xbeef' },
  expires: '2026-11-20T20:24:26.867Z',
  meta: { _mppx_scope: 'ping:none' },
})
const SIGNED = { type: 'transaction', signature: '0x76C0FFEE' }
const AUTHORIZATION = Credential.serialize({ challenge: CHALLENGE, payload: SIGNED })

function write(value: unknown): string {
  return `Payment ${Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')}`
}

/** The credential of above with other members. */
function spoil(challenge: object, payload: object = SIGNED): string {
  const { challenge: told } = JSON.parse(
    Buffer.from(AUTHORIZATION.slice(8), 'base64url').toString('utf8'),
  ) as { challenge: object }
  return write({ challenge: { ...told, ...challenge }, payload })
}

t.test('reads a credential of mppx as it was written, in any case of the scheme', async (t) => {
  for (const scheme of ['Payment', 'payment', 'PAYMENT']) {
    const found = findCredential(`${scheme} ${AUTHORIZATION.slice(8)}`)
    if (found.kind !== 'credential') throw new Error(found.kind)
    const { challenge, transaction, token } = found.credential
    t.match(challenge, { id: CHALLENGE.id, realm: CHALLENGE.realm, expires: CHALLENGE.expires })
    t.equal(Buffer.from(challenge.opaque ?? '', 'base64url').toString(), '{"_mppx_scope":"ping:none"}')
    t.equal(transaction, '0x76c0ffee', 'in one spelling, for it is told apart by its digest')
    t.equal(`Payment ${token}`, AUTHORIZATION)
  }
})

t.test('ignores other schemes of the header', async (t) => {
  for (const header of [
    undefined,
    '',
    'Bearer x',
    'Basic eDp5',
    'Paymentx abc',
    'Bearer payment',
    'Bearer a=b, c=d',
  ]) {
    t.strictSame(findCredential(header), { kind: 'none' }, String(header))
  }
  t.equal(findCredential(`Bearer x, ${AUTHORIZATION}`).kind, 'credential', 'beside another scheme')
})

t.test('refuses two payments in one request', async (t) => {
  for (const header of [
    `${AUTHORIZATION}, ${AUTHORIZATION}`,
    `${AUTHORIZATION},payment x`,
    'Payment, Payment',
  ])
    t.match(findCredential(header), { kind: 'malformed', code: 'multiple_payments' })
})

t.test('answers an unreadable credential with a challenge that can be paid', async (t) => {
  const { challenge } = Credential.deserialize(AUTHORIZATION)
  const unreadable: Readonly<Record<string, string>> = {
    'no token': 'Payment',
    'not base64url': 'Payment !!',
    'standard base64': `Payment ${AUTHORIZATION.slice(8)}==`,
    'two tokens': 'Payment abc def',
    'not JSON': write('{'),
    'no object': write('[]'),
    'nothing in it': write('{}'),
    'no challenge': write({ payload: SIGNED }),
    'a challenge as text': write({ challenge: 'x', payload: SIGNED }),
    'no payload': write({ challenge: { ...challenge, request: 'e30' } }),
    'a request that was decoded': write({ challenge, payload: SIGNED }),
    'an opaque that was decoded': spoil({ opaque: { _mppx_scope: 'ping:none' } }),
    'an empty id': spoil({ id: '' }),
    'an endless id': spoil({ id: 'a'.repeat(129) }),
    'an id with a line break': spoil({ id: 'a\nb' }),
    'an unknown payload': spoil({}, { type: 'x' }),
    'a payload without type': spoil({}, {}),
    'no transaction': spoil({}, { type: 'transaction' }),
    'half a byte': spoil({}, { type: 'transaction', signature: '0x765' }),
    'no hexadecimals': spoil({}, { type: 'transaction', signature: '0xzz' }),
    'an empty transaction': spoil({}, { type: 'transaction', signature: '0x' }),
    'an endless transaction': spoil({}, { type: 'transaction', signature: `0x${'76'.repeat(8193)}` }),
    'more than is looked at': `Payment ${'a'.repeat(40_000)}`,
  }
  for (const [name, header] of Object.entries(unreadable))
    t.match(findCredential(header), { kind: 'refused', code: 'malformed_credential' }, name)
})

t.test('accepts 4 KB, as the scheme requires', async (t) => {
  const header = spoil({}, { type: 'transaction', signature: `0x${'76'.repeat(4096)}` })
  t.ok(header.length > 4096)
  t.equal(findCredential(header).kind, 'credential')
})

t.test('refuses another method or intent before it reads the payload', async (t) => {
  for (const other of [{ method: 'stripe' }, { intent: 'session' }, { method: 'Tempo' }])
    t.match(findCredential(spoil(other, { spt: 'x' })), { kind: 'malformed', code: 'method_unsupported' })
})

t.test('refuses a payment that moved before the work', async (t) => {
  const hash = `0x${'1'.repeat(64)}`
  for (const payload of [
    { type: 'hash', hash },
    { type: 'proof', signature: '0x12' },
  ])
    t.match(findCredential(spoil({}, payload)), { kind: 'refused', code: 'verification_failed' })
})

t.test('keeps the credential out of every refusal', async (t) => {
  for (const header of [
    spoil({ id: '' }),
    spoil({ method: 'stripe' }),
    spoil({}, { type: 'secret words' }),
  ]) {
    const found = findCredential(header)
    t.notMatch(JSON.stringify(found), /secret words|stripe|c0ffee/i)
  }
})
