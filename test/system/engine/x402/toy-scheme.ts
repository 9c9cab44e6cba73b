import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { NETWORK, signVoucher, type Voucher } from '../../../fixtures/toy-scheme/tab.ts'
import { listening } from '../../../support/http.ts'
import { redisAbsence, startRedis } from '../../../support/redis.ts'
import { until } from '../../../support/until.ts'

// A scheme of another network family, as somebody else would write it: no file outside of its folder names it.
const SHOP = fileURLToPath(new URL('../../../fixtures/toy-scheme/shop.ts', import.meta.url))
const TSX = fileURLToPath(new URL('../../../support/tsx.mjs', import.meta.url))
const RESOURCE = 'https://tabs.example.com'
const CEILING = '20000'
const absence = redisAbsence()

/** Takes claims, and does the work of the shop’s handler, which can be made to wait. */
async function openBank(t: Test) {
  const bank = { runs: 0, claims: new Map<string, string>(), hold: undefined as Promise<void> | undefined }
  const server = createServer((request, response) => {
    void text(request).then(async (body) => {
      if (request.url === '/work') {
        bank.runs += 1
        const run = bank.runs
        await bank.hold
        return response.end(String(run))
      }
      const { payer, total } = JSON.parse(body) as { payer: string; total: string }
      bank.claims.set(payer, total)
      return response.end()
    })
  })
  const { url, close } = await listening(server)
  t.teardown(close)
  return Object.assign(bank, { url })
}

interface Shop {
  url: string
  kill(): Promise<void>
  restart(): Promise<void>
}

