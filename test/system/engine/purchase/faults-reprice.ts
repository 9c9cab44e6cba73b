import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import {
  addressOf,
  challengeOf,
  randomKey,
  send,
  sign,
  type SignedPayment,
} from '../../../support/payment.ts'
import { Secrets } from '../../../support/secrets.ts'
import { openShop } from '../../../support/shop.ts'

const STANDING = readFileSync(
  fileURLToPath(new URL('../../../fixtures/payments/catalog.yaml', import.meta.url)),
  'utf8',
)
const GRACE_MS = 4_000
const directory = mkdtempSync(join(tmpdir(), 'ratecard-reprice-'))
const catalog = join(directory, 'catalog.yaml')

/** The standing catalog at another price, and on other networks. */
function publish(price: string, networks = 'base, polygon'): void {
  const text = STANDING.replaceAll('price: 0.01', `price: ${price}`)
    .replace('networks: [base, polygon, arbitrum, avalanche]', `networks: [${networks}]`)
    .replace('currency: USD', `currency: USD\n  reprice_grace: ${GRACE_MS / 1000}s`)
  writeFileSync(catalog, text)
}

publish('0.01')
const changed: Record<string, string> = { CATALOG: catalog }
// Whoever is started next gets what is set by then.
const shop = await openShop(async (_, node) => Object.assign(changed, { RPC_URL_137: node.url }))
t.teardown(async () => {
  await shop.close()
  rmSync(directory, { recursive: true, force: true })
})
const secrets = new Secrets()
secrets.add('an RPC endpoint', shop.node.url)
secrets.add('the signer’s key', shop.signerKey.slice(2))
const branch = await shop.branch()

const work = (n: number): string => `/paid/work?n=${n}`

async function signed(): Promise<SignedPayment> {
  const payment = await sign(await challengeOf(`${shop.url}/paid/work`), await shop.wallet())
  secrets.addHeader(payment.header)
  return payment
}

async function statusOf(url: string, { header }: SignedPayment): Promise<number> {
  const response = await send(url, header)
  await secrets.scanResponse(response)
  return response.status
}

const chargesOf = ({ authorization }: SignedPayment): Promise<number> =>
  shop.onchain.charges(authorization.from)

t.test('honours a price that changes between signature and request, in every process', async (t) => {
  const [here, there, late] = [await signed(), await signed(), await signed()]
  publish('0.02')
  for (const server of [shop.server, branch]) {
    server.process.kill('SIGHUP')
    await server.said(/revision \S+ → \S+/)
  }
  const raised = Date.now()
  t.equal((await challengeOf(`${shop.url}/paid/work`)).accepts[0]?.amount, '20000')
  t.equal(await statusOf(`${shop.url}${work(1)}`, here), 200)
  t.equal(await statusOf(`${branch.url}${work(2)}`, there), 200)
  t.strictSame(await Promise.all([here, there].map(chargesOf)), [1, 1])
  await delay(raised + GRACE_MS + 100 - Date.now())
  for (const { url } of [shop.server, branch]) t.equal(await statusOf(`${url}${work(3)}`, late), 402)
  t.equal(await chargesOf(late), 0, 'after the grace it is refused, and not charged')
})

t.test('honours a timeout that changes between signature and request', async (t) => {
  const [paid, late] = [await signed(), await signed()]
  writeFileSync(catalog, readFileSync(catalog, 'utf8').replace('timeout: 60s', 'timeout: 30s'))
  await shop.restart()
  t.equal((await challengeOf(`${shop.url}/paid/work`)).accepts[0]?.maxTimeoutSeconds, 30)
  t.equal(await statusOf(`${shop.url}${work(9)}`, paid), 200)
  t.equal(await statusOf(`${branch.url}${work(10)}`, late), 200)
  t.strictSame(await Promise.all([paid, late].map(chargesOf)), [1, 1])
})

t.test('honours a price that changes with a power cut', async (t) => {
  const payment = await signed()
  publish('0.03')
  await shop.restart()
  t.equal((await challengeOf(`${shop.url}/paid/work`)).accepts[0]?.amount, '30000')
  t.equal(await statusOf(`${shop.url}${work(4)}`, payment), 200)
  t.equal(await chargesOf(payment), 1)
})

t.test('repeats a paid answer after the route was removed, and charges for it once', async (t) => {
  const [paid, late] = [await signed(), await signed()]
  t.equal(await statusOf(`${shop.url}${work(7)}`, paid), 200)
  const standing = readFileSync(catalog, 'utf8')
  writeFileSync(catalog, standing.replace('summary: Works where the test says how', '$&\n    planned: true'))
  shop.server.process.kill('SIGHUP')
  await shop.server.said(/revision \S+ → \S+/)
  t.equal(await statusOf(`${shop.url}${work(7)}`, paid), 200)
  t.equal(await statusOf(`${shop.url}${work(8)}`, late), 501)
  t.strictSame(await Promise.all([paid, late].map(chargesOf)), [1, 0])
  writeFileSync(catalog, standing)
  shop.server.process.kill('SIGHUP')
  await shop.server.said(/revision \S+ → \S+[^]*revision \S+ → \S+/)
})

t.test('refuses a network or a payee that was removed', async (t) => {
  const [onBase, toPayee] = [await signed(), await signed()]
  publish('0.04', 'polygon')
  await shop.restart()
  t.equal(await statusOf(`${shop.url}${work(5)}`, onBase), 402, 'the network')
  publish('0.04')
  changed['PAY_TO'] = addressOf(randomKey())
  await shop.restart()
  t.equal(await statusOf(`${shop.url}${work(6)}`, toPayee), 402, 'the payee')
  t.strictSame(await Promise.all([onBase, toPayee].map(chargesOf)), [0, 0])
})

t.test('keeps secrets out of the logs and out of unpaid answers', async (t) => {
  secrets.scan(shop.output())
  t.strictSame(secrets.leaked(), [])
})
