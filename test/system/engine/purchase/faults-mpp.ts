import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { privateKeyToAccount } from 'viem/accounts'
import t from 'tap'
import { isJsonObject } from '../../../../src/engine/base/json.ts'
import { openBreakingProxy } from '../../../support/breaking-proxy.ts'
import { openRpcProxy } from '../../../support/rpc-proxy.ts'
import { addressOf, randomKey, type Hex } from '../../../support/payment.ts'
import { Secrets } from '../../../support/secrets.ts'
import { openShop } from '../../../support/shop.ts'
import {
  mppChallengeOf,
  PATH_USD,
  signTempo,
  startTempo,
  stockPayer,
  TEMPO_CHAIN,
  type EchoedChallenge,
} from '../../../support/tempo.ts'
import { until } from '../../../support/until.ts'

const STANDING = fileURLToPath(new URL('../../../fixtures/payments/catalog.yaml', import.meta.url))
const directory = mkdtempSync(join(tmpdir(), 'ratecard-mpp-'))
const catalog = join(directory, 'catalog.yaml')
const terms = `mpp: { method: tempo, intent: charge, chain: ${TEMPO_CHAIN}, currency: '${PATH_USD}' }`
// A route that may take longer than a transaction lives is paid for first.
writeFileSync(
  catalog,
  readFileSync(STANDING, 'utf8')
    .replace('  x402:', `  ${terms}\n  x402:`)
    .replaceAll('price: 0.01', 'price: 0.01\n    timeout: 15s')
    .replace('    timeout: 1s\n', ''),
)

const tempo = await startTempo()
const node = await openRpcProxy(tempo.rpcUrl)
const recipient = addressOf(randomKey())
const secretKey = randomKey().slice(2)
const shop = await openShop(async () => ({
  CATALOG: catalog,
  MPP_RECIPIENT: recipient,
  MPP_SECRET_KEY: secretKey,
  [`RPC_URL_${TEMPO_CHAIN}`]: node.url,
}))
const branch = await shop.branch()
t.teardown(async () => {
  await shop.close()
  await node.close()
  await tempo.stop()
  rmSync(directory, { recursive: true, force: true })
})
t.afterEach(() => {
  shop.upstream.during(async () => {})
  node.onCall(async () => {})
  node.set('open')
})
const secrets = new Secrets()
secrets.add('an RPC endpoint', node.url)
secrets.add('the key of challenges', secretKey)

let last = 0
function query(route = '/paid/work'): string {
  last += 1
  return `${route}?n=${last}`
}

const chargesOf = async (key: Hex): Promise<number> =>
  (await tempo.received(recipient, PATH_USD, addressOf(key))).length

interface Bought {
  readonly status: number
  readonly run: unknown
  readonly transaction: unknown
}

async function read(response: Response): Promise<Bought> {
  const receipt = Buffer.from(response.headers.get('payment-receipt') ?? '', 'base64url').toString() || '{}'
  const body: unknown = JSON.parse(await secrets.scanResponse(response))
  return {
    status: response.status,
    run: isJsonObject(body) ? body['run'] : undefined,
    transaction: (JSON.parse(receipt) as { reference?: unknown }).reference,
  }
}

/** `mppx/client`, and the credentials it has sent. */
function openPayer(key: Hex) {
  const credentials = new Set<string>()
  const noting: typeof fetch = async (input, init) => {
    const request = new Request(input, init)
    const credential = request.headers.get('authorization')
    if (credential !== null) {
      credentials.add(credential)
      secrets.addHeader(credential)
    }
    return fetch(request)
  }
  const { fetch: paying } = stockPayer(tempo.rpcUrl, privateKeyToAccount(key), noting)
  return { credentials, buy: async (url: string): Promise<Bought> => read(await paying(url)) }
}

async function sign(url: string, key: Hex): Promise<string> {
  const credential = await signTempo(tempo.rpcUrl, key, await mppChallengeOf(url))
  secrets.addHeader(credential)
  return credential
}

const send = (url: string, authorization: string): Promise<Response> =>
  fetch(url, { headers: { authorization } })

/** Two challenges for one thing, of one millisecond. */
async function twins(url: string): Promise<[EchoedChallenge, EchoedChallenge]> {
  for (;;) {
    const challenges = await Promise.all(Array.from({ length: 50 }, () => mppChallengeOf(url)))
    for (const [place, first] of challenges.entries()) {
      const second = challenges.slice(place + 1).find(({ expires }) => expires === first.expires)
      if (second !== undefined) return [first, second]
    }
  }
}

t.test('offers two simultaneous callers challenges that both can pay', async (t) => {
  const url = `${shop.url}${query()}`
  for (const challenge of await twins(url)) {
    const key = await tempo.wallet()
    const credential = await signTempo(tempo.rpcUrl, key, challenge)
    secrets.addHeader(credential)
    t.match(await read(await send(url, credential)), { status: 200, transaction: /^0x/ })
    t.equal(await chargesOf(key), 1)
  }
})

