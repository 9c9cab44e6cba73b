import t from 'tap'
import { fileURLToPath } from 'node:url'
import { at } from '../../../support/documents.ts'
import { askJson } from '../../../support/http.ts'
import { redisAbsence, startRedis } from '../../../support/redis.ts'
import { openShop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

const CATALOG = fileURLToPath(new URL('../../../fixtures/payments/status.yaml', import.meta.url))

const absence = redisAbsence()
if (absence !== undefined) t.plan(0, absence)
else await figures()

async function figures(): Promise<void> {
  const redis = await startRedis()
  const shop = await openShop(async () => ({ REDIS_URL: redis.url, CATALOG }))
  t.teardown(async () => {
    await shop.close()
    await redis.stop()
  })
  const status = () => askJson(`${shop.url}/status.json`)

  t.test('shows one set of figures for processes on several machines', async (t) => {
    const branch = await shop.branch()
    for (const url of [shop.url, branch.url, branch.url])
      t.equal((await fetch(`${url}/paid/work`)).status, 402)
    await branch.stop()
    await until('both are counted', async () => at(await status(), 'funnel', 'unpaid') === 3)
  })

  t.test('answers every request while the ledger is away, and shows it in the status', async (t) => {
    await redis.kill()
    await until('it is noticed', async () => at(await status(), 'status') === 'down')
    t.match(await status(), { reasons: ['The record of payments cannot be reached.'] })
    t.equal((await fetch(`${shop.url}/paid/work`)).status, 402)
    const asked = await fetch(`${shop.url}/payments/pay_AAAAAAAAAAAAAAAAAAAAAA`)
    t.equal(asked.status, 503, 'who waits for a payment is told to come again')
    t.match(await asked.json(), { code: 'ledger_unavailable', charged: 'unknown' })
    t.equal((await fetch(`${shop.url}/sample/work`)).status, 200)
    await until('its own figures are known', async () => at(await status(), 'funnel', 'unpaid') === 2)
    await until('the page shows it', async () =>
      /data-state="down">down</.test(await (await fetch(`${shop.url}/status`)).text()),
    )
    const health = await fetch(`${shop.url}/health`)
    t.equal(health.status, 503, 'a load balancer takes the process out')
    t.match(await health.json(), { code: 'ledger_unavailable', charged: 'no' })
    await redis.restart()
    await until('it is back', async () => at(await status(), 'status') === 'operational')
    await until(
      'a load balancer takes the process in',
      async () => (await fetch(`${shop.url}/health`)).status === 200,
    )
    await until('nothing was lost', async () => at(await status(), 'funnel', 'unpaid') === 4)
  })
}
