/** Several facilitators: another one is asked only while the one before has seen nothing of the payment. */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { USUAL_CHANNELS } from '../../../../src/engine/catalog/catalog.ts'
import t, { type Test } from 'tap'
import { VARIABLES } from '../../../../src/engine/app/option-names.ts'
import { systemRuntime } from '../../../../src/engine/base/runtime.ts'
import type { Settler } from '../../../../src/engine/x402/exact-evm/settler.ts'
import type { NetworkSettings } from '../../../../src/engine/x402/exact-evm/evm-network.ts'
import { openEvmNetworks } from '../../../../src/engine/x402/exact-evm/evm-networks.ts'
import { openFacilitators } from '../../../../src/engine/x402/facilitators/open-facilitators.ts'
import { readProblem } from '../../../support/http.ts'
import { openFacilitator, type FacilitatorServer } from '../../../support/facilitator.ts'
import {
  challengeOf,
  randomKey,
  send,
  sign,
  stockFetch,
  type SignedPayment,
} from '../../../support/payment.ts'
import { openShop } from '../../../support/shop.ts'
import { openLmdbLedger } from '../../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { BY_AUTHORIZATION } from '../../../../src/engine/chains/evm/transfer-proof.ts'

const TOKEN = 'a-token-for-scrapers-only'
const opened: FacilitatorServer[] = []
const shop = await openShop(async (chain) => {
  // The first of the list never lets us in.
  opened.push(
    await openFacilitator(chain),
    await openFacilitator(chain),
    await openFacilitator(chain, 'forgets'),
  )
  return {
    SETTLER_PRIVATE_KEY: '',
    RPC_URL_8453: '',
    METRICS_TOKEN: TOKEN,
    FACILITATOR_URL: opened.map(({ url }) => url).join(','),
    FACILITATOR_TOKEN: opened.map(({ token }, place) => (place === 0 ? 'another token' : token)).join(','),
  }
})
const [stranger, first, second] = opened
if (stranger === undefined || first === undefined || second === undefined)
  throw new Error('three were opened')

t.teardown(() => Promise.all([shop.close(), ...opened.map((each) => each.close())]))
t.afterEach(async () => {
  shop.upstream.during(async () => {})
  for (const each of opened) {
    each.set({})
    await each.accept()
  }
})

const ledger = await openLmdbLedger(join(t.testdir(), 'ledger'))
t.teardown(() => ledger.close())

const work = (n: number): string => `${shop.url}/paid/work?n=${n}`

async function fresh(): Promise<SignedPayment> {
  return sign(await challengeOf(`${shop.url}/paid/work`), await shop.wallet())
}

async function chargesOf({ authorization }: SignedPayment): Promise<number> {
  return (await shop.onchain.uses()).filter(({ payer }) => payer === authorization.from).length
}

async function isDelivered(t: Test, payment: SignedPayment, response: Response): Promise<void> {
  t.equal(response.status, 200)
  await response.body?.cancel()
  t.equal(await chargesOf(payment), 1, 'charged once')
}

/** How many settlements each has been asked for since. */
function settlesSince(): () => readonly number[] {
  const before = opened.map((each) => each.settles().length)
  return () => opened.map((each, place) => each.settles().length - (before[place] ?? 0))
}

