import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { openRedisLedger } from '../../../../src/engine/ledger/redis/redis-ledger.ts'
import { openBuyer, readBought, type Bought, type Buyer } from '../../../support/buyer.ts'
import { addressOf, challengeOf, send, sign, type Hex, type SignedPayment } from '../../../support/payment.ts'
import { redisAbsence, startRedis } from '../../../support/redis.ts'
import { Secrets } from '../../../support/secrets.ts'
import { openShop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

const absence = redisAbsence()
if (absence !== undefined) t.plan(0, absence)
else await faults()

async function faults(): Promise<void> {
  const PASSWORD = 'word-of-the-ledger'
  const redis = await startRedis({ password: PASSWORD })
  const shop = await openShop(async () => ({ REDIS_URL: redis.url }))
  const branch = await shop.branch()
  t.teardown(async () => {
    await shop.close()
    await redis.stop()
  })
  t.afterEach(() => {
    shop.upstream.during(async () => {})
    shop.node.onCall(async () => {})
  })
  const secrets = new Secrets()
  secrets.add('an RPC endpoint', shop.node.url)
  secrets.add('the signer’s key', shop.signerKey.slice(2))
  secrets.add('the password of the ledger', PASSWORD)

  const at = [shop.url, branch.url] as const
  let last = 0
  function query(): string {
    last += 1
    return `/paid/work?n=${last}`
  }

  /** Both processes take payments again. */
  async function reachLedger(): Promise<void> {
    for (const url of at)
      await until('the process reaches its ledger', async () => {
        const health = await fetch(`${url}/health`)
        const unknown = await fetch(`${url}/payments/pay_AAAAAAAAAAAAAAAAAAAAAA`)
        return health.status === 200 && unknown.status === 404
      })
  }

  async function pay(path: string, key: Hex): Promise<SignedPayment> {
    const payment = await sign(await challengeOf(`${shop.url}${path}`), key)
    secrets.addHeader(payment.header)
    return payment
  }

  t.test(
    'answers fifty copies of one payment on two machines with one run, one charge and one receipt',
    async (t) => {
      const key = await shop.wallet()
      const path = query()
      const payment = await pay(path, key)
      const runs = shop.upstream.runs()
      shop.upstream.during(() => delay(100))
      const bought = await Promise.all(
        Array.from({ length: 50 }, async (_, place) =>
          readBought(await send(`${at[place % 2]}${path}`, payment.header)),
        ),
      )
      const [use] = (await shop.onchain.uses()).filter(({ payer }) => payer === addressOf(key))
      const first: Bought = { status: 200, run: runs + 1, transaction: use?.transaction }
      t.strictSame(bought, Array(50).fill(first))
      t.equal(shop.upstream.runs(), runs + 1)
      t.equal(await shop.onchain.charges(addressOf(key)), 1)
    },
  )

  t.test(
    'answers the buyer on the line when the ledger dies once the money is on its way, and after it is back',
    async (t) => {
      const key = await shop.wallet()
      const path = query()
      const payment = await pay(path, key)
      const runs = shop.upstream.runs()
      let killed: Promise<void> | undefined
      shop.node.onCall(async (method) => {
        if (method === 'eth_sendRawTransaction') await (killed ??= redis.kill())
      })
      const response = await send(`${shop.url}${path}`, payment.header)
      t.match(await readBought(response), { status: 200, run: runs + 1 })
      t.equal(await shop.onchain.charges(addressOf(key)), 1)
      await redis.restart()
      await reachLedger()
      t.match(await openBuyer(key, secrets).buy(`${branch.url}${path}`), { status: 200, run: runs + 1 })
      t.equal(await shop.onchain.charges(addressOf(key)), 1, 'a payment signed anew is not charged')
      t.match(await readBought(await send(`${shop.url}${path}`, payment.header)), {
        status: 200,
        run: runs + 1,
      })
      t.equal(shop.upstream.runs(), runs + 1)
    },
  )

  t.test('records the charge of a route that settles first when the ledger dies meanwhile', async (t) => {
    await reachLedger()
    const key = await shop.wallet()
    const path = query().replace('work', 'deep')
    const payment = await pay(path, key)
    const runs = shop.upstream.runs()
    let killed: Promise<void> | undefined
    shop.node.onCall(async (method) => {
      if (method === 'eth_sendRawTransaction') await (killed ??= redis.kill())
    })
    shop.upstream.during(async () => {
      shop.upstream.during(async () => {})
      await redis.restart()
      await reachLedger()
    })
    t.match(await readBought(await send(`${shop.url}${path}`, payment.header)), {
      status: 200,
      run: runs + 1,
    })
    const ledger = await openRedisLedger({ url: redis.url, settings: 'checked', replicas: 0 })
    t.teardown(() => ledger.close())
    for await (const { payer, receipt } of ledger.records())
      if (payer === addressOf(key)) t.match(receipt?.transaction, /^0x/)
    t.match(await readBought(await send(`${branch.url}${path}`, payment.header)), {
      status: 200,
      run: runs + 1,
    })
    t.equal(await shop.onchain.charges(addressOf(key)), 1)
  })

  t.test('charges everybody once when the ledger is killed under load', async (t) => {
    const buyers: { buyer: Buyer; path: string }[] = []
    while (buyers.length < 12) {
      buyers.push({ buyer: openBuyer(await shop.wallet(), secrets), path: query() })
    }
    const killing = (async () => {
      for (let kills = 0; kills < 3; kills += 1) {
        await delay(150)
        await redis.kill()
        await delay(100)
        await redis.restart()
      }
    })()
    await Promise.all(
      buyers.map(async ({ buyer, path }, place) => {
        for (let tries = 0; tries < 60; tries += 1) {
          const bought = await buyer.buy(`${at[(place + tries) % 2]}${path}`).catch(() => undefined)
          if (bought?.status === 200) return
          await delay(250)
        }
        t.fail('one has tried for long')
      }),
    )
    await killing
    t.strictSame(
      await Promise.all(buyers.map(({ buyer }) => shop.onchain.charges(buyer.address))),
      Array(12).fill(1),
    )
    for (const { process } of [shop.server, branch])
      t.equal(process.exitCode, null, 'no process has died of it')
  })

  t.test('keeps secrets out of the logs and out of unpaid answers', async (t) => {
    secrets.scan(shop.output())
    t.strictSame(secrets.leaked(), [])
  })
}
