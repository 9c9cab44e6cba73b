import t from 'tap'
import { OFFERING_MS, RecentOffers } from '../../../../src/engine/purchase/recent-offers.ts'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import type { Micros } from '../../../../src/engine/base/money.ts'
import { compileRoutes } from '../../../support/catalogs.ts'
import { FORGED, NOW, openShop, POOR } from '../../../support/scripted-protocol.ts'

const pricesOf = async (prices: RecentOffers, operation: string): Promise<Micros[]> =>
  (await prices.of({ id: operation, parameters: [] }, {})).map(({ price }) => price)

const at = (price: string) =>
  compileRoutes(`  /paid/tide:
    price: ${price}
    handler: tide
    summary: Tides
    example: { tide: 1 }
`)

t.test('accepts the old price from a buyer who signed just before a change', async (t) => {
  const shop = await openShop(t)
  const prices = new RecentOffers(shop.deps)
  await prices.offer(at('0.005'))
  t.strictSame(await pricesOf(prices, 'tide'), [5_000n])
  await prices.withdraw(at('0.005'), 300_000)
  await prices.offer(at('0.01'))
  t.strictSame(new Set(await pricesOf(prices, 'tide')), new Set([5_000n, 10_000n]))
  t.strictSame(await pricesOf(prices, 'moon'), [])
  shop.clock.now = NOW + 299_999
  t.ok((await pricesOf(prices, 'tide')).includes(5_000n as Micros))
  shop.clock.now += 1_000
  t.notOk((await pricesOf(prices, 'tide')).includes(5_000n as Micros))
})

t.test('honours the prices of a killed process for its grace period', async (t) => {
  const shop = await openShop(t)
  await new RecentOffers({ ...shop.deps, owner: 'killed' }).offer(at('0.005'))
  const next = new RecentOffers({ ...shop.deps, owner: 'next' })
  await next.offer(at('0.01'))
  const grace = at('0.01').payments.repriceGrace
  shop.clock.now = NOW + grace + OFFERING_MS - 1
  t.ok((await pricesOf(next, 'tide')).includes(5_000n as Micros))
  shop.clock.now += 1_000
  t.notOk((await pricesOf(next, 'tide')).includes(5_000n as Micros))
})

t.test('keeps the offers of an older process when a newer one reverts a price', async (t) => {
  const shop = await openShop(t)
  const older = new RecentOffers({ ...shop.deps, owner: 'older' })
  const newer = new RecentOffers({ ...shop.deps, owner: 'newer' })
  await older.offer(at('0.005'))
  await newer.offer(at('0.005'))
  await newer.withdraw(at('0.005'), 1_000)
  shop.clock.now += 2_000
  t.strictSame(await pricesOf(newer, 'tide'), [5_000n])
})

t.test('honours the amount only', async (t) => {
  const shop = await openShop(t)
  const deps = { ...shop.deps, recentOffers: async () => [{ price: 7_000n as Micros }] }
  const asked: bigint[] = []
  const payment = shop.payment({
    check: ({ price }) => {
      asked.push(price)
      return price === 7_000n ? undefined : FORGED
    },
  })
  t.match(await shop.buy({ payment }, deps), { kind: 'answered' })
  t.strictSame(asked, [5_000n, 7_000n])
  const misfit = shop.payment({ key: 'test:two', check: () => FORGED })
  t.strictSame(await shop.buy({ payment: misfit }, deps), { kind: 'refused', refusal: FORGED })
})

t.test('asks other processes for their offers only when a payment is signed', async (t) => {
  const shop = await openShop(t)
  let asked = 0
  const lately = async (): Promise<[]> => {
    asked += 1
    return []
  }
  shop.bank.check = POOR
  shop.bank.verify = FORGED
  t.strictSame(await shop.buy({}, { ...shop.deps, recentOffers: lately }), { kind: 'refused', refusal: POOR })
  t.equal(asked, 0)
  shop.bank.verify = undefined
  t.strictSame(await shop.buy({}, { ...shop.deps, recentOffers: lately }), { kind: 'refused', refusal: POOR })
  t.equal(asked, 1)
})

t.test('reads the offers of other processes once a second, however many ask', async (t) => {
  const shop = await openShop(t)
  let read = 0
  const ledger: Ledger = {
    ...shop.ledger,
    listExpiring: (name, now) => {
      read += 1
      return shop.ledger.listExpiring(name, now)
    },
  }
  const prices = new RecentOffers({ ...shop.deps, ledger })
  await prices.offer(at('0.005'))
  await Promise.all(Array.from({ length: 50 }, () => pricesOf(prices, 'tide')))
  t.equal(read, 1)
  shop.clock.now += 1_000
  t.strictSame(await pricesOf(prices, 'tide'), [5_000n])
  t.equal(read, 2)
})

t.test('remembers the validity that a payment was offered', async (t) => {
  const shop = await openShop(t)
  const prices = new RecentOffers(shop.deps)
  const catalog = at('0.005')
  const { x402 } = catalog.payments
  if (x402 === undefined) throw new Error('the catalog takes x402')
  await prices.offer({ ...catalog, payments: { ...catalog.payments, x402: { ...x402, timeout: 90_000 } } })
  t.match(await prices.of({ id: 'tide', parameters: [] }, {}), [{ price: 5_000n, timeoutSeconds: 90 }])
})
