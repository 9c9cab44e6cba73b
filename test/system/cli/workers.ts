import t, { type Test } from 'tap'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeShop } from '../../support/catalogs.ts'
import { addressOf, challengeOf, randomKey, send, sign, type Hex } from '../../support/payment.ts'
import { startRedis } from '../../support/redis.ts'
import { runProgram, serveUnpaid } from '../../support/server.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

const CATALOG = fileURLToPath(new URL('../../fixtures/payments/catalog.yaml', import.meta.url))
const HANDLERS = fileURLToPath(new URL('../../fixtures/payments/handlers', import.meta.url))
const TOKEN = 'a-token-for-metrics'
const GAS = 10n ** 18n
const BUYERS = 12

/** The processes that have been started by one, as Linux lists them. */
function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.split(' ').filter(Boolean).map(Number)
}

function workersOf({ server }: Shop): readonly number[] {
  return childrenOf(server.process.pid ?? 0)
}

async function metricsOf({ url }: Shop): Promise<string> {
  const response = await fetch(`${url}/metrics`, { headers: { Authorization: `Bearer ${TOKEN}` } })
  return response.text()
}

/** The sum of a counter over the rows with these labels. */
function sumOf(text: string, name: string, labels: string): number {
  const rows = text.split('\n').filter((row) => row.startsWith(`${name}{`) && row.includes(labels))
  return rows.reduce((sum, row) => sum + Number(row.slice(row.lastIndexOf(' ') + 1)), 0)
}

/** Sends a payment until it is answered, as clients do. */
async function insist(url: string, header: string): Promise<string> {
  let answer = ''
  await until('the payment is answered', async () => {
    const response = await send(url, header).catch(() => undefined)
    const text = await response?.text().catch(() => undefined)
    if (response?.status !== 200 || text === undefined) return false
    answer = text
    return true
  })
  return answer
}

function testWorkers(store: string, openOne: (t: Test, catalog: string) => Promise<Shop>): void {
  t.test(`two workers on ${store}`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'ratecard-workers-'))
    const catalog = join(folder, 'catalog.yaml')
    cpSync(CATALOG, catalog)
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const shop = await openOne(t, catalog)
    let n = 0
    // One after the other: the local chain hands them their money from one account.
    const wallets: Hex[] = []
    while (wallets.length < BUYERS) wallets.push(await shop.wallet())
    const buyWith = async (key: Hex): Promise<string> => {
      n += 1
      const url = `${shop.url}/paid/work?n=${n}`
      const { header } = await sign(await challengeOf(url), key)
      return insist(url, header)
    }
    const [anyone = randomKey()] = wallets
    const charges = async (): Promise<number> => (await shop.onchain.received(shop.payTo)).length

    await t.test('serve together, and charge each payment once', async (t) => {
      await until('both workers run', () => workersOf(shop).length === 2)
      await Promise.all(wallets.map(buyWith))
      t.equal(await charges(), BUYERS)
    })

    await t.test('charge fifty copies once and answer all of them alike', async (t) => {
      const before = await charges()
      const url = `${shop.url}/paid/work?n=99`
      const { header } = await sign(await challengeOf(url), anyone)
      const answers = await Promise.all(Array.from({ length: 50 }, () => insist(url, header)))
      t.equal(new Set(answers.map((text) => JSON.stringify(JSON.parse(text).value))).size, 1)
      t.equal((await charges()) - before, 1)
    })

    await t.test('count what all of them have answered', async (t) => {
      const text = await metricsOf(shop)
      t.equal(sumOf(text, 'ratecard_payments_total', 'outcome="settled"'), await charges())
      t.match(text, /^ratecard_payments_unknown 0$/m, 'what is read from the ledger is not multiplied')
    })

    await t.test('read a changed catalog, all of them', async () => {
      writeFileSync(catalog, readFileSync(catalog, 'utf8').replace('Works where', 'Works wherever'))
      shop.server.process.kill('SIGHUP')
      await until('one revision is served by all', async () => {
        const text = await metricsOf(shop)
        const served = text.split('\n').filter((row) => row.startsWith('ratecard_catalog{'))
        return served.length === 1 && sumOf(text, 'ratecard_catalog_reloads_total', 'served') >= 2
      })
    })

    await t.test(
      'lose no payment when one of them is killed under load, and start another one',
      async (t) => {
        const before = await charges()
        const [victim = 0] = workersOf(shop)
        const buying = Promise.all(wallets.map(buyWith))
        await until('payments are under way', async () => (await charges()) > before)
        process.kill(victim, 'SIGKILL')
        await buying
        t.equal((await charges()) - before, BUYERS)
        await shop.server.said(/worker \d of 2 has ended and is started again/)
        await until('two workers run again', () => {
          const now = workersOf(shop)
          return now.length === 2 && !now.includes(victim)
        })
      },
    )

    await t.test('answer what is in flight at SIGTERM, and end with 0', async (t) => {
      const runs = shop.upstream.runs()
      let finish = (): void => undefined
      const finished = new Promise<void>((resolve) => (finish = resolve))
      shop.upstream.during(() => finished)
      const buying = buyWith(anyone)
      await until('the work has begun', () => shop.upstream.runs() > runs)
      const workers = workersOf(shop)
      const stopped = shop.server.stop()
      await shop.server.said(/stopping: requests in flight are finished first/)
      finish()
      t.ok(JSON.parse(await buying), 'the buyer has the answer')
      t.equal(await stopped, 0)
      t.strictSame(
        workers.filter((pid) => isRunning(pid)),
        [],
        'no worker is left',
      )
    })
  })
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const ARGS = ['--handlers', HANDLERS, '--workers', '2']

testWorkers('LMDB with one key', async (t, catalog) => {
  const shop = await openShop(async () => ({ CATALOG: catalog, METRICS_TOKEN: TOKEN }), ARGS)
  t.teardown(() => shop.close())
  return shop
})

testWorkers('Redis with a key for each', async (t, catalog) => {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const keys = [randomKey(), randomKey()]
  const shop = await openShop(async (chain) => {
    for (const key of keys) await chain.setGas(addressOf(key), GAS)
    return {
      CATALOG: catalog,
      METRICS_TOKEN: TOKEN,
      REDIS_URL: `${redis.url}/0`,
      SETTLER_PRIVATE_KEY: keys.join(','),
    }
  }, ARGS)
  t.teardown(() => shop.close())
  return shop
})

t.test('end the service with the reason when one of them cannot start', async (t) => {
  const { catalog, handlers } = writeShop(t, '  /state: { price: free, handler: state, summary: A word }\n')
  writeFileSync(
    join(handlers, 'index.js'),
    `import cluster from 'node:cluster'
if (cluster.worker.id === 2) throw new Error('there is no room for a second one')
export const handlers = { state: async () => ({ source: [{ name: 'computed' }], body: {} }) }
`,
  )
  const server = await serveUnpaid(t, catalog, ['--handlers', handlers, '--workers', '2'])
  t.equal(await server.ended, 1)
  t.match(server.output(), /there is no room for a second one/)
})

t.test('refuses a number of workers that is none', async (t) => {
  for (const given of ['0', 'many', '1000']) {
    const { code, stderr } = await runProgram(['serve', '--workers', given])
    t.equal(code, 64)
    t.match(stderr, /--workers takes a number from 1 to 256, or auto/)
  }
})
