import t from 'tap'
import { addressOf, challengeOf, readHeader, stockFetch } from '../../../support/payment.ts'
import { openShop } from '../../../support/shop.ts'

const shop = await openShop()
t.teardown(() => shop.close())

t.test('sells with one endpoint on that network, and offers only what it can settle', async (t) => {
  const { accepts, resource } = await challengeOf(`${shop.url}/paid/work`)
  t.strictSame(
    accepts,
    [
      {
        scheme: 'exact',
        network: 'eip155:8453',
        amount: '10000',
        asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
        payTo: shop.payTo,
        maxTimeoutSeconds: 60,
        extra: { name: 'USD Coin', version: '2' },
      },
    ],
    'four networks in the catalog, one endpoint',
  )
  t.equal(
    resource.url,
    'https://api.example.com/paid/work',
    'the public address, not the one behind the proxy',
  )
  t.match(shop.server.output(), /Polygon \(eip155:137\) is not offered: RPC_URL_137 missing/)
  t.match(shop.server.output(), /Avalanche \(eip155:43114\) is not offered/)
})

t.test('charges the stock client exactly the price on the terms of real USD Coin', async (t) => {
  const key = await shop.wallet()
  const payer = addressOf(key)
  const before = { payer: await shop.chain.balance(payer), payee: await shop.chain.balance(shop.payTo) }
  const response = await stockFetch(key)(`${shop.url}/paid/work?n=7`)
  t.equal(response.status, 200)
  t.strictSame(((await response.json()) as { n: number }).n, 7)
  const receipt = readHeader(response, 'payment-response')
  t.match(receipt, { success: true, transaction: /^0x[0-9a-f]{64}$/, network: 'eip155:8453', payer })
  t.equal(await shop.chain.balance(payer), before.payer - 10_000n)
  t.equal(await shop.chain.balance(shop.payTo), before.payee + 10_000n)
  const uses = (await shop.onchain.uses()).filter((use) => use.payer === payer)
  t.equal(uses.length, 1)
  t.equal(uses[0]?.transaction, receipt['transaction'])
  t.strictSame(await shop.onchain.received(shop.payTo), [10_000n])
})

t.test('keeps a signer key out of everything the service says', async (t) => {
  t.notMatch(shop.server.output(), /[0-9a-f]{64}/i)
})
