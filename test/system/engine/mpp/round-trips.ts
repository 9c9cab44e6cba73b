import t from 'tap'
import { openMppService } from '../../../support/mpp.ts'
import type { Hex } from '../../../support/payment.ts'
import { fewestTrips, tripsDuring } from '../../../support/rpc-trips.ts'
import { mppChallengeOf, signTempo } from '../../../support/tempo.ts'

const service = await openMppService()
t.teardown(() => service.close())
const path = `${service.url}/paid/work?n=1`
const key = await service.chain.wallet()

/** The calls to the node for one purchase. */
async function buy(payer: Hex): Promise<readonly (readonly string[])[]> {
  const authorization = await signTempo(service.chain.rpcUrl, payer, await mppChallengeOf(path))
  return tripsDuring(service.node, async () => {
    const response = await fetch(path, { headers: { authorization } })
    await response.text()
    if (response.status !== 200) throw new Error(`a paid request was answered ${response.status}`)
  })
}

t.test('asks the node once before the work, and sends what has just been simulated', async (t) => {
  await buy(key)
  const trips = await fewestTrips([1, 2, 3, 4].map(() => () => buy(key)))
  const [before = [], sent, ...after] = trips
  const asked = before.filter((method) => method !== 'eth_getBlockByNumber')
  t.strictSame(asked, Array(4).fill('eth_call'), JSON.stringify(trips))
  t.strictSame(sent, ['eth_sendRawTransaction'])
  for (const trip of after) t.strictSame(trip, ['eth_getTransactionReceipt'])
})
