import t, { type Test } from 'tap'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FORMAT } from '../../../src/engine/ledger/record-codec.ts'
import { parse } from '../../support/ledger-fixture.ts'
import { addressOf, challengeOf, send, sign, type Hex } from '../../support/payment.ts'
import { redisAbsence, startRedis } from '../../support/redis.ts'
import { runProgram } from '../../support/server.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

/* An operator backs the ledger up and restores it, while a server sells from it. */

interface Ledger {
  readonly env: Readonly<Record<string, string>>
  /** Removes everything it has stored. */
  empty(shop: Shop): Promise<unknown>
}

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
    `backs up a ledger that is in use, and restores what it has lost without a second charge: ${name}`,
    { skip: name === 'redis' && absence !== undefined ? absence : false },
    async (t) => {
      const store = await LEDGERS[name](t)
      const shop = await openShop(async () => store.env)
      const folder = mkdtempSync(join(tmpdir(), 'ratecard-backup-'))
      t.teardown(async () => {
        await shop.close()
        rmSync(folder, { recursive: true, force: true })
      })
      const run = (...words: string[]) =>
        runProgram([...words, '--data-dir', shop.server.dataDir], { PAY_TO: shop.payTo, ...store.env })
      const buy = async (
        key: Hex,
        n: number,
      ): Promise<{ readonly header: string; readonly text: string }> => {
        const { header } = await sign(await challengeOf(`${shop.url}/paid/work`), key)
        const answer = await send(`${shop.url}/paid/work?n=${n}`, header)
        t.equal(answer.status, 200)
        return { header, text: await answer.text() }
      }
      const [early, late] = [await shop.wallet(), await shop.wallet()]
      const first = await buy(early, 1)
      const file = join(folder, 'ledger.backup')
      const written = await run('ledger', 'backup', file, '--json')
      t.equal(written.code, 0, written.stderr)
      t.strictSame(parse(written.stdout), { file, records: 1 })
      t.equal(statSync(file).mode & 0o777, 0o600, 'it is private')
      t.match(await run('ledger', 'backup', file), { code: 64, stderr: /exists already/ })
      t.strictSame(readdirSync(folder), ['ledger.backup'])

      const second = await buy(late, 2)
      const same = await run('ledger', 'restore', file, '--json')
      t.equal(same.code, 0, same.stderr)
      t.match(parse(same.stdout), { records: 1, added: 0, advanced: 0, kept: 1, uncharged: 0, busy: 0 })

      await store.empty(shop)
      const restored = await run('ledger', 'restore', file)
      t.equal(restored.code, 0, restored.stderr)
      t.match(restored.stdout, /1 payment record in the backup: 1 added/)
      const reopened = await run('ledger', 'reopen', '--unchecked', '--json')
      t.match(parse(reopened.stdout), { reopened: true })
      await until('the server sells again', async () => (await fetch(`${shop.url}/health`)).status === 200)
      // The server has opened the new files.
      await buy(late, 3)
      const again = await send(`${shop.url}/paid/work?n=1`, first.header)
      t.equal(again.status, 200, 'what was bought is still owed to its buyer')
      await again.text()
      const forgotten = await send(`${shop.url}/paid/work?n=2`, second.header)
      t.not(forgotten.status, 200, 'a payment after the backup is not known any more')
      t.match(await forgotten.text(), /"charged": ?"no"/)
      t.equal(await shop.onchain.charges(addressOf(early)), 1)
      t.equal(await shop.onchain.charges(addressOf(late)), 2)
      t.match(parse((await run('ledger', 'restore', file, '--json')).stdout), { added: 0, kept: 1 })

      const text = readFileSync(file, 'utf8')
      const records = async (): Promise<string> => (await run('payments', 'list', '--json')).stdout
      await until('all deliveries are known', async () => !(await records()).includes('"fulfilled"'))
      const before = await records()
      for (const [what, changed, says] of [
        ['torn', text.slice(0, -40), /is not complete/],
        ['altered', text.replace('eip155', 'eip156'), /was changed after it was written/],
        ['empty', '', /is not complete/],
        ['foreign', '{"hello":1}\n', /is no backup of a ledger/],
        [
          'older',
          text.replace(`"ratecard_ledger":${FORMAT}`, `"ratecard_ledger":${FORMAT - 1}`),
          new RegExp(
            `records of format ${FORMAT - 1}, this version reads format ${FORMAT}: restore it with ratecard \\d+\\.\\d+\\.\\d+`,
          ),
        ],
      ] as const) {
        const other = join(folder, what)
        writeFileSync(other, changed)
        const refused = await run('ledger', 'restore', other)
        t.equal(refused.code, 1, what)
        t.match(refused.stderr, says, what)
      }
      t.match(await run('ledger', 'restore', join(folder, 'missing')), {
        code: 1,
        stderr: /ENOENT|no such file/,
      })
      t.equal(await records(), before, 'nothing was restored')
    },
  )
