/**
 * Payments settled by a facilitator: the one of the SDK, behind HTTP, with everything that can go wrong on the way. The
 * same troubles for an operator without an endpoint, who has the facilitator's word only, and for one with.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { readProblem } from '../../../support/http.ts'
import { openFacilitator, type FacilitatorServer } from '../../../support/facilitator.ts'
import {
  addressOf,
  challengeOf,
  encode,
  randomKey,
  readHeader,
  send,
  sign,
  stockFetch,
  type Faults,
  type SignedPayment,
} from '../../../support/payment.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

interface Place {
  readonly shop: Shop
  readonly facilitator: FacilitatorServer
}

type Operator = 'without an endpoint' | 'with an endpoint'

async function open(operator: Operator): Promise<Place> {
  let facilitator: FacilitatorServer | undefined
  const shop = await openShop(async (chain) => {
    facilitator = await openFacilitator(chain)
    return {
      SETTLER_PRIVATE_KEY: '',
      FACILITATOR_URL: `${facilitator.url}/`,
      FACILITATOR_TOKEN: facilitator.token,
      ...(operator === 'without an endpoint' ? { RPC_URL_8453: '' } : {}),
    }
  })
  if (facilitator === undefined) throw new Error('no facilitator')
  return { shop, facilitator }
}

const ELSEWHERE = '0x00000000000000000000000000000000000e15e0'
const WALLET_BALANCE = 100_000_000n

const places: Readonly<Record<Operator, Place>> = {
  'without an endpoint': await open('without an endpoint'),
  'with an endpoint': await open('with an endpoint'),
}
t.teardown(() =>
  Promise.all(Object.values(places).flatMap(({ shop, facilitator }) => [shop.close(), facilitator.close()])),
)
t.afterEach(() => {
  for (const { shop, facilitator } of Object.values(places)) {
    facilitator.set({})
    shop.node.set('open')
    shop.upstream.during(async () => {})
  }
})

async function fresh({ shop }: Place, faults: Faults = {}): Promise<SignedPayment> {
  return sign(await challengeOf(`${shop.url}/paid/work`), await shop.wallet(), faults)
}

const work = ({ shop }: Place, n: number): string => `${shop.url}/paid/work?n=${n}`

/** How often the wallet of a payment was charged. */
async function chargesOf({ shop }: Place, { authorization }: SignedPayment): Promise<number> {
  return (await shop.onchain.uses()).filter(({ payer }) => payer === authorization.from).length
}

/** The payment has its answer, true receipt and one charge. */
async function isDelivered(t: Test, place: Place, payment: SignedPayment, response: Response): Promise<void> {
  t.equal(response.status, 200)
  await response.body?.cancel()
  const uses = (await place.shop.onchain.uses()).filter(({ payer }) => payer === payment.authorization.from)
  t.equal(uses.length, 1, 'charged once')
  t.match(readHeader(response, 'payment-response'), { success: true, transaction: uses[0]?.transaction })
}

async function isUnknown(t: Test, response: Response): Promise<void> {
  t.equal(response.status, 503, 'never a 402, which would be paid again')
  t.ok(Number(response.headers.get('retry-after')) > 0)
  t.match(response.headers.get('location'), /^\/payments\/pay_/)
  t.equal(response.headers.get('payment-required'), null)
  t.match(await readProblem(response), { code: 'payment_pending', charged: 'unknown' })
}

