import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseUnits } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import t from 'tap'
import { addressOf, randomKey, stockFetch, type Hex } from '../../support/payment.ts'
import { runProgram, startServer } from '../../support/server.ts'
import { stockPayer } from '../../support/tempo.ts'
import { uptoFetch } from '../../support/upto.ts'
import { connect, HTTP, payByMpp, payByUpto, payByX402, type Answer, type Payment } from './support/buyer.ts'
import { payableEnv } from './support/chains.ts'
import { HANDLERS, METERED_UNIT, openCrashFixture } from './support/crash-fixture.ts'
import type { ProtocolName } from './support/case-runner.ts'
import type { KillPoint } from './support/redis-proxy.ts'
import {
  redisUrl,
  startKillableServer,
  type Store,
  type StoreName,
  type KillableServer,
} from './support/killable-server.ts'

/*
 * A server is killed at every write to its ledger that a purchase makes, and once it runs again charges are counted on
 * the chain: one charge, one answer. How many writes a purchase makes is measured with one that is not killed.
 *
 * The suite takes every write of two combinations, and those around the settlement of others (`SHORT`); `npm run crash` takes all of them:
 * both stores, protocols and flows, killed before each write and after it, completed by the same payment and by a new
 * one.
 */

/** How a buyer without an answer continues: with the same payment, or after recovery with a new one. */
type Ending = 'the same payment' | 'a new payment'

/** A protocol, or a scheme of x402 besides exact. */
type Way = ProtocolName | 'upto'

interface Scenario {
  readonly store: StoreName
  readonly protocol: Way
  /** `item`, `metered` and `POST note` are paid for after the work, `deep` and `PUT note` before it, the stream `POST streamed` in between. */
  readonly operation: 'item' | 'metered' | 'deep' | WithEffects
  /** Selects the crashes to run. */
  readonly includes: (crash: Crash) => boolean
}

interface Crash {
  readonly write: number
  readonly cut: KillPoint
  readonly ending: Ending
}

const WITH_EFFECTS = ['POST note', 'PUT note', 'POST streamed'] as const
type WithEffects = (typeof WITH_EFFECTS)[number]

const everything = (): boolean => true
/** A new payment for a call with effects buys a second one. */
const samePayment = ({ ending }: Crash): boolean => ending === 'the same payment'

const FULL: readonly Scenario[] = (['lmdb', 'redis'] as const).flatMap((store) => [
  ...(['x402', 'mpp', 'upto'] as const).flatMap((protocol) => [
    ...(['item', 'deep'] as const).map((operation) => ({ store, protocol, operation, includes: everything })),
    ...WITH_EFFECTS.map((operation) => ({ store, protocol, operation, includes: samePayment })),
  ]),
  { store, protocol: 'upto', operation: 'metered', includes: everything },
])

/** Both endings take turns: the writes next to each other differ little. */
const inTurn =
  (first: 0 | 1, cut: KillPoint) =>
  (crash: Crash): boolean =>
    crash.cut === cut && (crash.write % 2 === first) === (crash.ending === 'a new payment')

/** The writes between which the money moves. */
const aroundSettlement = ({ write }: Crash): boolean => write > 2 && write < 7

const again = ({ cut, ending }: Crash): boolean => cut === 'after' && ending === 'the same payment'

const againAroundSettlement = (crash: Crash): boolean => aroundSettlement(crash) && again(crash)

const SHORT: readonly Scenario[] = [
  { store: 'lmdb', protocol: 'x402', operation: 'item', includes: inTurn(0, 'after') },
  {
    store: 'redis',
    protocol: 'x402',
    operation: 'deep',
    includes: (crash) => aroundSettlement(crash) && inTurn(1, 'before')(crash),
  },
  { store: 'lmdb', protocol: 'x402', operation: 'POST note', includes: againAroundSettlement },
  { store: 'redis', protocol: 'mpp', operation: 'POST note', includes: againAroundSettlement },
  { store: 'lmdb', protocol: 'x402', operation: 'PUT note', includes: againAroundSettlement },
  { store: 'redis', protocol: 'mpp', operation: 'PUT note', includes: againAroundSettlement },
  { store: 'lmdb', protocol: 'mpp', operation: 'POST streamed', includes: againAroundSettlement },
  { store: 'redis', protocol: 'x402', operation: 'POST streamed', includes: again },
  { store: 'lmdb', protocol: 'upto', operation: 'item', includes: inTurn(0, 'after') },
  { store: 'redis', protocol: 'upto', operation: 'POST note', includes: againAroundSettlement },
  { store: 'redis', protocol: 'upto', operation: 'metered', includes: againAroundSettlement },
]

const SCENARIOS = process.env['CRASH'] === 'full' ? FULL : SHORT
/** Scenarios run in parallel: each spends most of its time waiting for leases and recovery. */
t.jobs = 4

const transport = HTTP
/** More than any wallet has. */
const WHATEVER = 2n ** 255n

const { directory, catalog, absence, redis, chains, controller } = await openCrashFixture(t)

