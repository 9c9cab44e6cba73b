import t, { type Test } from 'tap'
import { startStandIns, type StandIns } from '../../../src/service/stand-ins/stand-ins.ts'
import { STAND_IN_CREDENTIALS } from '../../../src/service/sources/twitch/access-token.ts'
import { randomKey } from '../../support/payment.ts'
import { startServer, type RunningServer } from '../../support/server.ts'

const SECRET = STAND_IN_CREDENTIALS.clientSecret

/** The shipped catalog on stand-ins, as an operator runs it: challenges need no chain. */
async function start(
  t: Test,
  env: Readonly<Record<string, string>>,
): Promise<{ readonly server: RunningServer; readonly sources: StandIns }> {
  const sources = await startStandIns()
  t.teardown(() => sources.stop())
  const server = await startServer({
    env: {
      HOST: '127.0.0.1',
      BASE_URL: 'https://api.example.com',
      PAY_TO: `0x${'2b'.repeat(20)}`,
      SETTLER_PRIVATE_KEY: randomKey(),
      RPC_URL_8453: 'http://127.0.0.1:9',
      STEAM_STORE_URL: `${sources.url}/steam-store`,
      STEAM_API_URL: `${sources.url}/steam-api`,
      STEAMSPY_URL: `${sources.url}/steamspy`,
      TWITCH_API_URL: `${sources.url}/twitch-api`,
      TWITCH_ID_URL: `${sources.url}/twitch-id`,
      IGDB_URL: `${sources.url}/igdb`,
      ...env,
    },
  })
  t.teardown(() => server.stop())
  return { server, sources }
}

const ROUTES = ['streaming/hype?limit=3', 'game/metadata?name=Nine%20Lanterns%20Deep']

t.test(
  'refuses routes without credentials uncharged, and says so in the 402 and every document',
  async (t) => {
    const { server, sources } = await start(t, { TWITCH_CLIENT_ID: STAND_IN_CREDENTIALS.clientId })
    t.match(server.output(), /^source twitch: not used before TWITCH_CLIENT_SECRET is set$/m)
    for (const route of ROUTES) {
      const unpaid = await fetch(`${server.url}/paid/${route}`)
      t.equal(unpaid.status, 402, 'the price is known all the same')
      t.match(await unpaid.json(), { would_fail: { status: 503, code: 'not_configured' } })
      const sample = await fetch(`${server.url}/sample/${route}`)
      t.equal(sample.status, 503)
      t.match(await sample.json(), { code: 'not_configured', charged: 'no', retryable: false })
    }
    const [guide, openapi] = await Promise.all(
      ['/llms.txt', '/openapi.json'].map(async (path) => (await fetch(server.url + path)).text()),
    )
    t.notMatch(guide, '/paid/streaming/hype')
    t.match(JSON.parse(openapi ?? ''), {
      paths: { '/paid/streaming/hype': { get: { 'x-available': false } } },
    })
    t.same(
      [...sources.asked.keys()].filter((path) => /twitch|igdb/.test(path)),
      [],
    )
  },
)

t.test(
  'answers the same routes with credentials, and keeps the secret out of logs and answers',
  async (t) => {
    const { server } = await start(t, {
      TWITCH_CLIENT_ID: STAND_IN_CREDENTIALS.clientId,
      TWITCH_CLIENT_SECRET: SECRET,
    })
    t.notMatch(server.output(), /^source.*TWITCH/m)
    for (const route of ROUTES) {
      const unpaid = await fetch(`${server.url}/paid/${route}`)
      t.notMatch(await unpaid.json(), { would_fail: {} })
      const sample = await fetch(`${server.url}/sample/${route}`)
      t.equal(sample.status, 200)
      const body = await sample.text()
      t.match(JSON.parse(body), { preview: true, warnings: [] })
      t.notMatch(body + server.output(), SECRET)
    }
  },
)
