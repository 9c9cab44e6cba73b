import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { privateKeyToAccount } from 'viem/accounts'
import t from 'tap'
import { addressOf, randomKey, stockFetch, type Hex } from '../support/payment.ts'
import { redisAbsence, startRedis } from '../support/redis.ts'
import { runProgram, startServer } from '../support/server.ts'
import { stockPayer } from '../support/tempo.ts'
import { connect, HTTP, payByMpp, payByX402, type Answer, type Payment } from './support/buyer.ts'
import { payableEnv, startChains } from './support/chains.ts'
import { openDirector } from './support/director.ts'
import type { ProtocolName } from './support/lane.ts'
import type { Cut } from './support/redis-way.ts'
import { redisUrl, startVictim, type Store, type StoreName, type Victim } from './support/victim.ts'

/*
 * A server is killed at every write to its ledger that a purchase makes, and once it runs again the books are counted on
 * the chain: one charge, one answer. How many writes a purchase makes is found out by one that is not killed.
 *
 * The suite takes every write of one combination, and some of another (`SHORT`); `npm run crash` takes all of them:
 * both stores, protocols and flows, killed before each write and after it, brought to an end by the same payment and by a
 * new one.
 */

/** How a buyer without an answer goes on: with the same payment, or, when all is recovered, with a new one. */
type Ending = 'the same payment' | 'a new payment'

interface Course {
  readonly store: StoreName
  readonly protocol: ProtocolName
  /** `item` and `POST note` are paid for after the work, `deep` and `PUT note` before it. */
  readonly operation: 'item' | 'deep' | 'POST note' | 'PUT note'
  /** Whether a crash belongs to it. */
  readonly takes: (crash: Crash) => boolean
}

interface Crash {
  readonly write: number
  readonly cut: Cut
  readonly ending: Ending
}

const everything = (): boolean => true

const FULL: readonly Course[] = (['lmdb', 'redis'] as const).flatMap((store) =>
  (['x402', 'mpp'] as const).flatMap((protocol) =>
    (['item', 'deep'] as const).map((operation) => ({ store, protocol, operation, takes: everything })),
  ),
)

/** Both endings take turns: the writes next to each other differ little. */
const inTurn =
  (first: 0 | 1, cut: Cut) =>
  (crash: Crash): boolean =>
    crash.cut === cut && (crash.write % 2 === first) === (crash.ending === 'a new payment')

/** The writes between which the money moves. */
const amid = ({ write }: Crash): boolean => write > 2 && write < 7

const again = ({ cut, ending }: Crash): boolean => cut === 'after' && ending === 'the same payment'

const SHORT: readonly Course[] = [
  { store: 'lmdb', protocol: 'x402', operation: 'item', takes: inTurn(0, 'after') },
  {
    store: 'redis',
    protocol: 'x402',
    operation: 'deep',
    takes: (crash) => amid(crash) && inTurn(1, 'before')(crash),
  },
  // A new payment for a call with effects buys a second one.
  { store: 'lmdb', protocol: 'x402', operation: 'POST note', takes: again },
  { store: 'lmdb', protocol: 'x402', operation: 'PUT note', takes: again },
]

const COURSES = process.env['CRASH'] === 'full' ? FULL : SHORT
/** Courses beside each other: each waits most of its time, for leases to end and for payments to be recovered. */
t.jobs = 4
t.setTimeout(300_000)

const HANDLERS = fileURLToPath(new URL('handlers', import.meta.url))
const CATALOG = fileURLToPath(new URL('catalog.yaml', import.meta.url))
const face = HTTP

const directory = mkdtempSync(join(tmpdir(), 'ratecard-guards-'))
const catalog = join(directory, 'catalog.yaml')
// Payments of x402 outlive the crashes of a whole course; those of MPP may not, and are made anew then.
writeFileSync(catalog, readFileSync(CATALOG, 'utf8').replace('timeout: 60s', 'timeout: 10m'))
const absence = redisAbsence()
const redis = absence === undefined ? await startRedis() : undefined
const chains = await startChains()
const director = await openDirector(async () => undefined)
t.teardown(async () => {
  await director.close()
  await redis?.stop()
  await chains.close()
  rmSync(directory, { recursive: true, force: true })
})

/** A buyer whose server is killed, and everything they are answered. */
interface Buyer extends Crash {
  readonly key: Hex
  readonly payment: Payment
  /** Numbers of the runs whose answers they have. */
  readonly runs: Set<unknown>
}