async function openShop(t: Test, bank: string, ledger: string | undefined): Promise<Shop> {
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-tabs-'))
  const settings = JSON.stringify({ bank, dataDir, ledger })
  let child: ChildProcess
  const start = async (): Promise<string> => {
    child = spawn(process.execPath, [`--import=${TSX}`, SHOP, settings], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [line] = await once(child.stdout ?? child, 'data')
    return `http://127.0.0.1:${String(line).trim()}`
  }
  const kill = async (): Promise<void> => {
    const exited = once(child, 'exit')
    if (child.kill('SIGKILL')) await exited
  }
  const shop: Shop = {
    url: await start(),
    kill,
    restart: async () => {
      shop.url = await start()
    },
  }
  t.teardown(async () => {
    await kill()
    rmSync(dataDir, { recursive: true, force: true })
  })
  return shop
}

interface Accepts {
  readonly accepts: readonly { scheme: string; network: string; extra: { charged?: string } }[]
}

function required(response: Response): Accepts['accepts'][number] {
  const header = Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString('utf8')
  const { accepts }: Accepts = JSON.parse(header)
  const offer = accepts.find(({ scheme }) => scheme === 'tab')
  if (offer === undefined) throw new Error('no tab is offered')
  return offer
}

/** A payment header of a payer whose tab was charged `base`. */
async function sign(
  shop: Shop,
  path: string,
  voucher: Partial<Voucher> & { payer: string },
): Promise<string> {
  const accepted = required(await fetch(shop.url + path))
  const whole = { type: 'voucher', base: '0', ceiling: CEILING, validBefore: Date.now() + 3_600_000 } as const
  const { type, payer, base, ceiling, validBefore } = { ...whole, ...voucher }
  const payload = signVoucher({ type, payer, base, ceiling, validBefore })
  const value = { x402Version: 2, resource: { url: RESOURCE + path }, accepted, payload }
  return Buffer.from(JSON.stringify(value)).toString('base64')
}

function pay(shop: Shop, path: string, header: string): Promise<Response> {
  return fetch(shop.url + path, { headers: { 'PAYMENT-SIGNATURE': header } })
}

function receiptOf(response: Response): unknown {
  return JSON.parse(Buffer.from(response.headers.get('payment-response') ?? '', 'base64').toString('utf8'))
}

function testTabs(name: string, place: (t: Test) => string | undefined): void {
  t.test(`${name}: sells by a scheme of another network family, and delivers an answer again`, async (t) => {
    const bank = await openBank(t)
    const shop = await openShop(t, bank.url, place(t))
    const header = await sign(shop, '/paid/echo/one', { payer: 'Alice' })
    const bought = await pay(shop, '/paid/echo/one', header)
    const answer = await bought.text()
    t.equal(bought.status, 200, answer)
    t.match(receiptOf(bought), { success: true, network: NETWORK, payer: 'Alice', amount: '5000' })
    t.equal(await (await pay(shop, '/paid/echo/one', header)).text(), answer, 'the same bytes')
    t.equal(bank.runs, 1)
    const other = await pay(shop, '/paid/echo/one', await sign(shop, '/paid/echo/one', { payer: 'alice' }))
    t.equal(other.status, 200, 'another letter case is another payer')
    t.match(receiptOf(other), { payer: 'alice', amount: '5000', extra: { charged: '5000' } })
    const upfront = await sign(shop, '/paid/first/one', { payer: 'Alice', base: '5000' })
    const first = await pay(shop, '/paid/first/one', upfront)
    t.equal(first.status, 200, await first.text())
    await until(
      'both tabs are claimed',
      () => bank.claims.get('Alice') === '10000' && bank.claims.has('alice'),
    )
    t.equal(bank.claims.get('alice'), '5000')
  })

  t.test(`${name}: corrects an offer, charges one of two calls of a tab, and closes it`, async (t) => {
    const bank = await openBank(t)
    const shop = await openShop(t, bank.url, place(t))
    const paths = ['/paid/echo/one', '/paid/echo/two']
    const headers = await Promise.all(
      paths.map((path, at) => sign(shop, path, { payer: 'Bob', ceiling: String(20_000 + at) })),
    )
    const answers = await Promise.all(paths.map((path, at) => pay(shop, path, headers[at] ?? '')))
    t.same(
      answers
        .map(({ status }) => status)
        .toSorted((a, b) => a - b)
        .slice(0, 1),
      [200],
    )
    t.equal(bank.runs, 1, 'the second waits for the first, and does no work')
    const stale = await pay(
      shop,
      '/paid/echo/three',
      await sign(shop, '/paid/echo/three', { payer: 'Bob', base: '1' }),
    )
    t.equal(stale.status, 402)
    const { charged } = required(stale).extra
    t.equal(charged, '5000', 'the offer names the state of the tab')
    const next = { payer: 'Bob', base: charged ?? '' }
    t.equal((await pay(shop, '/paid/echo/three', await sign(shop, '/paid/echo/three', next))).status, 200)
    const closing = await sign(shop, '/paid/echo/one', { payer: 'Bob', type: 'close' })
    const runs = bank.runs
    const closed = await pay(shop, '/paid/echo/one', closing)
    t.match(await closed.json(), { success: true, payer: 'Bob', charged: '10000' })
    t.match(receiptOf(closed), { success: true, charged: '10000' })
    t.equal((await pay(shop, '/paid/echo/one', closing)).status, 200, 'again, with the same result')
    t.equal(bank.runs, runs, 'an action buys nothing')
    const late = await sign(shop, '/paid/echo/four', { payer: 'Bob', base: '10000' })
    t.equal((await pay(shop, '/paid/echo/four', late)).status, 402)
  })

  t.test(`${name}: charges once across kills during the work and after it`, async (t) => {
    const bank = await openBank(t)
    const shop = await openShop(t, bank.url, place(t))
    const header = await sign(shop, '/paid/echo/one', { payer: 'Carol' })
    let goOn = (): void => undefined
    bank.hold = new Promise((resolve) => (goOn = resolve))
    const lost = pay(shop, '/paid/echo/one', header).catch(() => 'lost')
    await until('the work has begun', () => bank.runs === 1)
    await shop.kill()
    t.equal(await lost, 'lost')
    goOn()
    bank.hold = undefined
    await shop.restart()
    const bought = await pay(shop, '/paid/echo/one', header)
    const answer = await bought.text()
    t.equal(bought.status, 200, answer)
    t.match(
      receiptOf(bought),
      { amount: '5000', extra: { charged: '5000' } },
      'charged for the second run alone',
    )
    t.equal(bank.runs, 2)
    await shop.kill()
    await shop.restart()
    t.equal(await (await pay(shop, '/paid/echo/one', header)).text(), answer, 'the same bytes after a kill')
    t.equal(bank.runs, 2)
    await until('the tab is claimed', () => bank.claims.get('Carol') === '5000')
  })
}

testTabs('lmdb', () => undefined)
if (absence === undefined) {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  let database = 0
  testTabs('redis', () => `${redis.url}/${database++}`)
} else t.test('redis', { skip: absence }, async () => undefined)