t.test('answers fifty copies of one credential over two processes with one run and one charge', async (t) => {
  const key = await tempo.wallet()
  const path = query()
  const credential = await sign(`${shop.url}${path}`, key)
  const runs = shop.upstream.runs()
  shop.upstream.during(() => delay(300))
  const bought = await Promise.all(
    Array.from({ length: 50 }, async (_, place) =>
      read(await send(`${place % 2 === 0 ? shop.url : branch.url}${path}`, credential)),
    ),
  )
  t.strictSame(
    bought.map(({ status }) => status).sort((a, b) => a - b),
    [200, ...Array<number>(49).fill(402)],
  )
  t.equal(shop.upstream.runs(), runs + 1)
  t.equal(await chargesOf(key), 1)
})

t.test('redelivers an answer that was cut off to a stock client at its next try, uncharged', async (t) => {
  for (const where of ['before', 'within'] as const) {
    const cutter = await openBreakingProxy(shop.url)
    t.teardown(() => cutter.close())
    const key = await tempo.wallet()
    const payer = openPayer(key)
    const path = query()
    const runs = shop.upstream.runs()
    cutter.cut(where)
    await t.rejects(payer.buy(`${cutter.url}${path}`), `cut off ${where} it`)
    t.equal(await chargesOf(key), 1, 'it was charged')
    const again = await payer.buy(`${cutter.url}${path}`)
    t.match(again, { status: 200, run: runs + 1, transaction: /^0x/ }, 'the first answer')
    t.equal(payer.credentials.size, 2, 'for a payment that was signed anew')
    t.equal(await chargesOf(key), 1, 'and not charged')
    t.equal(shop.upstream.runs(), runs + 1)
  }
})

t.test('charges a buyer once who hangs up during settlement and signs again', async (t) => {
  const key = await tempo.wallet()
  const url = `${shop.url}${query()}`
  const leaving = new AbortController()
  node.onCall(async (method) => {
    if (method === 'eth_getTransactionReceipt' && (await chargesOf(key)) > 0) leaving.abort()
  })
  const headers = { authorization: await sign(url, key) }
  await t.rejects(fetch(url, { headers, signal: leaving.signal }))
  node.onCall(async () => {})
  t.match(await openPayer(key).buy(url), { status: 200 })
  t.equal(await chargesOf(key), 1)
})

interface Buyer {
  readonly key: Hex
  readonly path: string
  readonly credential: string
}

async function newBuyer(route?: string): Promise<Buyer> {
  const key = await tempo.wallet()
  const path = query(route)
  return { key, path, credential: await sign(`${shop.url}${path}`, key) }
}

t.test('charges buyers once who sign again after a power cut at any moment', async (t) => {
  const cut: Promise<number>[] = []
  const pay = ({ path, credential }: Buyer): void => {
    cut.push(send(`${shop.url}${path}`, credential).then(({ status }) => status))
  }
  /** Calls that come to nothing. */
  const stopped = new Set<string>()
  const stop = (method: string): void => void stopped.add(method)
  node.onCall(async (method) => {
    if (stopped.has(method)) await new Promise(() => {})
  })
  const asked = (method: string): number => node.calls().filter((each) => each === method).length
  const upfront = await newBuyer('/paid/deep')
  const working = await newBuyer()
  const sent = await newBuyer()
  const recorded = await newBuyer()
  const buyers = [upfront, working, sent, recorded]

  const runs = shop.upstream.runs()
  shop.upstream.during(() => new Promise(() => {}))
  pay(upfront)
  pay(working)
  await until('both are worked for', () => shop.upstream.runs() === runs + 2)
  shop.upstream.during(async () => {})
  stop('eth_getTransactionReceipt')
  pay(sent)
  await until('the money has moved', async () => (await chargesOf(sent.key)) === 1)
  stop('eth_sendRawTransaction')
  const broadcasts = asked('eth_sendRawTransaction')
  pay(recorded)
  await until('the transaction is written down', () => asked('eth_sendRawTransaction') > broadcasts)

  const answers = Promise.allSettled(cut)
  await shop.restart()
  for (const answer of await answers)
    t.not(answer.status === 'fulfilled' && answer.value, 200, 'nobody got what was bought')
  node.onCall(async () => {})
  t.strictSame(await Promise.all(buyers.map(({ key }) => chargesOf(key))), [1, 0, 1, 0])
  const bought = await Promise.all(buyers.map(({ key, path }) => openPayer(key).buy(`${shop.url}${path}`)))
  t.strictSame(
    bought.map(({ status }) => status),
    [200, 200, 200, 200],
  )
  t.strictSame(await Promise.all(buyers.map(({ key }) => chargesOf(key))), [1, 1, 1, 1])
})

t.test('keeps secrets out of the logs and out of unpaid answers', async (t) => {
  secrets.scan(shop.output())
  t.strictSame(secrets.leaked(), [])
})
