import t from 'tap'
import { at, compileHarbour, FACTS, HARBOUR, items, renderJson } from '../../../support/documents.ts'

const manifest = renderJson('x402')

t.test('lists only concrete addresses', async (t) => {
  t.equal(at(manifest, 'version'), 1)
  t.strictSame(at(manifest, 'resources'), [
    'https://harbour.example/paid/tides/bristol',
    'https://harbour.example/paid/ships/moves',
    'https://harbour.example/paid/berths/7',
  ])
})

t.test('states the terms of the 402', async (t) => {
  t.strictSame(at(manifest, 'payment'), {
    protocols: ['x402'],
    network: 'eip155:8453',
    networks: ['eip155:8453', 'eip155:137'],
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    payTo: '0x1111111111111111111111111111111111111111',
    currency: 'USD',
    priceRange: { min: '0.005000', max: '1.000000' },
  })
  t.strictSame(at(manifest, 'endpoints', 0), {
    method: 'GET',
    path: '/paid/tides/{port}',
    url: 'https://harbour.example/paid/tides/bristol',
    title: 'Tides',
    price: { mode: 'fixed', currency: 'USD', amount: '0.005000' },
    description: 'Returns the next high and low waters of a port',
    category: 'tides',
    sample: '/sample/tides',
    available: true,
  })
})

t.test('states proofs of ownership only when there are some', async (t) => {
  t.strictSame(at(manifest, 'ownershipProofs'), compileHarbour().service.ownershipProofs)
  const none = compileHarbour(HARBOUR.replace(/ {2}ownership_proofs:.*\n/, ''))
  t.equal(at(renderJson('x402', none), 'ownershipProofs'), undefined)
})

t.test('is empty when x402 is switched off', async (t) => {
  const facts = { ...FACTS, protocols: ['mpp'], paymentRequired: () => undefined }
  const none = renderJson('x402', undefined, facts)
  t.strictSame(items(at(none, 'resources')), [])
  t.strictSame(items(at(none, 'endpoints')), [])
  t.strictSame(at(none, 'payment'), { protocols: ['mpp'], networks: [], currency: 'USD' })
})
