import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { readProblem } from '../../../support/http.ts'
import {
  addressOf,
  challengeOf,
  encode,
  readHeader,
  send,
  sign,
  stockFetch,
  type Hex,
} from '../../../support/payment.ts'
import { randomHex } from '../../../support/random.ts'
import { openShop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'
import { signPermit, uptoFetch, type PermitFaults } from '../../../support/upto.ts'

const CATALOG = fileURLToPath(new URL('../../../fixtures/payments/upto.yaml', import.meta.url))
const MUCH = 2n ** 255n

const shop = await openShop(async () => ({ CATALOG }))
t.teardown(() => shop.close())
const work = `${shop.url}/paid/work`
const { onchain } = shop

const received = (): Promise<readonly bigint[]> => onchain.received(shop.payTo)

/** A new wallet with tokens, all of which Permit2 may move. */
async function wallet(): Promise<Hex> {
  const key = await shop.wallet()
  await onchain.approvePermit2(addressOf(key), MUCH)
  return key
}

t.test('sells to the client of scheme upto as it comes from the registry', async (t) => {
  const before = (await received()).length
  const key = await wallet()
  const answer = await uptoFetch(key)(work)
  t.equal(answer.status, 200)
  t.match(readHeader(answer, 'payment-response'), {
    success: true,
    network: 'eip155:8453',
    payer: addressOf(key),
    amount: '10000',
    transaction: /^0x[0-9a-f]{64}$/,
  })
  t.strictSame((await received()).slice(before), [10_000n])
})

t.test('sells to a client that knows only exact, from the same 402', async (t) => {
  const before = (await received()).length
  const key = await shop.wallet()
  t.equal((await stockFetch(key)(work)).status, 200)
  t.equal((await received()).length, before + 1)
})

t.test('sends the approval of a wallet without gas along, for each of its payments', async (t) => {
  const before = (await received()).length
  const key = await shop.wallet()
  for (let n = 1; n <= 3; n += 1)
    t.equal((await uptoFetch(key, shop.chain.rpcUrl)(`${work}?n=${n}`)).status, 200)
  t.equal((await received()).length, before + 3)
})

t.test('names the account that settles in the challenge', async (t) => {
  const { accepts, extensions } = await challengeOf(work)
  t.match(accepts[0], { scheme: 'upto', amount: '10000', extra: { facilitatorAddress: shop.signer } })
  t.match(accepts[1], { scheme: 'exact' })
  t.match(extensions, { eip2612GasSponsoring: { info: { version: '1' } } })
})

t.test('answers fifty copies of one payment with one run and one charge', async (t) => {
  const key = await wallet()
  const payment = await signPermit(await challengeOf(work), key)
  const before = { runs: shop.upstream.runs(), charges: (await received()).length }
  shop.upstream.during(() => delay(100))
  const answers = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const response = await send(`${work}?n=5`, payment.header)
      const receipt = response.headers.get('payment-response')
      return `${response.status} ${receipt} ${await response.text()}`
    }),
  )
  shop.upstream.during(async () => {})
  t.equal(new Set(answers).size, 1)
  t.match(answers[0], /^200 /)
  t.equal(shop.upstream.runs() - before.runs, 1)
  t.equal((await received()).length - before.charges, 1)

  await t.test('refuses it for other parameters, with one charge', async (t) => {
    const response = await send(`${work}?n=6`, payment.header)
    t.equal(response.status, 409)
    t.match(await readProblem(response), { code: 'payment_reused', charged: 'yes' })
  })

  await t.test('refuses an observer of the chain', async (t) => {
    const { extensions: _, ...visible } = payment.payload
    await delay(3_000)
    const response = await send(`${work}?n=5`, encode(visible))
    t.equal(response.status, 409)
    t.equal((await received()).length - before.charges, 1)
  })
})

const SOMEBODY: Hex = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const SOON = (): bigint => BigInt(Math.floor(Date.now() / 1000))

const FAULTS: readonly (readonly [name: string, faults: () => PermitFaults, code: string])[] = [
  ['more than the offer', () => ({ amount: 20_000n }), 'permit2_amount_mismatch'],
  ['less than the offer', () => ({ amount: 9_999n }), 'permit2_amount_mismatch'],
  ['another spender', () => ({ spender: SOMEBODY }), 'invalid_permit2_spender'],
  ['another token', () => ({ token: SOMEBODY }), 'permit2_token_mismatch'],
  ['another payee', () => ({ to: SOMEBODY }), 'invalid_permit2_recipient_mismatch'],
  ['another account that settles', () => ({ facilitator: SOMEBODY }), 'upto_facilitator_mismatch'],
  ['a witness that was bent', () => ({ bent: { validAfter: '1' } }), 'invalid_permit2_signature'],
  ['another chain', () => ({ chainId: 1 }), 'invalid_permit2_signature'],
  ['another payer', () => ({ from: SOMEBODY }), 'invalid_permit2_signature'],
  ['a deadline that is over', () => ({ deadline: SOON() - 10n }), 'permit2_deadline_expired'],
  ['a deadline too soon', () => ({ deadline: SOON() + 3n }), 'permit2_deadline_expired'],
  ['a deadline too late', () => ({ deadline: SOON() + 3_600n }), 'permit2_deadline_expired'],
  ['a start in the future', () => ({ validAfter: SOON() + 1_000n }), 'permit2_not_yet_valid'],
  [
    'an approval of another amount',
    () => ({ approval: { nonce: 0n, value: 5n } }),
    'permit2_allowance_required',
  ],
  [
    'an approval that ends before the permit',
    () => ({ approval: { nonce: 0n, deadline: SOON() + 20n } }),
    'permit2_deadline_expired',
  ],
]

