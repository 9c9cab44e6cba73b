import t from 'tap'
import { compileText } from '../../../../src/engine/catalog/load-catalog.ts'

function leastDeposit(prices: readonly string[], channels = ''): bigint | undefined {
  const routes = prices.map((price, place) => `  /paid/n${place}: { price: ${price}, summary: X }`)
  const text = `catalog: 1
service: { name: Shop, version: '1' }
payments: { currency: USD, x402: { networks: [base], schemes: [batch-settlement, exact]${channels} } }
routes:
${routes.join('\n')}
`
  const source = { handlers: undefined, documents: [], read: () => undefined }
  return compileText('catalog.yaml', text, source).catalog.payments.x402?.channels.leastDeposit
}

t.test('asks for a deposit of a hundred calls at the highest price', async (t) => {
  t.equal(leastDeposit(['0.001']), 100_000n)
  t.equal(leastDeposit(['0.001', '0.02', '0.005', 'free']), 2_000_000n)
  const metered = '{ metered: [{ bytes_of: answer, price: 0.0001 }], ceiling: 0.03 }'
  t.equal(leastDeposit(['0.001', metered]), 3_000_000n, 'the ceiling of a metered price')
})

t.test('asks for at most what a channel may owe', async (t) => {
  t.equal(leastDeposit(['2']), 10_000_000n)
  t.equal(leastDeposit(['2'], ', channels: { most_unclaimed: 50 }'), 50_000_000n)
})

t.test('asks for the deposit that the catalog names', async (t) => {
  t.equal(leastDeposit(['0.02'], ', channels: { least_deposit: 0.1 }'), 100_000n)
})
