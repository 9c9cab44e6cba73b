import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Fault } from '../../../src/service/stand-ins/fault.ts'
import { startStandIns } from '../../../src/service/stand-ins/stand-ins.ts'
import { STAND_IN_CREDENTIALS } from '../../../src/service/sources/twitch/access-token.ts'
import { publishedExample } from '../../support/handler-context.ts'
import { stockFetch } from '../../support/payment.ts'
import { shapeDifferences } from '../../support/service/answer-shape.ts'
import { openShop, type Shop } from '../../support/shop.ts'

const CATALOG = fileURLToPath(new URL('../../../catalog.yaml', import.meta.url))
const LOGIN = '/oauth2/token'
const PATHS = ['/games/top', '/streams', '/games']
const FAULTS: readonly (readonly [Fault, number])[] = [
  ['html', 502],
  ['truncated', 502],
  ['drift', 502],
  ['hang', 504],
]
const ROUTES = [
  { path: '/paid/streaming/hype?limit=4', example: 'streaming/hype', atomic: 20_000n },
  { path: '/paid/game/metadata?name=Nine%20Lanterns%20Deep', example: 'game/metadata', atomic: 5_000n },
]

const faults: Record<string, Fault> = {}
const standIns = await startStandIns({ faults })
t.teardown(standIns.stop)

const open = (credentials: Readonly<Record<string, string>>): Promise<Shop> =>
  openShop(async () => ({
    CATALOG,
    TWITCH_API_URL: `${standIns.url}/twitch-api`,
    TWITCH_ID_URL: `${standIns.url}/twitch-id`,
    IGDB_URL: `${standIns.url}/igdb`,
    ...credentials,
  }))

const shop = await open({
  TWITCH_CLIENT_ID: STAND_IN_CREDENTIALS.clientId,
  TWITCH_CLIENT_SECRET: STAND_IN_CREDENTIALS.clientSecret,
})
t.teardown(() => shop.close())
const pay = stockFetch(await shop.wallet())
const taken = async (): Promise<number> => (await shop.onchain.received(shop.payTo)).length

async function answers(
  path: string,
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  const response = await pay(shop.url + path)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

// The log-in first: afterwards a token is available.
for (const paths of [[LOGIN], PATHS]) {
  for (const [fault, status] of FAULTS) {
    t.test(`charges nothing when ${paths.join()} answer ${fault}`, async (t) => {
      for (const path of paths) faults[path] = fault
      const before = await taken()
      for (const { status: actual, body } of await Promise.all(ROUTES.map(({ path }) => answers(path)))) {
        t.equal(actual, status, JSON.stringify(body))
        t.match(body, { charged: 'no', retryable: true })
      }
      t.equal(await taken(), before, 'no money moved')
      for (const path of paths) delete faults[path]
    })
  }
}

t.test('charges nothing for an unknown name', async (t) => {
  const before = await taken()
  const { status, body } = await answers('/paid/game/metadata?name=Zzyzx')
  t.equal(status, 404)
  t.match(body, { code: 'not_found', charged: 'no', detail: "No game found for name 'Zzyzx'" })
  t.equal(await taken(), before)
})

t.test('sells every route at its price, in the form of its example, once the sources answer', async (t) => {
  for (const { path, example, atomic } of ROUTES) {
    const before = await taken()
    const { status, body } = await answers(path)
    t.equal(status, 200, JSON.stringify(body))
    t.strictSame(shapeDifferences(publishedExample(example), body), [], example)
    t.strictSame((await shop.onchain.received(shop.payTo)).slice(before), [atomic])
  }
})

t.test('answers the following samples from the cache', async (t) => {
  const sum = (): number => [...standIns.asked.values()].reduce((all, each) => all + each, 0)
  const before = sum()
  for (const path of ['/sample/streaming/hype?limit=50', '/sample/game/metadata?name=Nine%20Lanterns%20Deep'])
    t.match(await answers(path), { status: 200, body: { preview: true } })
  t.equal(sum(), before)
})

t.test('charges nothing when the operator’s credentials are refused', async (t) => {
  const other = await open({ TWITCH_CLIENT_ID: 'stand-in-client', TWITCH_CLIENT_SECRET: 'tricky-word' })
  t.teardown(() => other.close())
  const buy = stockFetch(await other.wallet())
  for (const { path } of ROUTES) {
    const response = await buy(other.url + path)
    t.equal(response.status, 503)
    t.match(await response.json(), { code: 'not_configured', charged: 'no' })
  }
  t.strictSame(await other.onchain.received(other.payTo), [])
  t.notMatch(other.output(), 'tricky-word')
})