t.test('refuses uncharged and before any work', async (t) => {
  const key = await wallet()
  const refused = async (t: Test, header: string, code: string): Promise<void> => {
    const before = { runs: shop.upstream.runs(), charges: (await received()).length }
    const response = await send(work, header)
    t.equal(response.status, 402)
    t.match(readHeader(response, 'payment-required'), { error: code })
    t.match(await readProblem(response), { code, charged: 'no' })
    t.equal(shop.upstream.runs(), before.runs)
    t.equal((await received()).length, before.charges)
  }
  for (const [name, faults, code] of FAULTS)
    await t.test(name, async (t) => {
      const { header } = await signPermit(await challengeOf(work), key, faults())
      await refused(t, header, code)
    })
  await t.test('a wallet that has not approved Permit2', async (t) => {
    const { header } = await signPermit(await challengeOf(work), await shop.wallet())
    await refused(t, header, 'permit2_allowance_required')
  })
  await t.test('an approval that the token does not accept', async (t) => {
    const { header } = await signPermit(await challengeOf(work), await shop.wallet(), {
      approval: { nonce: 9n },
    })
    await refused(t, header, 'permit2_allowance_required')
  })
  await t.test('a wallet without the money', async (t) => {
    const poor = await shop.wallet(9_999n)
    await onchain.approvePermit2(addressOf(poor), MUCH)
    const { header } = await signPermit(await challengeOf(work), poor)
    await refused(t, header, 'permit2_insufficient_balance')
  })
  await t.test('a nonce that its payer has canceled', async (t) => {
    const { header, from, nonce } = await signPermit(await challengeOf(work), key)
    await onchain.cancelPermit(from, nonce)
    await refused(t, header, 'permit2_invalid_nonce')
  })
})

t.test(
  'works for one of two payments by a wallet with the money for one, whatever their schemes and nonces',
  async (t) => {
    const key = await shop.wallet(10_000n)
    await onchain.approvePermit2(addressOf(key), MUCH)
    const nonce = randomHex()
    const challenge = await challengeOf(work)
    const exact = { ...challenge, accepts: challenge.accepts.filter(({ scheme }) => scheme === 'exact') }
    const before = { runs: shop.upstream.runs(), charges: (await received()).length }
    const headers = [
      (await signPermit(challenge, key, { nonce })).header,
      (await sign(exact, key, { nonce })).header,
    ]
    let [working, go] = [0, (): void => undefined]
    const refused = new Promise<void>((resolve) => (go = resolve))
    shop.upstream.during(() => {
      working += 1
      if (working === 2) go()
      return refused
    })
    const answers = await Promise.all(
      headers.map(async (header) => {
        const { status } = await send(`${work}?n=7`, header)
        if (status === 402) go()
        return status
      }),
    )
    shop.upstream.during(async () => {})
    t.strictSame(new Set(answers), new Set([200, 402]))
    t.equal(shop.upstream.runs() - before.runs, 1)
    t.equal((await received()).length - before.charges, 1)
  },
)

t.test('has the work done again when its process is killed before anything is sent', async (t) => {
  const payment = await signPermit(await challengeOf(work), await wallet())
  const before = (await received()).length
  let isWorking = false
  shop.upstream.during(async () => {
    isWorking = true
    await delay(600_000, undefined, { ref: false })
  })
  const lost = outcomeOf(send(`${work}?n=9`, payment.header))
  await until('it works', () => isWorking)
  await shop.restart(async () => shop.upstream.during(async () => {}))
  t.equal(await lost, 'lost')
  t.equal((await bought(`${shop.url}/paid/work?n=9`, payment.header)).status, 200)
  t.equal((await received()).length - before, 1)
})

t.test('finishes a payment whose process is killed after its transaction was sent', async (t) => {
  const payment = await signPermit(await challengeOf(`${shop.url}/paid/work`), await wallet())
  const before = { runs: shop.upstream.runs(), charges: (await received()).length }
  await onchain.setMining('manual')
  const lost = outcomeOf(send(`${shop.url}/paid/work?n=10`, payment.header))
  await until('the node has its transaction', async () => (await pending()) > 0)
  await shop.restart(async () => {
    await onchain.mine()
    await onchain.setMining('automatic')
  })
  t.equal(await lost, 'lost')
  const answer = await bought(`${shop.url}/paid/work?n=10`, payment.header)
  t.equal(answer.status, 200)
  t.match(readHeader(answer, 'payment-response'), { success: true, amount: '10000' })
  t.equal(shop.upstream.runs() - before.runs, 1)
  t.equal((await received()).length - before.charges, 1)
})

function outcomeOf(request: Promise<Response>): Promise<string> {
  return request.then(
    ({ status }) => `answered ${status}`,
    () => 'lost',
  )
}

/** The answer to a payment, once it is known what has become of it. */
async function bought(url: string, header: string): Promise<Response> {
  for (;;) {
    const answer = await send(url, header)
    if (answer.status !== 503) return answer
    await delay(500)
  }
}

/** Transactions that the node has, and no block. */
async function pending(): Promise<number> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'txpool_status', params: [] })
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(shop.chain.rpcUrl, { method: 'POST', headers, body })
  const { result } = (await answer.json()) as { readonly result: { readonly pending: string } }
  return Number(result.pending)
}