for (const [place, course] of COURSES.entries()) {
  const { store: name, protocol, operation } = course
  const isFirst = operation === 'deep' || operation === 'PUT note'
  const title = `${protocol}, ${name}, ${operation}, paid ${isFirst ? 'before' : 'after'} the work`
  const skip = name === 'redis' && absence !== undefined ? absence : false
  t.test(
    `charges once for one answer after a crash at any write: ${title}`,
    { skip, buffered: true },
    async (t) => {
      const dataDir = join(directory, `${place}`)
      const store: Store =
        name === 'lmdb' ? { name, dataDir } : { name, dataDir, port: redis?.port ?? 0, database: place }
      const chain = protocol === 'x402' ? chains.base : chains.tempo
      const secret = randomKey()
      const signers: Hex[] = []
      const envOf = (keys: readonly Hex[]): Record<string, string> => ({
        CATALOG: catalog,
        ...payableEnv(chains, { base: chains.base.rpcUrl, tempo: chains.tempo.rpcUrl }, keys, secret),
        GUARD_DIRECTOR: director.urlFor(`${place}`),
      })
      const startOne = async (): Promise<Victim> => {
        const signer = await chains.signer()
        signers.push(signer)
        return startVictim(store, ['--handlers', HANDLERS], envOf([signer]))
      }
      const args = { n: 1 }

      /** Signs for what an unpaid request was offered. */
      const sign = async (victim: Victim, key: Hex): Promise<Payment> => {
        const connection = connect(victim.url)
        const offers = face.offers(await connection.ask(face.question(operation, args)))
        connection.close()
        if (protocol === 'x402') return payByX402(offers, key)
        return payByMpp(chains.tempo.rpcUrl, offers, key)
      }
      /** Pays and, if there is an answer, shows by the next request that it has come. */
      const buy = async (victim: Victim, payment: Payment): Promise<Answer | undefined> => {
        const connection = connect(victim.url)
        const answer = await connection.ask(face.question(operation, args, payment)).catch(() => undefined)
        if (answer !== undefined) await connection.ask({ path: '/health' }).catch(() => undefined)
        connection.close()
        return answer
      }

      /** What is loaded at the first payment costs the next one none of its time. */
      const warmUp = async (victim: Victim): Promise<void> => {
        const key = await chain.wallet()
        while ((await buy(victim, await sign(victim, key)))?.status !== 200);
      }
      const payAnew = async (url: string, { key, runs }: Buyer): Promise<void> => {
        const paying =
          protocol === 'x402'
            ? stockFetch(key)
            : (stockPayer(chains.tempo.rpcUrl, privateKeyToAccount(key)).fetch as typeof fetch)
        const { method = 'GET', headers = {}, body: sent } = face.question(operation, args)
        const response = await paying(url, { method, headers, ...(sent === undefined ? {} : { body: sent }) })
        const body = await response.text()
        if (response.status === 200) runs.add(runOf({ body }))
      }

      const sound = await startOne()
      await warmUp(sound)
      const whole = await sign(sound, await chain.wallet())
      await sound.arm(0, 'before')
      const bought = await buy(sound, whole)
      t.equal(bought?.status, 200, 'a purchase that is not disturbed')
      const writes = await sound.arm(0, 'before')
      await sound.kill()
      t.ok(writes > 2, `a purchase makes ${writes} writes`)

      const crashes = Array.from({ length: writes }, (_, at) => at + 1).flatMap((write) =>
        (['before', 'after'] as const).flatMap((cut) =>
          (['the same payment', 'a new payment'] as const).map((ending): Crash => ({ write, cut, ending })),
        ),
      )
      const buyers: Buyer[] = []
      for (const crash of crashes.filter(course.takes)) {
        const [victim, key] = await Promise.all([startOne(), chain.wallet()])
        if (protocol === 'mpp') await warmUp(victim)
        const payment = await sign(victim, key)
        const runs = new Set<unknown>()
        buyers.push({ ...crash, key, payment, runs })
        await victim.arm(crash.write, crash.cut)
        const answer = await buy(victim, payment)
        if (answer?.status === 200) runs.add(runOf(answer))
        const end = await Promise.race([
          victim.dead.then(() => 'killed'),
          delay(10_000, 'alive', { ref: false }),
        ])
        t.equal(end, 'killed', `${crash.cut} write ${crash.write}`)
        await victim.kill()
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
        const url = `${server.url}${face.question(operation, args).path}`
        const books = {
          ...envOf(signers),
          ...(name === 'redis' ? { REDIS_URL: redisUrl(redis?.port ?? 0, place) } : {}),
        }
        const list = async (): Promise<readonly Row[]> => {
          const { code, stdout, stderr } = await runProgram(
            ['payments', 'list', '--json', '--limit', '1000', '--data-dir', dataDir],
            books,
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
                .ask(face.question(operation, args, payment))
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
        for (const { key, write, cut, ending, runs } of buyers) {
          const payer = addressOf(key)
          const told = {
            charges: (await chain.charged(payer)).transfers,
            answers: runs.size,
            booked: rows.filter(
              (row) => row.payer.toLowerCase() === payer.toLowerCase() && row.charged === 'yes',
            ).length,
            unknown: rows.filter(
              (row) => row.payer.toLowerCase() === payer.toLowerCase() && row.charged === 'unknown',
            ).length,
          }
          t.strictSame(
            told,
            { charges: 1, answers: 1, booked: 1, unknown: 0 },
            `killed ${cut} write ${write}, brought to an end by ${ending}`,
          )
          t.ok(
            [1, 2].includes(director.runsOf(payer)),
            `the work is done again only when it was lost: ${director.runsOf(payer)}`,
          )
        }
        const { stdout, stderr } = await runProgram(
          ['payments', 'reconcile', '--json', '--catalog', catalog, '--data-dir', dataDir],
          books,
        )
        const { networks } = JSON.parse(stdout) as { readonly networks: readonly Network[] }
        t.ok(networks.length > 0, stderr)
        for (const { status, differences, network } of networks) {
          t.equal(status, 'checked')
          t.strictSame(mine(differences ?? [], buyers), [], `the books of ${network} are those of the chain`)
        }
      } finally {
        await server.stop()
      }
    },
  )
}

interface Row {
  readonly payer: string
  readonly charged: 'no' | 'yes' | 'unknown'
}

interface Network {
  readonly network: string
  readonly status: string
  readonly differences?: readonly object[]
}

/** All courses are paid to one payee: what another one has booked is not missing here. */
function mine(differences: readonly object[], buyers: readonly Buyer[]): readonly object[] {
  const told = buyers.map(({ key }) => addressOf(key).toLowerCase())
  return differences.filter((each) => {
    const text = JSON.stringify(each).toLowerCase()
    return told.some((payer) => text.includes(payer))
  })
}

function runOf({ body }: Pick<Answer, 'body'>): unknown {
  return (JSON.parse(body) as { readonly run?: unknown }).run
}
