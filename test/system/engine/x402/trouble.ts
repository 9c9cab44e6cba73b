import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { paymentId } from '../../../../src/engine/ledger/payment-lifecycle.ts'
import { readProblem } from '../../../support/http.ts'
import type { ConnectionState } from '../../../support/rpc-proxy.ts'
import {
  addressOf,
  challengeOf,
  readHeader,
  send,
  sign,
  stockFetch,
  type Hex,
  type SignedPayment,
} from '../../../support/payment.ts'
import { openShop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

const shop = await openShop()
t.teardown(() => shop.close())
t.afterEach(() => {
  shop.node.set('open')
  shop.node.onCall(async () => {})
  shop.upstream.during(async () => {})
})

const work = (n: number, path = '/paid/work'): string => `${shop.url}${path}?n=${n}`

async function fresh(key?: Hex, path = '/paid/work'): Promise<SignedPayment> {
  return sign(await challengeOf(`${shop.url}${path}`), key ?? (await shop.wallet()))
}

async function stateOf({ authorization: { from, nonce } }: SignedPayment): Promise<unknown> {
  const id = paymentId(['x402', 'exact', 'eip155:8453', shop.chain.asset, from, nonce].join(':'))
  const { state } = await readProblem(await fetch(`${shop.url}/payments/${id}`))
  return state
}

/** How often the wallet of a payment was charged. */
async function chargesOf({ authorization }: SignedPayment): Promise<number> {
  return (await shop.onchain.uses()).filter(({ payer }) => payer === authorization.from).length
}

/** The payment that met trouble is good for one answer, and one charge, once the trouble is over. */
async function stillGood(t: Test, payment: SignedPayment, url: string): Promise<void> {
  const response = await send(url, payment.header)
  t.equal(response.status, 200, 'the same payment is answered')
  await response.body?.cancel()
  t.equal(await chargesOf(payment), 1, 'and charged once')
}

const BLOCKED: readonly (readonly [ConnectionState, string])[] = [
  ['down', 'cannot be reached'],
  ['html', 'is hidden behind an error page'],
  ['failing', 'answers errors'],
  ['silent', 'never answers'],
]

/** Resolves when a line of the log says why a buyer got 503. */
const logs = (detail: RegExp): Promise<void> =>
  shop.server.said(
    new RegExp(`^\\{.*"status":503,"outcome":"chain_unavailable".*"detail":"[^"]*${detail.source}`, 'm'),
  )

for (const [way, what] of BLOCKED) {
  t.test(`leaves the buyer uncharged and the payment unspent when a network ${what}`, async (t) => {
    const payment = await fresh()
    const runs = shop.upstream.runs()
    shop.node.set(way)
    const response = await send(work(1), payment.header)
    t.equal(response.status, 503)
    t.ok(response.headers.get('retry-after'))
    t.match(await readProblem(response), { code: 'chain_unavailable', charged: 'no', retryable: true })
    await logs(/the payment network cannot be reached now/)
    t.equal(shop.upstream.runs(), runs, 'no work was done for a payment that cannot be checked')
    t.equal(shop.server.process.exitCode, null)
    shop.node.set('open')
    await stillGood(t, payment, work(1))
  })
}

t.test('leaves a payment unsent and uncharged when the network goes away during the work', async (t) => {
  const payment = await fresh()
  shop.upstream.during(async () => shop.node.set('down'))
  const response = await send(work(2), payment.header)
  t.equal(response.status, 503)
  t.match(await readProblem(response), { code: 'chain_unavailable', charged: 'no' })
  t.equal(await chargesOf(payment), 0)
  shop.node.set('open')
  shop.upstream.during(async () => {})
  await stillGood(t, payment, work(2))
})

t.test('reports unknown, instead of 402, when the network is lost after the payment was sent', async (t) => {
  const payment = await fresh()
  const runs = shop.upstream.runs()
  shop.node.set('broken_after_send')
  const response = await send(work(3), payment.header)
  t.equal(response.status, 503)
  t.ok(Number(response.headers.get('retry-after')) > 0)
  t.match(response.headers.get('location'), /^\/payments\/pay_/)
  t.equal(response.headers.get('payment-required'), null)
  t.match(await readProblem(response), { code: 'payment_pending', charged: 'unknown' })
  t.equal((await send(work(3), payment.header)).status, 503, 'and stays so while the network is away')
  shop.node.set('open')
  await stillGood(t, payment, work(3))
  t.equal(shop.upstream.runs() - runs, 1, 'the work was done once')
})

t.test('charges a payer who keeps hanging up before the work', async (t) => {
  const key = await shop.wallet()
  const payer = addressOf(key)
  const chargedBefore: number[] = []
  for (let n = 20; n < 24; n += 1) {
    const payment = await fresh(key)
    const leaving = new AbortController()
    shop.upstream.during(async () => {
      chargedBefore.push(await shop.onchain.charges(payer))
      leaving.abort()
    })
    const headers = { 'payment-signature': payment.header }
    await t.rejects(fetch(work(n), { headers, signal: leaving.signal }))
    // Nothing is kept of work that nobody has paid for.
    const last = n < 22 ? undefined : 'fulfilled'
    await until('the purchase is over', async () => (await stateOf(payment)) === last)
  }
  t.strictSame(chargedBefore, [0, 0, 1, 2], 'from the third purchase on the money moves first')
})

t.test('leaves broken work uncharged, and keeps its error internal', async (t) => {
  const payment = await fresh()
  shop.upstream.during(() => Promise.reject(new Error('unwell')))
  const response = await send(work(4), payment.header)
  t.equal(response.status, 500)
  t.equal(response.headers.get('payment-response'), null)
  t.match(await readProblem(response), { code: 'internal', charged: 'no' })
  await shop.server.said(/unexpected: .*is unwell/)
  shop.upstream.during(async () => {})
  await stillGood(t, payment, work(4))
})

t.test('leaves work that takes too long uncharged', async (t) => {
  const payment = await fresh(undefined, '/paid/hasty')
  shop.upstream.during(() => delay(1_500))
  const response = await send(work(5, '/paid/hasty'), payment.header)
  t.equal(response.status, 504)
  t.match(await readProblem(response), { code: 'handler_timeout', charged: 'no' })
  shop.upstream.during(async () => {})
  await stillGood(t, payment, work(5, '/paid/hasty'))
})

t.test('accepts a payment of a buyer whose clock is ten minutes fast', async (t) => {
  const challenge = await challengeOf(`${shop.url}/paid/remembered`)
  const key = await shop.wallet()
  for (const n of [1, 1]) {
    const validBefore = BigInt(Math.floor(Date.now() / 1000) + 60 + 590)
    const payment = await sign(challenge, key, { validBefore })
    const response = await send(work(n, '/paid/remembered'), payment.header)
    t.equal(response.status, 200)
  }
})

t.test('runs the work once for a stock client that pays again while its node comes and goes', async (t) => {
  const key = await shop.wallet()
  const runs = shop.upstream.runs()
  shop.upstream.during(async () => shop.node.set('down'))
  t.equal((await stockFetch(key)(work(7))).status, 503)
  shop.node.set('open')
  shop.upstream.during(async () => {})
  const response = await stockFetch(key)(work(7))
  t.equal(response.status, 200)
  t.match(await response.json(), { run: runs + 1 })
  t.equal(shop.upstream.runs(), runs + 1)
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
})

t.test('answers 402 to a payer who moves the money away during the work', async (t) => {
  const key = await shop.wallet()
  const payer = addressOf(key)
  const payment = await fresh(key)
  shop.upstream.during(async () => shop.onchain.drain(payer, shop.signer, await shop.chain.balance(payer)))
  const response = await send(work(6), payment.header)
  t.equal(response.status, 402)
  t.strictSame(readHeader(response, 'payment-response'), {
    success: false,
    errorReason: 'invalid_exact_evm_insufficient_balance',
    transaction: '',
    network: 'eip155:8453',
    payer,
  })
  const problem = await readProblem(response)
  t.match(problem, { code: 'invalid_exact_evm_insufficient_balance', charged: 'no' })
  t.notOk('run' in problem || 'n' in problem, 'nothing of the work is in it')
  t.equal(await chargesOf(payment), 0)
})

t.test('reports a payer whom the token refuses before any work', async (t) => {
  const key = await shop.wallet()
  await shop.onchain.blacklist(addressOf(key))
  const runs = shop.upstream.runs()
  const response = await send(work(7), (await fresh(key)).header)
  t.equal(response.status, 402)
  t.match(await readProblem(response), {
    code: 'invalid_exact_evm_transaction_simulation_failed',
    charged: 'no',
  })
  t.equal(shop.upstream.runs(), runs)
})

t.test('leaves buyers uncharged and payments unspent when the operator runs out of gas', async (t) => {
  const payment = await fresh()
  await shop.chain.setGas(shop.signer, 1n)
  const response = await send(work(8), payment.header)
  await shop.chain.setGas(shop.signer, 10n ** 18n)
  t.equal(response.status, 503)
  t.match(await readProblem(response), { code: 'chain_unavailable', charged: 'no' })
  await logs(/the service cannot pay the fees of the network now/)
  await stillGood(t, payment, work(8))
})

t.test('refuses a header beyond every limit, and serves the next buyer', async (t) => {
  const { port } = new URL(shop.url)
  const oversized = request({
    port,
    path: '/paid/work',
    headers: { 'payment-signature': 'A'.repeat(80_000) },
  }).end()
  const [{ statusCode }] = (await once(oversized, 'response')) as [{ statusCode: number }]
  t.equal(statusCode, 431)
  t.equal(shop.server.process.exitCode, null)
  await stillGood(t, await fresh(), work(9))
})

t.test('answers a payment that a stranger settles during the work', async (t) => {
  const payment = await fresh()
  let transaction = ''
  shop.upstream.during(async () => {
    transaction = await shop.onchain.submit(payment)
  })
  const response = await send(work(10), payment.header)
  t.equal(response.status, 200)
  t.match(readHeader(response, 'payment-response'), { success: true, transaction })
  t.equal(await chargesOf(payment), 1)
})

t.test('leaves a buyer who hangs up uncharged, and accepts the same payment later', async (t) => {
  const payment = await fresh()
  const runs = shop.upstream.runs()
  const leaving = new AbortController()
  shop.upstream.during(async () => {
    leaving.abort()
    await delay(200)
  })
  const headers = { 'payment-signature': payment.header }
  await t.rejects(fetch(work(14), { headers, signal: leaving.signal }))
  await delay(600)
  t.equal(await chargesOf(payment), 0)
  shop.upstream.during(async () => {})
  await stillGood(t, payment, work(14))
  t.equal(shop.upstream.runs() - runs, 2, 'nothing was kept')
})