/** What was counted of the requests to one since. */
async function outcomesSince({ url }: FacilitatorServer): Promise<() => Promise<Record<string, number>>> {
  const read = async (): Promise<Map<string, number>> => {
    const answer = await fetch(`${shop.url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })
    const lines = (await answer.text()).matchAll(
      /^ratecard_facilitator_requests_total\{facilitator="(.*?)",request="(.*?)",result="(.*?)"\} (\d+)$/gm,
    )
    return new Map(
      Array.from(lines).flatMap(([, host, request, result, count]) =>
        host === new URL(url).host ? [[`${request} ${result}`, Number(count)] as const] : [],
      ),
    )
  }
  const before = await read()
  return async () =>
    Object.fromEntries(
      Array.from(await read(), ([name, count]) => [name, count - (before.get(name) ?? 0)] as const).filter(
        ([, count]) => count > 0,
      ),
    )
}

t.test('passes over a facilitator that refuses the credentials, and tells the operator', async (t) => {
  const settles = settlesSince()
  const response = await stockFetch(await shop.wallet())(work(1))
  t.equal(response.status, 200)
  t.equal((await shop.onchain.uses()).length, 1)
  t.strictSame(settles(), [0, 1, 0])
  await shop.server.said(/x402: facilitator 127\.0\.0\.1:\d+ refuses us \(401\): check its credentials/)
  for (const { token } of opened) t.notMatch(shop.server.output(), new RegExp(token))
})

t.test('passes over an unreachable facilitator, before the work and after it', async (t) => {
  await first.refuse()
  const settles = settlesSince()
  const payment = await fresh()
  await isDelivered(t, payment, await send(work(2), payment.header))
  t.strictSame(settles(), [0, 0, 1])

  await first.accept()
  const later = await fresh()
  shop.upstream.during(() => first.refuse())
  await isDelivered(t, later, await send(work(3), later.header))
  t.strictSame(settles(), [0, 0, 2], 'the one that has verified has gone during the work')
})

t.test('asks only facilitators that verify to settle', async (t) => {
  for (const verify of ['html', 'cut', { invalid: 'unsupported_network' }] as const) {
    first.set({ verify })
    const settles = settlesSince()
    const payment = await fresh()
    await isDelivered(t, payment, await send(work(4), payment.header))
    t.strictSame(settles(), [0, 0, 1])
  }
})

t.test('ends at a definite refusal', async (t) => {
  first.set({ verify: { invalid: 'insufficient_funds' } })
  const asked = second.verifies().length
  const payment = await fresh()
  const response = await send(work(5), payment.header)
  t.equal(response.status, 402)
  t.match(await readProblem(response), { code: 'invalid_exact_evm_insufficient_balance', charged: 'no' })
  t.equal(second.verifies().length, asked)
})

t.test('counts the outcome of each request to a facilitator', async (t) => {
  const outcomes = await Promise.all(opened.map(outcomesSince))
  const buy = async (n: number): Promise<unknown> => {
    const payment = await fresh()
    return (await send(work(n), payment.header)).body?.cancel()
  }
  await buy(91)
  first.set({ verify: { invalid: 'insufficient_funds' } })
  await buy(92)
  first.set({ settle: { refused: 'insufficient_funds' } })
  await buy(93)
  await first.refuse()
  await buy(94)
  t.same(await Promise.all(outcomes.map((count) => count())), [
    { 'verify declined': 4 },
    { 'verify ok': 2, 'verify refused': 1, 'verify unreached': 1, 'settle ok': 1, 'settle refused': 1 },
    { 'verify ok': 1, 'settle ok': 1 },
  ])
})

t.test(
  'keeps a settlement that may be under way at its facilitator, however often the buyer asks',
  async (t) => {
    for (const settle of ['cut', 'cut_after', 'html', 'garbled_after'] as const) {
      first.set({ settle })
      const settles = settlesSince()
      const payment = await fresh()
      for (const expected of [1, 2]) {
        const response = await send(work(6), payment.header)
        t.equal(response.status, 503)
        t.match(await readProblem(response), { code: 'payment_pending', charged: 'unknown' })
        t.strictSame(settles(), [0, expected, 0], settle)
      }
      first.set({})
      await isDelivered(t, payment, await send(work(6), payment.header))
      t.strictSame(settles(), [0, 3, 0])
    }
  },
)

t.test('records the facilitator of a settlement before it is asked', async (t) => {
  const payment = await fresh()
  second.set({ settle: 'slow' })
  shop.upstream.during(() => first.refuse())
  const settles = settlesSince()
  const lost = Promise.allSettled([send(work(7), payment.header)])
  while (second.settles().length === 0 || settles()[2] === 0) await delay(10)
  await shop.restart()
  t.match(await lost, [{ status: 'rejected' }])
  shop.upstream.during(async () => {})
  await first.accept()
  // The one that was asked remembers nothing: it sees a nonce that is used, and does not know by whom.
  const response = await send(work(7), payment.header)
  t.equal(response.status, 503, 'a used nonce is no failure: it may be ours')
  t.match(await readProblem(response), { code: 'payment_pending', charged: 'unknown' })
  // Recovery may have asked it once more before this request.
  const [one, two, three = 0] = settles()
  t.strictSame([one, two], [0, 0], 'the first, which is there again, is not asked')
  t.ok(three >= 2, 'the one that was asked is asked again')
  t.equal(await chargesOf(payment), 1)
})

t.test('settles an answer whose buyer hung up through a facilitator that responds', async (t) => {
  const payment = await fresh()
  const leaving = new AbortController()
  shop.upstream.during(async () => {
    leaving.abort()
    await delay(200)
  })
  const headers = { 'payment-signature': payment.header }
  await t.rejects(fetch(work(8), { headers, signal: leaving.signal }))
  await delay(600)
  t.equal(await chargesOf(payment), 0)
  shop.upstream.during(async () => {})
  await isDelivered(t, payment, await send(work(8), payment.header))
})

t.test('refuses work, uncharged, while every facilitator is away, and keeps the payment valid', async (t) => {
  await Promise.all([first.refuse(), second.refuse()])
  const payment = await fresh()
  const runs = shop.upstream.runs()
  const response = await send(work(9), payment.header)
  t.equal(response.status, 503)
  t.ok(response.headers.get('retry-after'))
  t.match(await readProblem(response), { code: 'chain_unavailable', charged: 'no', retryable: true })
  t.equal(shop.upstream.runs(), runs)
  await Promise.all([first.accept(), second.accept()])
  await isDelivered(t, payment, await send(work(9), payment.header))

  const later = await fresh()
  shop.upstream.during(async () => {
    await Promise.all([first.refuse(), second.refuse()])
  })
  const worked = await send(work(10), later.header)
  t.equal(worked.status, 503, 'gone during the work')
  t.match(await readProblem(worked), { code: 'chain_unavailable', charged: 'no' })
  t.equal(await chargesOf(later), 0)
  shop.upstream.during(async () => {})
  await Promise.all([first.accept(), second.accept()])
  await isDelivered(t, later, await send(work(10), later.header))
})

/** A settler of another process, with these means. */
async function settlerWith(means: Pick<NetworkSettings, 'rpcUrls' | 'signerKeys'>): Promise<Settler> {
  const report = (): void => undefined
  const tills = openEvmNetworks({
    ...means,
    ...openFacilitators({
      ...systemRuntime,
      facilitators: opened.map(({ url, token }) => ({ url, token })),
      ledger,
      report,
    }),
    payTo: shop.payTo,
    names: VARIABLES,
    ledger,
    owner: 'another process',
    report,
    caller: fetch,
    now: () => Date.now(),
    every: systemRuntime.every,
    deadline: systemRuntime.deadline,
    sleep: async (ms) => {
      await delay(ms)
    },
  })
  const reachable = tills.reachable({
    networks: ['eip155:8453'],
    timeout: 60_000,
    v1: true,
    schemes: ['exact'],
    channels: USUAL_CHANNELS,
    limits: {},
    testnet: false,
  })
  const base = reachable.find(({ network }) => network.id === 'eip155:8453')
  if (base === undefined) throw new Error('no network')
  return base.settler()
}

/** What the chain has never seen. */
function unmoved({ authorization: { from, to, value } }: SignedPayment) {
  return {
    token: shop.chain.asset,
    from,
    to,
    value,
    nonce: `0x${'0'.repeat(64)}`,
    proof: BY_AUTHORIZATION,
  } as const
}

const MINUTE = 60_000

t.test(
  'asks the facilitator about its earlier settlements after the operator has added a signer',
  async (t) => {
    const payment = await fresh()
    await isDelivered(t, payment, await send(work(11), payment.header))
    const request = JSON.stringify(first.settles().at(-1))
    const settler = await settlerWith({ rpcUrls: { 8453: shop.chain.rpcUrl }, signerKeys: [randomKey()] })
    const settles = settlesSince()
    const dispatch = { kind: 'facilitator', url: first.url, request } as const
    t.match(await settler.resolve(unmoved(payment), dispatch, Date.now() + MINUTE, 0), { kind: 'unknown' })
    t.strictSame(settles(), [0, 1, 0])
  },
)

t.test('gives up an unsettled payment once it has become impossible', async (t) => {
  const movement = unmoved(await fresh())
  const alone = await settlerWith({ rpcUrls: {}, signerKeys: [] })
  const seeing = await settlerWith({ rpcUrls: { 8453: shop.chain.rpcUrl }, signerKeys: [] })
  const gone = { kind: 'facilitator', url: 'https://gone.example', request: '{}' } as const
  await shop.onchain.mine()
  const [past, future] = [Date.now() - MINUTE, Date.now() + MINUTE]
  t.match(await seeing.resolve(movement, gone, past, 0), { kind: 'failed' }, 'a block is later than its end')
  t.match(
    await seeing.resolve(movement, gone, future, 0),
    { kind: 'unknown' },
    'somebody may still carry it out',
  )
  t.match(await alone.resolve(movement, gone, past, 0), { kind: 'unknown' }, 'nobody can tell')
  t.match(await alone.resolve(movement, undefined, future, 0), { kind: 'failed' }, 'nobody was asked')
})
