import t, { type Test } from 'tap'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from '../../support/ledger-fixture.ts'
import { challengeOf, send, sign, type Hex, type SignedPayment } from '../../support/payment.ts'
import { redisAbsence, startRedis } from '../../support/redis.ts'
import { runProgram } from '../../support/server.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

/*
 * A store loses everything while a server sells. Until an operator has compared it with the chain and opened it again,
 * nothing is sold, nothing is charged, and everybody learns why.
 */

interface Ledger {
  readonly env: Readonly<Record<string, string>>
  /** Removes everything it has stored. */
  empty(shop: Shop): Promise<unknown>
}

const TOKEN = 'a-token-for-scrapers-only'
const absence = redisAbsence()

const LEDGERS = {
  lmdb: async (): Promise<Ledger> => ({
    env: {},
    empty: async ({ server }) => rmSync(join(server.dataDir, 'ledger'), { recursive: true }),
  }),
  redis: async (t: Test): Promise<Ledger> => {
    const redis = await startRedis()
    t.teardown(() => redis.stop())
    return { env: { REDIS_URL: redis.url }, empty: () => redis.command('FLUSHALL') }
  },
} as const

for (const name of ['lmdb', 'redis'] as const)
  t.test(
    `sells nothing after the ledger has lost its data, until it was reopened: ${name}`,
    { skip: name === 'redis' && absence !== undefined ? absence : false },
    async (t) => {
      const ledger = await LEDGERS[name](t)
      const shop = await openShop(async () => ({ ...ledger.env, METRICS_TOKEN: TOKEN }))
      t.teardown(() => shop.close())
      const work = `${shop.url}/paid/work`
      const signed = async (key: Hex): Promise<SignedPayment> => sign(await challengeOf(work), key)
      const key = await shop.wallet()
      const first = await signed(key)
      const sold = await send(`${work}?n=1`, first.header)
      t.equal(sold.status, 200, await sold.text())
      const refusedOne = await signed(key)

      await ledger.empty(shop)
      const refused = await send(`${work}?n=2`, refusedOne.header)
      t.equal(refused.status, 503)
      t.match(await refused.json(), { code: 'ledger_lost', charged: 'no' })
      const health = await fetch(`${shop.url}/health`)
      t.equal(health.status, 503)
      t.match(await health.json(), { code: 'ledger_lost', detail: /ratecard ledger reopen/ })
      const status = await fetch(`${shop.url}/status.json`)
      t.match(await status.json(), {
        status: 'down',
        reasons: ['The record of payments has lost data.'],
      })
      const metric = async (): Promise<string> =>
        (await fetch(`${shop.url}/metrics`, { headers: { Authorization: `Bearer ${TOKEN}` } })).text()
      t.match(await metric(), /^ratecard_ledger_closed\{reason="lost"\} 1$/m)
      await shop.server.said(/the ledger in .* has lost its (data|files): .*"ratecard ledger reopen"/)
      t.equal((await shop.onchain.uses()).length, 1)

      const reopen = (env: Readonly<Record<string, string>>, ...words: string[]) =>
        runProgram(['ledger', 'reopen', '--json', '--data-dir', shop.server.dataDir, ...words], {
          PAY_TO: shop.payTo,
          ...ledger.env,
          ...env,
        })
      const blind = await reopen({})
      t.not(blind.code, 0)
      t.match(parse(blind.stdout), { reopened: false })
      t.equal((await fetch(`${shop.url}/health`)).status, 503, 'no chain was asked: it stays closed')

      const { code, stdout, stderr } = await reopen({ RPC_URL_8453: shop.node.url })
      t.equal(code, 2, stderr)
      const [used] = await shop.onchain.uses()
      t.match(parse(stdout), {
        reopened: true,
        networks: [
          {
            status: 'checked',
            differences: [{ kind: 'not_in_ledger', chain: { transaction: used?.transaction } }],
          },
        ],
      })
      await until('the running server sells again', async () => (await fetch(`${shop.url}/health`)).ok)
      const late = await send(`${work}?n=2`, refusedOne.header)
      t.equal(late.status, 200, await late.text())
      const again = await send(`${work}?n=1`, first.header)
      t.equal(again.status, 402, 'the chain knows a payment that the ledger has lost')
      t.match(await again.json(), { code: 'invalid_exact_evm_nonce_already_used', charged: 'no' })
      t.equal((await shop.onchain.uses()).length, 2)
      t.match(await metric(), /^ratecard_ledger_closed\{reason="lost"\} 0$/m)
    },
  )
