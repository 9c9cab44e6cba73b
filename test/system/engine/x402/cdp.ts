/** Payments settled by a facilitator that wants a fresh token for every request, as Coinbase's does. */
import t from 'tap'
import { cdpKeyPair, openFacilitator, type FacilitatorServer } from '../../../support/facilitator.ts'
import { challengeOf, send, sign } from '../../../support/payment.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

interface Place {
  readonly shop: Shop
  readonly facilitator: FacilitatorServer
}

async function open(kind: 'ed25519' | 'ec'): Promise<Place> {
  const key = cdpKeyPair(kind)
  let facilitator: FacilitatorServer | undefined
  const shop = await openShop(async (chain) => {
    facilitator = await openFacilitator(chain, 'remembers', key)
    return {
      SETTLER_PRIVATE_KEY: '',
      RPC_URL_8453: '',
      CDP_API_KEY_ID: key.keyId,
      CDP_API_KEY_SECRET: key.keySecret,
      CDP_FACILITATOR_URL: facilitator.url,
    }
  })
  if (facilitator === undefined) throw new Error('no facilitator')
  return { shop, facilitator }
}

async function buy({ shop }: Place, n: number): Promise<Response> {
  const payment = await sign(await challengeOf(`${shop.url}/paid/work`), await shop.wallet())
  return send(`${shop.url}/paid/work?n=${n}`, payment.header)
}

for (const kind of ['ed25519', 'ec'] as const) {
  t.test(`settles with a fresh token for each request, signed by an ${kind} key`, async (t) => {
    const place = await open(kind)
    t.teardown(() => Promise.all([place.shop.close(), place.facilitator.close()]))
    for (const n of [1, 2]) {
      const response = await buy(place, n)
      t.equal(response.status, 200)
      await response.body?.cancel()
    }
    t.equal((await place.shop.onchain.uses()).length, 2, 'charged on chain')
    t.strictSame(place.facilitator.declined(), [])
    t.equal(place.facilitator.settles().length, 2)
  })
}

t.test('keeps what a facilitator says of a listing, and names what it rejects', async (t) => {
  const place = await open('ed25519')
  t.teardown(() => Promise.all([place.shop.close(), place.facilitator.close()]))
  const listings = async (): Promise<unknown> => {
    const status = (await (await fetch(`${place.shop.url}/status.json`)).json()) as {
      readonly listings: unknown
    }
    return status.listings
  }
  t.strictSame(await listings(), [])
  const rejectedReason = 'description is longer than 500 characters'
  place.facilitator.list({ bazaar: { status: 'rejected', rejectedReason } })
  await (await buy(place, 1)).body?.cancel()
  const facilitator = new URL(place.facilitator.url).host
  await until('the report is shown', async () => JSON.stringify(await listings()) !== '[]')
  t.match(await listings(), [
    { facilitator, operation: 'work', status: 'rejected', reason: rejectedReason, at: /^\d{4}-.*Z$/ },
  ])
  await place.shop.server.said(
    new RegExp(`x402: ${facilitator} rejects the listing of work: ${rejectedReason}`),
  )
})
