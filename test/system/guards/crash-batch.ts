import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { addressOf, randomKey, type Hex } from '../../support/payment.ts'
import { runProgram, startServer } from '../../support/server.ts'
import { connect, HTTP, payByX402, type Answer, type Payment } from './support/buyer.ts'
import { payableEnv } from './support/chains.ts'
import { HANDLERS, openCrashFixture } from './support/crash-fixture.ts'
import type { KillPoint } from './support/redis-proxy.ts'
import {
  redisUrl,
  startKillableServer,
  type Store,
  type StoreName,
  type KillableServer,
} from './support/killable-server.ts'

/*
 * Six buyers pay at once, so that most share a transaction, and the server is killed at every write to its ledger that
 * their purchases make. After a restart each buyer sends the same payment, and charges are counted on the
 * chain: one charge and one answer for each. The suite takes some of the writes; `npm run crash` takes all of them.
 */

const BUYERS = 6
const IS_FULL = process.env['CRASH'] === 'full'
/** Writes between those that the suite takes. */
const STRIDE = IS_FULL ? 1 : 12
t.jobs = 2

const ITEM = 'item'

const { directory, catalog, absence, redis, chains, controller } = await openCrashFixture(t)

interface Buyer {
  readonly payer: string
  readonly payment: Payment
  readonly crash: string
  /** Numbers of the runs whose answers they have. */
  readonly runs: Set<unknown>
}

interface Row {
  readonly payer: string
  readonly charged: 'no' | 'yes' | 'unknown'
  readonly transaction: string | null
}

for (const [place, name] of (['lmdb', 'redis'] as const satisfies readonly StoreName[]).entries())
  t.test(
    `charges each payment of a batch once for one answer after a crash at any write: ${name}`,
    { skip: name === 'redis' && absence !== undefined ? absence : false, buffered: true },
    async (t) => {
      const dataDir = join(directory, name)
      const store: Store =
        name === 'lmdb' ? { name, dataDir } : { name, dataDir, port: redis?.port ?? 0, database: place }
      const secret = randomKey()
      const signers: Hex[] = []
      const envOf = (keys: readonly Hex[]): Record<string, string> => ({
        CATALOG: catalog,
        ...payableEnv(chains, { base: chains.base.rpcUrl, tempo: chains.tempo.rpcUrl }, keys, secret),
        GUARD_CONTROLLER: controller.urlFor(name),
      })
      const send = async (url: string, payment?: Payment): Promise<Answer | undefined> => {
        const connection = connect(url)
        const answer = await connection.send(HTTP.request(ITEM, { n: 1 }, payment)).catch(() => undefined)
        // The next request shows that the answer has come.
        if (answer !== undefined) await connection.send({ path: '/health' }).catch(() => undefined)
        connection.close()
        return answer
      }
      const newBuyer = async (url: string, crash: string): Promise<Buyer> => {
        const key = await chains.base.wallet()
        const unpaid = await send(url)
        if (unpaid === undefined) throw new Error('the server does not answer')
        const payment = payByX402(HTTP.offers(unpaid), key)
        return { payer: addressOf(key).toLowerCase(), payment: await payment, crash, runs: new Set() }
      }
      const pay = async (url: string, { payment, runs }: Buyer): Promise<number | undefined> => {
        const answer = await send(url, payment)
        if (answer?.status === 200) runs.add((JSON.parse(answer.body) as { run?: unknown }).run)
        return answer?.status
      }
      /** A server that has found the batch contract by its first payment, and six buyers. */
      const start = async (crash: string): Promise<{ killable: KillableServer; buyers: Buyer[] }> => {
        const signer = await chains.signer()
        signers.push(signer)
        const killable = await startKillableServer(store, ['--handlers', HANDLERS], envOf([signer]))
        await pay(killable.url, await newBuyer(killable.url, crash))
        const buyers: Buyer[] = []
        while (buyers.length < BUYERS) buyers.push(await newBuyer(killable.url, crash))
        return { killable, buyers }
      }
      const list = async (): Promise<readonly Row[]> => {
        const args = ['payments', 'list', '--json', '--limit', '1000', '--data-dir', dataDir]
        const { code, stdout, stderr } = await runProgram(args, cliEnv())
        if (code !== 0) throw new Error(stderr)
        return JSON.parse(stdout) as readonly Row[]
      }
      const cliEnv = (): Record<string, string> => ({
        ...envOf(signers),
        ...(name === 'redis' ? { REDIS_URL: redisUrl(redis?.port ?? 0, place) } : {}),
      })

      const { killable: first, buyers: undisturbed } = await start('nothing')
      await first.arm(0, 'before')
      await Promise.all(undisturbed.map((buyer) => pay(first.url, buyer)))
      const writes = await first.arm(0, 'before')
      const sold = await list()
      await first.kill()
      const shared = new Set(sold.map(({ transaction }) => transaction))
      t.ok(shared.size < BUYERS, `${BUYERS} payments and a first one in ${shared.size} transactions`)

      const all = [...undisturbed]
      for (let write = 1; write <= writes; write += STRIDE)
        for (const cut of ['before', 'after'] as const satisfies readonly KillPoint[]) {
          if (!IS_FULL && (write % 2 === 0) === (cut === 'after')) continue
          const { killable, buyers } = await start(`${cut} write ${write}`)
          all.push(...buyers)
          await killable.arm(write, cut)
          const paying = Promise.all(buyers.map((buyer) => pay(killable.url, buyer)))
          // The last writes of one run may not come in another.
          await Promise.race([killable.dead, paying])
          await killable.kill()
          await paying
        }

      const server = await startServer({
        args: ['--handlers', HANDLERS],
        dataDir,
        env: cliEnv(),
      })
      try {
        await Promise.all(
          all.map(async (buyer) => {
            for (let tries = 0; tries < 60; tries += 1) {
              const status = await pay(server.url, buyer)
              if (status === 200 || status === 402) return
              await delay(500)
            }
          }),
        )
        const rows = await list()
        for (const { payer, runs, crash } of all) {
          const mine = rows.filter((row) => row.payer.toLowerCase() === payer)
          const seen = {
            charges: (await chains.base.charged(payer)).transfers,
            answers: runs.size,
            booked: mine.filter(({ charged }) => charged === 'yes').length,
            unknown: mine.filter(({ charged }) => charged === 'unknown').length,
          }
          t.strictSame(seen, { charges: 1, answers: 1, booked: 1, unknown: 0 }, `killed ${crash}`)
        }
        const args = ['payments', 'reconcile', '--json', '--catalog', catalog, '--data-dir', dataDir]
        const { stdout, stderr } = await runProgram(args, cliEnv())
        const { networks } = JSON.parse(stdout) as { readonly networks: readonly object[] }
        const known = new Set(rows.map(({ payer }) => payer.toLowerCase()))
        t.ok(networks.length > 0, stderr)
        for (const network of networks) {
          const { differences = [] } = network as { readonly differences?: readonly object[] }
          const ours = differences.filter((each) => known.has(payerOf(each)))
          t.strictSame(ours, [], 'the ledger matches the chain')
        }
      } finally {
        await server.stop()
      }
    },
  )

function payerOf(difference: object): string {
  return /"payer":"(0x\w{40})"/i.exec(JSON.stringify(difference))?.[1]?.toLowerCase() ?? ''
}
