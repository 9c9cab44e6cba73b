import t from 'tap'
import { challengeOf, send, sign, type Hex } from '../../../support/payment.ts'
import { fewestTrips, tripsDuring } from '../../../support/rpc-trips.ts'
import { openShop } from '../../../support/shop.ts'

const shop = await openShop()
t.teardown(() => shop.close())
const path = `${shop.url}/paid/work?n=1`

/** The calls to the node for one purchase. */
async function buy(payer: Hex): Promise<readonly (readonly string[])[]> {
  const { header } = await sign(await challengeOf(path), payer)
  return tripsDuring(shop.node, async () => {
    const response = await send(path, header)
    await response.text()
    if (response.status !== 200) throw new Error(`a paid request was answered ${response.status}`)
  })
}

t.test('asks the node three times in a row for a buyer who has paid before', async (t) => {
  const buyer = await shop.wallet()
  await buy(buyer)
  const trips = await fewestTrips([1, 2, 3, 4].map(() => () => buy(buyer)))
  t.equal(trips.length, 3, JSON.stringify(trips))
  t.ok(trips[0]?.includes('eth_call'), 'would it be carried out')
  t.strictSame(trips[1], ['eth_sendRawTransaction'])
  t.strictSame(trips[2], ['eth_getTransactionReceipt'])
})

t.test('checks a payment of a new buyer once more before it is sent', async (t) => {
  const buyers = [await shop.wallet(), await shop.wallet(), await shop.wallet(), await shop.wallet()]
  const trips = await fewestTrips(buyers.map((buyer) => () => buy(buyer)))
  t.equal(trips.length, 4, JSON.stringify(trips))
  t.strictSame(trips[1], ['eth_call'])
})