/** A buyer whose server is killed, and everything they are answered. */
interface Buyer extends Crash {
  readonly key: Hex
  readonly payment: Payment
  /** Numbers of the runs whose answers they have. */
  readonly runs: Set<unknown>
  /** Whether the first payment has ended and the buyer has made another one. */
  paidAgain: boolean
}

for (const [place, scenario] of SCENARIOS.entries()) {
  const { store: name, protocol, operation } = scenario
  const paid =
    { deep: 'before', 'PUT note': 'before', 'POST streamed': 'during' }[String(operation)] ?? 'after'
  const title = `${protocol}, ${name}, ${operation}, paid ${paid} the work`
  const skip = name === 'redis' && absence !== undefined ? absence : false
  t.test(
    `charges once for one answer after a crash at any write: ${title}`,
    { skip, buffered: true },
    async (t) => {
      const dataDir = join(directory, `${place}`)
      const store: Store =
        name === 'lmdb' ? { name, dataDir } : { name, dataDir, port: redis?.port ?? 0, database: place }
      const chain = protocol === 'mpp' ? chains.tempo : chains.base
      const secret = randomKey()
      const signers: Hex[] = []
      const envOf = (keys: readonly Hex[]): Record<string, string> => ({
        CATALOG: catalog,
        ...payableEnv(chains, { base: chains.base.rpcUrl, tempo: chains.tempo.rpcUrl }, keys, secret),
        GUARD_CONTROLLER: controller.urlFor(`${place}`),
      })
      const startOne = async (): Promise<KillableServer> => {
        const signer = await chains.signer()
        signers.push(signer)
        return startKillableServer(store, ['--handlers', HANDLERS], envOf([signer]))
      }
      const args = { n: 1 }
      const wallet = async (): Promise<Hex> => {
        const key = await chain.wallet()
        if (protocol === 'upto') await chains.onchain.approvePermit2(addressOf(key), WHATEVER)
        return key
      }

      /** Signs for what an unpaid request was offered. */
      const sign = async (killable: KillableServer, key: Hex): Promise<Payment> => {
        const connection = connect(killable.url)
        const offers = transport.offers(await connection.send(transport.request(operation, args)))
        connection.close()
        switch (protocol) {
          case 'x402':
            return payByX402(offers, key)
          case 'upto':
            return payByUpto(offers, key)
          case 'mpp':
            return payByMpp(chains.tempo.rpcUrl, offers, key)
        }
      }
      /** Pays and, if there is an answer, shows by the next request that it has come. */
      const buy = async (killable: KillableServer, payment: Payment): Promise<Answer | undefined> => {
        const connection = connect(killable.url)
        const answer = await connection
          .send(transport.request(operation, args, payment))
          .catch(() => undefined)
        if (answer !== undefined) await connection.send({ path: '/health' }).catch(() => undefined)
        connection.close()
        return answer
      }

      /** What is loaded at the first payment costs the next one none of its time. */
      const warmUp = async (killable: KillableServer): Promise<void> => {
        const key = await wallet()
        while ((await buy(killable, await sign(killable, key)))?.status !== 200);
      }
      const payAnew = async (url: string, buyer: Buyer): Promise<void> => {
        const { key, runs } = buyer
        buyer.paidAgain = true
        const paying = {
          x402: () => stockFetch(key),
          upto: () => uptoFetch(key),
          mpp: () => stockPayer(chains.tempo.rpcUrl, privateKeyToAccount(key)).fetch as typeof fetch,
        }[protocol]()
        const { method = 'GET', headers = {}, body: sent } = transport.request(operation, args)
        const response = await paying(url, { method, headers, ...(sent === undefined ? {} : { body: sent }) })
        const body = await response.text()
        if (response.status === 200) runs.add(runOf({ body }))
      }

      const undisturbed = await startOne()
      await warmUp(undisturbed)
      const whole = await sign(undisturbed, await wallet())
      await undisturbed.arm(0, 'before')
      const bought = await buy(undisturbed, whole)
      t.equal(bought?.status, 200, 'a purchase that is not disturbed')
      const writes = await undisturbed.arm(0, 'before')
      await undisturbed.kill()
      t.ok(writes > 2, `a purchase makes ${writes} writes`)

      const crashes = Array.from({ length: writes }, (_, at) => at + 1).flatMap((write) =>
        (['before', 'after'] as const).flatMap((cut) =>
          (['the same payment', 'a new payment'] as const).map((ending): Crash => ({ write, cut, ending })),
        ),
      )
      const buyers: Buyer[] = []
      for (const crash of crashes.filter(scenario.includes)) {
        const [killable, key] = await Promise.all([startOne(), wallet()])
        if (protocol === 'mpp') await warmUp(killable)
        const payment = await sign(killable, key)
        const runs = new Set<unknown>()
        buyers.push({ ...crash, key, payment, runs, paidAgain: false })
        await killable.arm(crash.write, crash.cut)
        const answer = await buy(killable, payment)
        if (answer?.status === 200) runs.add(runOf(answer))
        const end = await Promise.race([
          killable.dead.then(() => 'killed'),
          delay(10_000, 'alive', { ref: false }),
        ])
        t.equal(end, 'killed', `${crash.cut} write ${crash.write}`)
        await killable.kill()
      }

      const server = await startServer({
        args: ['--handlers', HANDLERS],
        dataDir,
        env: {
          ...envOf(signers),
          ...(redis === undefined || name === 'lmdb' ? {} : { REDIS_URL: redisUrl(redis.port, place) }),
        },
      })
      try {
        const url = `${server.url}${transport.request(operation, args).path}`
        const cliEnv = {
          ...envOf(signers),
          ...(name === 'redis' ? { REDIS_URL: redisUrl(redis?.port ?? 0, place) } : {}),
        }
        const list = async (): Promise<readonly Row[]> => {
          const { code, stdout, stderr } = await runProgram(
            ['payments', 'list', '--json', '--limit', '1000', '--data-dir', dataDir],
            cliEnv,
          )
          if (code !== 0) throw new Error(stderr)
          return JSON.parse(stdout) as readonly Row[]
        }

        await Promise.all(
          buyers.map(async (buyer) => {
            const { ending, payment, runs } = buyer
            if (ending !== 'the same payment') return
            for (let tries = 0; tries < 60; tries += 1) {
              const connection = connect(server.url)
              const answer = await connection
                .send(transport.request(operation, args, payment))
                .catch(() => undefined)
              connection.close()
              if (answer?.status === 200) runs.add(runOf(answer))
              if (answer?.status === 200 || answer?.status === 402) break
              await delay(500)
            }
            // Nothing was charged for a payment that is over; what has arrived is not given again by MPP.
            if (runs.size === 0) await payAnew(url, buyer)
          }),
        )
        const waiting = buyers.filter(({ ending, runs }) => ending === 'a new payment' && runs.size === 0)
        const theirs = new Set(waiting.map(({ key }) => addressOf(key).toLowerCase()))
        for (let looks = 0; looks < 30 && theirs.size > 0; looks += 1) {
          const rows = await list()
          if (!rows.some(({ payer, charged }) => charged === 'unknown' && theirs.has(payer.toLowerCase())))
            break
          await delay(2_000)
        }
        await Promise.all(waiting.map((buyer) => payAnew(url, buyer)))

        const rows = await list()
        for (const { key, write, cut, ending, runs, paidAgain } of buyers) {
          const payer = addressOf(key)
          const outcome = {
            charges: (await chain.charged(payer)).transfers,
            answers: runs.size,
            booked: rows.filter((row) => row.charged === 'yes' && isPayer(row, payer)).length,
            unknown: rows.filter((row) => row.charged === 'unknown' && isPayer(row, payer)).length,
          }
          t.strictSame(
            outcome,
            { charges: 1, answers: 1, booked: 1, unknown: 0 },
            `killed ${cut} write ${write}, completed by ${ending}`,
          )
          if (operation === 'metered') {
            const [run] = runs
            const { amount } = await chain.charged(payer)
            t.equal(
              amount,
              String(BigInt(Number(run)) * METERED_UNIT),
              'what was charged is the answered run',
            )
            const booked = rows.find((row) => row.charged === 'yes' && isPayer(row, payer))?.amount
            t.equal(String(parseUnits(booked ?? '', 6)), amount, 'and what is recorded')
          }
          t.ok(
            [1, 2].includes(controller.runsOf(payer)),
            `the work is done again only when it was lost: ${controller.runsOf(payer)}`,
          )
          t.ok(
            controller.keysOf(payer) <= (paidAgain ? 2 : 1),
            'and for one payment under one idempotency key',
          )
        }
        const { stdout, stderr } = await runProgram(
          ['payments', 'reconcile', '--json', '--catalog', catalog, '--data-dir', dataDir],
          cliEnv,
        )
        const { networks } = JSON.parse(stdout) as { readonly networks: readonly Network[] }
        t.ok(networks.length > 0, stderr)
        for (const { status, differences, network } of networks) {
          t.equal(status, 'checked')
          t.strictSame(mine(differences ?? [], buyers), [], `the ledger matches ${network}`)
        }
      } finally {
        await server.stop()
      }
    },
  )
}

function isPayer({ payer }: Row, address: string): boolean {
  return payer.toLowerCase() === address.toLowerCase()
}

interface Row {
  readonly payer: string
  readonly amount: string
  readonly charged: 'no' | 'yes' | 'unknown'
}

interface Network {
  readonly network: string
  readonly status: string
  readonly differences?: readonly object[]
}

/** All scenarios share one payee: differences of other scenarios are left out. */
function mine(differences: readonly object[], buyers: readonly Buyer[]): readonly object[] {
  const payers = buyers.map(({ key }) => addressOf(key).toLowerCase())
  return differences.filter((each) => {
    const text = JSON.stringify(each).toLowerCase()
    return payers.some((payer) => text.includes(payer))
  })
}

function runOf({ body }: Pick<Answer, 'body'>): unknown {
  return (JSON.parse(body) as { readonly run?: unknown }).run
}
