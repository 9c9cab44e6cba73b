import t from 'tap'
import { mpp } from '../../../src/buyer/protocols/mpp.ts'

const CHARGE = {
  amount: '5000',
  currency: '0x20c0000000000000000000000000000000000000',
  recipient: `0x${'1'.repeat(40)}`,
  methodDetails: { chainId: 42431, supportedModes: ['pull'] },
}

function encode(request: object): string {
  return Buffer.from(JSON.stringify(request)).toString('base64url')
}

const REQUEST = encode(CHARGE)
const TERMS = `realm="shop", method="tempo", intent="charge", request="${REQUEST}"`

function amountIn(header: string): bigint | undefined {
  const [offer] = mpp.readOffers({ kind: 'http', headers: new Headers({ 'www-authenticate': header }) })
  return offer?.amount
}

t.test('finds the charge that it can pay among challenges as sellers write them', async (t) => {
  for (const header of [
    `Payment id="a", ${TERMS}`,
    `payment ID="a",realm = "b" ,, method=tempo, intent=charge, request=${REQUEST} ,`,
    `Payment id="1", realm="shop", method="stripe", intent="charge", request="${REQUEST}", Payment id="2", ${TERMS}`,
    `Bearer realm="a, Payment id=\\"evil\\"", Payment id="2", ${TERMS}`,
    `Payment id="a", description="back\\\\slash, \\"quote\\" é", ${TERMS}`,
    `Negotiate YWJjZA==, Payment id="2", ${TERMS}, Basic`,
  ])
    t.equal(amountIn(header), 5_000n, header)
})

t.test('takes no offer from a header that is malformed', async (t) => {
  for (const header of [
    '',
    ' , ',
    'Payment',
    'Payment id="a", realm="open',
    `Payment id="1", Payment id="2", realm=`,
    `Payment id="1", amount="1", amount="2", ${TERMS}`,
    `Payment id="1", ID="2", ${TERMS}`,
    `Payment id="", ${TERMS}`,
    `Payment id="1", ${TERMS.replace('shop', '')}`,
    `Payment id="1", expires="tomorrow", ${TERMS}`,
    `id="1", ${TERMS}`,
    `(Payment) id="1", ${TERMS}`,
    `Bearer realm="a, Payment id=\\"evil\\", ${TERMS.replaceAll('"', '\\"')}"`,
  ])
    t.equal(amountIn(header), undefined, header)
})

t.test('takes no offer with terms that it does not show', async (t) => {
  const { methodDetails } = CHARGE
  for (const request of [
    { ...CHARGE, amount: '0' },
    { ...CHARGE, amount: '-1' },
    { ...CHARGE, recipient: 'me' },
    { ...CHARGE, currency: `0x${'9'.repeat(40)}` },
    { ...CHARGE, methodDetails: { ...methodDetails, chainId: 1 } },
    { ...CHARGE, methodDetails: { ...methodDetails, supportedModes: ['push'] } },
    { ...CHARGE, methodDetails: { ...methodDetails, splits: [] } },
  ])
    t.equal(amountIn(`Payment id="1", ${TERMS.replace(REQUEST, encode(request))}`), undefined)
})
