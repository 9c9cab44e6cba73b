import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { startStandIns } from '../../../src/service/stand-ins/stand-ins.ts'
import { addressOf, randomKey } from '../../support/payment.ts'
import { redisAbsence, startRedis } from '../../support/redis.ts'
import { startServer } from '../../support/server.ts'

const absence = redisAbsence()
if (absence !== undefined) t.comment(absence)
else {
  t.test(
    'answers a hundred callers of two processes, with fifty filters, with one call of the store',
    async (t) => {
      const [redis, standIns] = await Promise.all([startRedis({ appendonly: 'no' }), startStandIns()])
      t.teardown(() => redis.stop())
      t.teardown(standIns.stop)
      const start = async () => {
        const server = await startServer({
          env: {
            HOST: '127.0.0.1',
            PAY_TO: addressOf(randomKey()),
            SETTLER_PRIVATE_KEY: randomKey(),
            // Never asked: samples are free.
            RPC_URL_8453: 'http://127.0.0.1:1',
            CACHE_REDIS_URL: redis.url,
            STEAM_STORE_URL: `${standIns.url}/steam-store`,
            STEAM_API_URL: `${standIns.url}/steam-api`,
            STEAMSPY_URL: `${standIns.url}/steamspy`,
          },
        })
        t.teardown(() => server.stop())
        return server
      }
      const [one, two] = await Promise.all([start(), start()])
      const answers = await Promise.all(
        Array.from({ length: 100 }, async (_, place) => {
          const { url } = place % 2 === 0 ? one : two
          const response = await fetch(`${url}/sample/gamestore/deals?min_discount=${place % 50}`)
          const body = (await response.json()) as Readonly<Record<string, unknown>>
          return { status: response.status, pool: body['pool_size'], at: body['fetched_at'] }
        }),
      )
      t.ok(answers.every(({ status, pool }) => status === 200 && pool === 14))
      t.equal(new Set(answers.map(({ at }) => at)).size, 1, 'all of one moment')
      t.strictSame(Object.fromEntries(standIns.asked), { '/steam-api/IStoreQueryService/Query/v1/': 1 })
    },
  )
}

t.test('serves everything but memory from the second process on a data folder, and says so', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-shared-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const env = {
    HOST: '127.0.0.1',
    PAY_TO: addressOf(randomKey()),
    SETTLER_PRIVATE_KEY: randomKey(),
    RPC_URL_8453: 'http://127.0.0.1:1',
  }
  const one = await startServer({ env, dataDir })
  t.teardown(() => one.stop())
  const two = await startServer({ env, dataDir })
  t.teardown(() => two.stop())
  t.match(two.output(), /memory: not served by this process: the memory store is open in another process/)
  const memoryOf = async (url: string): Promise<unknown[]> => {
    const status = (await (await fetch(`${url}/status.json`)).json()) as { unavailable: { path: string }[] }
    return status.unavailable.filter(({ path }) => path.startsWith('memory.'))
  }
  t.strictSame(await memoryOf(one.url), [])
  t.ok((await memoryOf(two.url)).length > 0)
  t.equal((await fetch(`${two.url}/paid/ping`)).status, 402)
})
