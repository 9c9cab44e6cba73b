import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { challengeOf, send, sign } from '../../../support/payment.ts'
import { openShop } from '../../../support/shop.ts'

/** Longer than everything that a purchase does by itself. */
const LATENCY_MS = 120

const shop = await openShop()
t.teardown(() => shop.close())
const path = `${shop.url}/paid/work?n=1`
const buyer = await shop.wallet()

/** The calls to the node for one purchase, those that were under way at the same time together. */
async function buy(payer: typeof buyer): Promise<readonly (readonly string[])[]> {
  const { header } = await sign(await challengeOf(path), payer)
  const trips: string[][] = []
  let ends = 0
  shop.node.onCall(async (method) => {
    const now = performance.now()
    if (now >= ends) {
      trips.push([])
      ends = now + LATENCY_MS / 2
    }
    trips.at(-1)?.push(method)
    await delay(LATENCY_MS)
  })
  const response = await send(path, header)
  await response.text()
  if (response.status !== 200) throw new Error(`a paid request was answered ${response.status}`)
  shop.node.onCall(async () => undefined)
  return trips
}

/** The purchase with the fewest trips: a busy machine may take longer over one than what is known stays fresh. */
async function buyQuickly(payers: readonly (typeof buyer)[]): Promise<readonly (readonly string[])[]> {
  const all: (readonly (readonly string[])[])[] = []
  for (const payer of payers) all.push(await buy(payer))
  return all.toSorted((a, b) => a.length - b.length)[0] ?? []
}

t.test('asks the node three times in a row for a buyer who has paid before', async (t) => {
  await buy(buyer)
  const trips = await buyQuickly([buyer, buyer, buyer, buyer])
  t.equal(trips.length, 3, JSON.stringify(trips))
  t.ok(trips[0]?.includes('eth_call'), 'would it be carried out')
  t.strictSame(trips[1], ['eth_sendRawTransaction'])
  t.strictSame(trips[2], ['eth_getTransactionReceipt'])
})

t.test('checks a payment of a new buyer once more before it is sent', async (t) => {
  const buyers = [await shop.wallet(), await shop.wallet(), await shop.wallet(), await shop.wallet()]
  const trips = await buyQuickly(buyers)
  t.equal(trips.length, 4, JSON.stringify(trips))
  t.strictSame(trips[1], ['eth_call'])
})