for (const operator of ['without an endpoint', 'with an endpoint'] as const) {
  const place = places[operator]
  const { shop, facilitator } = place

  t.test(`${operator}: accepts the stock client through a facilitator`, async (t) => {
    const key = await shop.wallet()
    const payer = addressOf(key)
    const response = await stockFetch(key)(work(place, 7))
    t.equal(response.status, 200)
    t.match(await response.json(), { n: 7, payer })
    const uses = (await shop.onchain.uses()).filter((use) => use.payer === payer)
    t.equal(uses.length, 1)
    t.strictSame(readHeader(response, 'payment-response'), {
      success: true,
      transaction: uses[0]?.transaction,
      network: 'eip155:8453',
      payer,
      amount: '10000',
    })
    t.equal(await shop.chain.balance(shop.payTo), 10_000n)
    t.equal(facilitator.settles().length, 1, 'one settlement was asked for')
  })

  t.test(`${operator}: waits for a slow facilitator`, async (t) => {
    facilitator.set({ settle: 'slow' })
    const payment = await fresh(place)
    await isDelivered(t, place, payment, await send(work(place, 1), payment.header))
  })

  t.test(`${operator}: keeps the answer back, uncharged, after a definite refusal`, async (t) => {
    const cases: readonly (readonly [string, string])[] = [
      ['insufficient_funds', 'invalid_exact_evm_insufficient_balance'],
      ['invalid_exact_evm_payload_signature', 'invalid_exact_evm_signature'],
      ['invalid_exact_evm_transaction_simulation_failed', 'invalid_exact_evm_transaction_simulation_failed'],
    ]
    for (const [refused, code] of cases) {
      for (const status of [200, 402, 500]) {
        facilitator.set({ settle: { refused, status } })
        const payment = await fresh(place)
        // The money is gone when the facilitator looks.
        shop.upstream.during(() => shop.onchain.drain(payment.authorization.from, ELSEWHERE, WALLET_BALANCE))
        const response = await send(work(place, 2), payment.header)
        t.equal(response.status, 402, `${refused} under ${status}`)
        t.match(readHeader(response, 'payment-response'), {
          success: false,
          errorReason: code,
          transaction: '',
        })
        const problem = await readProblem(response)
        t.match(problem, { code, charged: 'no' })
        t.notOk('run' in problem, 'nothing of the work is in it')
        t.equal(await chargesOf(place, payment), 0)
      }
    }
  })

  t.test(`${operator}: tells a payer the facilitator’s objection before any work`, async (t) => {
    const cases: readonly (readonly [string, string])[] = [
      ['insufficient_funds', 'invalid_exact_evm_insufficient_balance'],
      ['invalid_exact_evm_signature', 'invalid_exact_evm_signature'],
      [
        'invalid_exact_evm_payload_authorization_valid_before',
        'invalid_exact_evm_payload_authorization_valid_before',
      ],
      ['invalid_exact_evm_nonce_already_used', 'invalid_exact_evm_nonce_already_used'],
      ['a_reason_of_next_year', 'invalid_exact_evm_transaction_simulation_failed'],
    ]
    const runs = shop.upstream.runs()
    const settles = facilitator.settles().length
    for (const [invalid, code] of cases) {
      facilitator.set({ verify: { invalid } })
      const response = await send(work(place, 3), (await fresh(place)).header)
      t.equal(response.status, 402, invalid)
      t.match(await readProblem(response), { code, charged: 'no' })
    }
    facilitator.set({})
    const poor = await sign(await challengeOf(`${shop.url}/paid/work`), await shop.wallet(1n))
    t.equal(
      (await send(work(place, 3), poor.header)).status,
      402,
      'a wallet without money, by the SDK itself',
    )
    t.equal(shop.upstream.runs(), runs)
    t.equal(facilitator.settles().length, settles)
  })

  t.test(
    `${operator}: leaves the buyer uncharged and the payment unspent when a facilitator fails to verify`,
    async (t) => {
      for (const verify of ['html', 'cut', { invalid: 'unexpected_verify_error' }] as const) {
        facilitator.set({ verify })
        const payment = await fresh(place)
        const runs = shop.upstream.runs()
        const response = await send(work(place, 4), payment.header)
        t.equal(response.status, 503)
        t.match(await readProblem(response), { code: 'chain_unavailable', charged: 'no', retryable: true })
        await shop.server.said(/"outcome":"chain_unavailable".*"detail":"nobody who settles payments/)
        t.equal(shop.upstream.runs(), runs, 'no work was done')
        facilitator.set({})
        await isDelivered(t, place, payment, await send(work(place, 4), payment.header))
      }
    },
  )

  t.test(`${operator}: leaves a turned-away settlement uncharged, and answers it later`, async (t) => {
    const payment = await fresh(place)
    facilitator.set({ settle: { refused: 'unsupported_scheme' } })
    const response = await send(work(place, 5), payment.header)
    if (operator === 'with an endpoint') {
      // The token would accept it, so that it may be on its way.
      await isUnknown(t, response)
    } else {
      t.equal(response.status, 503)
      t.match(await readProblem(response), { code: 'chain_unavailable', charged: 'no' })
    }
    t.equal(await chargesOf(place, payment), 0)
    facilitator.set({})
    const runs = shop.upstream.runs()
    await isDelivered(t, place, payment, await send(work(place, 5), payment.header))
    t.equal(shop.upstream.runs(), runs, 'the work was done before')
  })

  t.test(
    `${operator}: keeps a settlement without any trace unknown, and makes it when the buyer asks again`,
    async (t) => {
      const payment = await fresh(place)
      facilitator.set({ settle: 'cut' })
      const asked = facilitator.settles().length
      await isUnknown(t, await send(work(place, 6), payment.header))
      t.equal(await chargesOf(place, payment), 0)
      facilitator.set({})
      await isDelivered(t, place, payment, await send(work(place, 6), payment.header))
      const [first, second, ...more] = facilitator.settles().slice(asked)
      t.strictSame(second, first, 'the same request to the same facilitator')
      t.strictSame(more, [])
    },
  )

  t.test(`${operator}: shows a facilitator our offer and the signed fields only`, async (t) => {
    const challenge = await challengeOf(`${shop.url}/paid/work`)
    const payment = await sign(challenge, await shop.wallet())
    facilitator.set({ settle: { refused: 'unsupported_scheme' } })
    t.equal((await send(work(place, 8), payment.header)).status, 503)
    t.equal(await chargesOf(place, payment), 0)
    facilitator.set({})
    // The work is done and not paid for. A token of the buyer's own would move nothing that is worth anything.
    const worthless = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
    const { authorization, signature } = payment
    const altered = await sign(challenge, await shop.wallet(), {
      ...authorization,
      signature,
      accepted: { asset: worthless, amount: '1', payTo: authorization.from },
      resource: { url: 'https://evil.example', description: 'listed under our name' },
    })
    await isDelivered(t, place, payment, await send(work(place, 8), altered.header))
    const asked = facilitator.settles().at(-1)
    const [offer] = challenge.accepts
    t.strictSame(asked?.paymentRequirements, offer)
    t.strictSame(asked?.paymentPayload.accepted, offer)
    t.notMatch(JSON.stringify(asked), /evil/)
  })

  t.test(
    `${operator}: keeps the redelivery token between buyer and server, and lists our own offer`,
    async (t) => {
      const challenge = await challengeOf(`${shop.url}/paid/work`)
      const extensions = { ...challenge.extensions, bazaar: { info: { output: 'free money' } } }
      const payment = await sign(challenge, await shop.wallet(), { extensions })
      await isDelivered(t, place, payment, await send(work(place, 9), payment.header))
      const { paymentPayload } = facilitator.settles().at(-1) ?? {}
      t.strictSame(paymentPayload?.extensions, { bazaar: challenge.extensions['bazaar'] })
      t.strictSame(paymentPayload?.resource, challenge.resource)
      t.notMatch(
        shop.server.output(),
        new RegExp(facilitator.token),
        'and the bearer token is said to nobody',
      )
    },
  )

  t.test(`${operator}: finishes a settlement after a power cut, with one charge`, async (t) => {
    const payment = await fresh(place)
    facilitator.set({ settle: 'slow' })
    const asked = facilitator.settles().length
    const lost = Promise.allSettled([send(work(place, 10), payment.header)])
    while (facilitator.settles().length === asked) await delay(10)
    await shop.restart()
    t.match(await lost, [{ status: 'rejected' }])
    await isDelivered(t, place, payment, await send(work(place, 10), payment.header))
  })
}

/** A contract that answers every question with the yes of ERC-1271. */
const YES = '0x631626ba7e60e01b60005260206000f3'

for (const operator of ['without an endpoint', 'with an endpoint'] as const) {
  const place = places[operator]
  const { shop } = place

  t.test(`${operator}: accepts a contract wallet`, async (t) => {
    const wallet = addressOf(randomKey())
    await shop.chain.mint(wallet, 50_000n)
    await shop.chain.setCode(wallet, YES)
    const payment = await fresh(place, { from: wallet, signature: `0x${'5a'.repeat(97)}` })
    await isDelivered(t, place, payment, await send(work(place, 17), payment.header))
    const again = await send(work(place, 17), payment.header)
    if (operator === 'with an endpoint') await isDelivered(t, place, payment, again)
    // Nobody can ask the contract here, and a used payment cannot be verified: but it is not called unpaid.
    else await isUnknown(t, again)
  })

  t.test(
    `${operator}: checks a long signature by the payer’s contract before an answer is given again`,
    async (t) => {
      const payment = await fresh(place)
      await isDelivered(t, place, payment, await send(work(place, 18), payment.header))
      const { authorization } = payment.payload['payload'] as { authorization: Record<string, string> }
      for (const nonce of [payment.authorization.nonce, `0x${'ab'.repeat(32)}`]) {
        const part = { authorization: { ...authorization, nonce }, signature: `0x${'ab'.repeat(130)}` }
        const response = await send(work(place, 18), encode({ ...payment.payload, payload: part }))
        t.equal(response.status, 402)
        t.match(await readProblem(response), { charged: 'no' })
      }
      t.equal(await chargesOf(place, payment), 1)
    },
  )
}

/** Settled, and said in a way that leaves it open. */
const MUMBLED = ['cut_after', 'html_after', 'garbled_after', 'pending'] as const

for (const settle of MUMBLED) {
  t.test(`reads from the chain what a facilitator leaves out (${settle}), and answers at once`, async (t) => {
    const place = places['with an endpoint']
    place.facilitator.set({ settle })
    const payment = await fresh(place)
    await isDelivered(t, place, payment, await send(work(place, 11), payment.header))
  })

  t.test(
    `keeps an unreported settlement (${settle}) unknown without an endpoint, until it is reported`,
    async (t) => {
      const place = places['without an endpoint']
      place.facilitator.set({ settle })
      const payment = await fresh(place)
      const runs = place.shop.upstream.runs()
      await isUnknown(t, await send(work(place, 12), payment.header))
      t.equal(await chargesOf(place, payment), 1)
      place.facilitator.set({})
      await isDelivered(t, place, payment, await send(work(place, 12), payment.header))
      t.equal(place.shop.upstream.runs() - runs, 1, 'the work was done once')
    },
  )
}

t.test('asks for a pending settlement again while the buyer waits, without an endpoint', async (t) => {
  const place = places['without an endpoint']
  place.facilitator.set({ settle: 'pending_once' })
  const payment = await fresh(place)
  await isDelivered(t, place, payment, await send(work(place, 13), payment.header))
})

t.test('treats a reason without a word about the money as unknown', async (t) => {
  for (const refused of [
    'invalid_exact_evm_nonce_already_used',
    'invalid_exact_evm_transaction_failed',
    'unexpected_settle_error',
    'a_reason_of_next_year',
  ]) {
    const place = places['without an endpoint']
    place.facilitator.set({ settle: { refused } })
    const payment = await fresh(place)
    await isUnknown(t, await send(work(place, 14), payment.header))
    place.facilitator.set({})
    await isDelivered(t, place, payment, await send(work(place, 14), payment.header))
  }
})

t.test('trusts the chain over a facilitator that settles and refuses: one charge, one answer', async (t) => {
  const place = places['with an endpoint']
  for (const refused of ['insufficient_funds', 'invalid_exact_evm_payload_signature', 'unsupported_scheme']) {
    place.facilitator.set({ settle: { refused, settled: 'mined' } })
    const payment = await fresh(place)
    await isDelivered(t, place, payment, await send(work(place, 19), payment.header))
  }
})

t.test('answers a payment that a stranger settles during the work', async (t) => {
  const place = places['with an endpoint']
  const payment = await fresh(place)
  place.shop.upstream.during(async () => {
    await place.shop.onchain.submit(payment)
  })
  await isDelivered(t, place, payment, await send(work(place, 15), payment.header))
})

t.test('rejects a facilitator’s claim that the chain contradicts', async (t) => {
  const place = places['with an endpoint']
  place.facilitator.set({ settle: 'lies' })
  const payment = await fresh(place)
  await isUnknown(t, await send(work(place, 16), payment.header))
  t.equal(await chargesOf(place, payment), 0)
  place.facilitator.set({})
  await isDelivered(t, place, payment, await send(work(place, 16), payment.header))
})
