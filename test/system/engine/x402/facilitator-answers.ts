/**
 * Every answer that a facilitator may give to a settlement, when it has carried it out and when it has not, for operators
 * with an endpoint and without one: what the buyer is told about the charge is true, and the payment is answered.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openFacilitator, type FacilitatorServer } from '../../../support/facilitator.ts'
import { readProblem } from '../../../support/http.ts'
import { challengeOf, send, sign, type Faults, type SignedPayment } from '../../../support/payment.ts'
import { askNode } from '../../../support/rpc-proxy.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

const OPERATORS = ['with an endpoint', 'without an endpoint'] as const
type Operator = (typeof OPERATORS)[number]

interface Place {
  readonly shop: Shop
  readonly facilitator: FacilitatorServer
}

async function open(t: Test, operator: Operator): Promise<Place> {
  const opened: FacilitatorServer[] = []
  const shop = await openShop(async (chain) => {
    const facilitator = await openFacilitator(chain)
    opened.push(facilitator)
    return {
      SETTLER_PRIVATE_KEY: '',
      FACILITATOR_URL: facilitator.url,
      FACILITATOR_TOKEN: facilitator.token,
      ...(operator === 'without an endpoint' ? { RPC_URL_8453: '' } : {}),
    }
  })
  t.teardown(() => Promise.all([shop.close(), ...opened.map((each) => each.close())]))
  const [facilitator] = opened
  if (facilitator === undefined) throw new Error('it was opened')
  return { shop, facilitator }
}

type SettleBehavior = Exclude<Parameters<FacilitatorServer['set']>[0]['settle'], undefined>

const PRICE = 10_000n

/** A payment from a wallet that its settlement empties. */
async function fresh({ shop }: Place, faults: Faults = {}): Promise<SignedPayment> {
  return sign(await challengeOf(`${shop.url}/paid/work`), await shop.wallet(PRICE), faults)
}

/** One purchase whose settlement the facilitator answers in this way. */
interface Purchase {
  readonly name: string
  readonly url: string
  readonly payment: SignedPayment
  readonly first: Promise<Response>
}

/** Sends one payment for each way; resolves once the facilitator has been asked to settle all of them. */
async function buyAll(place: Place, ways: ReadonlyMap<string, SettleBehavior>): Promise<readonly Purchase[]> {
  const { shop, facilitator } = place
  const purchases: Purchase[] = []
  for (const [name, settle] of ways) {
    const payment = await fresh(place)
    const url = `${shop.url}/paid/work?n=${purchases.length + 1}`
    facilitator.set({ settle })
    const { nonce } = payment.authorization
    const first = send(url, payment.header)
    while (!facilitator.settles().some((asked) => nonceOf(asked) === nonce)) await delay(5)
    purchases.push({ name, url, payment, first })
  }
  return purchases
}

function nonceOf({ paymentPayload }: ReturnType<FacilitatorServer['settles']>[number]): unknown {
  const { authorization } = paymentPayload.payload as { readonly authorization: { readonly nonce: string } }
  return authorization.nonce
}

function chargesOf({ shop }: Place, { authorization }: SignedPayment): Promise<number> {
  return shop.onchain.charges(authorization.from)
}

/** The buyer has the answer, or is told that the outcome is unknown: never that nothing was charged. */
async function isAnsweredOrUnknown(t: Test, place: Place, purchase: Purchase): Promise<Response> {
  const { name, first, payment } = purchase
  const response = await first
  if (response.status === 200) {
    await response.body?.cancel()
    t.equal(await chargesOf(place, payment), 1, `${name}: answered and charged`)
    return response
  }
  t.equal(response.status, 503, name)
  t.match(await readProblem(response), { code: 'payment_pending', charged: 'unknown' }, name)
  t.match(await recordOf(place, response), { charged: /unknown|yes/ }, `${name}: it is on record`)
  return response
}

/** What is on record of a payment that was answered as pending. */
async function recordOf({ shop }: Place, { headers }: Response): Promise<Record<string, unknown>> {
  const status = await fetch(`${shop.url}${headers.get('location')}`)
  return (await status.json()) as Record<string, unknown>
}

/** Resolves once recovery knows whether a payment was charged, without another request for it. */
async function recovered(place: Place, response: Response): Promise<unknown> {
  for (;;) {
    const { charged } = await recordOf(place, response)
    if (charged !== 'unknown') return charged
    await delay(100)
  }
}

/** The same payment gets its answer, for one charge and one run in all. */
async function isAnsweredOnce(t: Test, place: Place, { name, url, payment }: Purchase): Promise<void> {
  const again = await send(url, payment.header)
  t.equal(again.status, 200, `${name}: the same payment is answered`)
  await again.body?.cancel()
  t.equal(await chargesOf(place, payment), 1, `${name}: charged once`)
}

/** Statuses without a word on the payment, from gateways and from facilitators themselves. */
const STATUSES = [
  200, 202, 204, 301, 302, 307, 308, 400, 401, 403, 404, 405, 408, 409, 413, 415, 418, 422, 425, 429, 500,
  501, 502, 503, 504, 520,
]
/** Reasons of both sides and of no table. */
const REASONS = [
  'insufficient_funds',
  'invalid_exact_evm_payload_signature',
  'invalid_exact_evm_payload_authorization_valid_before',
  'invalid_exact_evm_payload_authorization_from_address_kyt',
  'unsupported_scheme',
  'invalid_exact_evm_nonce_already_used',
  'unexpected_settle_error',
  'a_reason_of_next_year',
]
/** Reasons that a facilitator gives to a request that is repeated after the settlement. */
const REPEATED_REASONS = [
  'settlement_pending',
  'invalid_exact_evm_payload_authorization_valid_before',
  'invalid_exact_evm_nonce_already_used',
  'duplicate_settlement',
  'invalid_exact_evm_transaction_failed',
  'unexpected_settle_error',
  'a_reason_of_next_year',
]
const REFUSAL_STATUSES = [200, 401, 402, 429, 500]

for (const operator of OPERATORS) {
  for (const settled of [undefined, 'mined'] as const) {
    const has = settled === undefined ? 'has not carried it out' : 'has carried it out'
    t.test(`${operator}: tells the truth under every status when a facilitator ${has}`, async (t) => {
      const place = await open(t, operator)
      const done = settled === undefined ? {} : { settled }
      const ways = STATUSES.map((status) => [`status ${status}`, { declined: status, ...done }] as const)
      const purchases = await buyAll(place, new Map(ways))
      for (const purchase of purchases) {
        const { status } = await isAnsweredOrUnknown(t, place, purchase)
        if (operator === 'with an endpoint' && settled !== undefined)
          t.equal(status, 200, `${purchase.name}: the chain shows it at once`)
      }
      place.facilitator.set({})
      for (const purchase of purchases) await isAnsweredOnce(t, place, purchase)
      t.equal(place.shop.upstream.runs(), purchases.length, 'each work was done once')
    })
  }
}

t.test(
  'with an endpoint: a refusal that the chain contradicts is answered, whatever its reason and status',
  async (t) => {
    const place = await open(t, 'with an endpoint')
    const ways = REASONS.flatMap((refused) =>
      REFUSAL_STATUSES.map(
        (status) => [`${refused} ${status}`, { refused, status, settled: 'mined' }] as const,
      ),
    )
    const purchases = await buyAll(place, new Map(ways))
    for (const purchase of purchases) {
      const { status } = await isAnsweredOrUnknown(t, place, purchase)
      t.equal(status, 200, purchase.name)
    }
  },
)

t.test(
  'with an endpoint: a refusal of a payment that the token would accept leaves it unknown',
  async (t) => {
    const place = await open(t, 'with an endpoint')
    const ways = REASONS.map((refused) => [refused, { refused }] as const)
    const purchases = await buyAll(place, new Map(ways))
    for (const purchase of purchases) {
      const { status } = await isAnsweredOrUnknown(t, place, purchase)
      t.equal(status, 503, purchase.name)
      t.equal(await chargesOf(place, purchase.payment), 0)
    }
    place.facilitator.set({})
    for (const purchase of purchases) await isAnsweredOnce(t, place, purchase)
    t.equal(place.shop.upstream.runs(), purchases.length)
  },
)

t.test('with an endpoint: a settlement that is in no block yet is never called uncharged', async (t) => {
  const place = await open(t, 'with an endpoint')
  const ways = new Map<string, SettleBehavior>([
    ['status 401', { declined: 401, settled: 'broadcast' }],
    ['status 429', { declined: 429, settled: 'broadcast' }],
    ['insufficient_funds', { refused: 'insufficient_funds', settled: 'broadcast' }],
    ['unsupported_scheme', { refused: 'unsupported_scheme', settled: 'broadcast' }],
  ])
  for (const [name, settle] of ways) {
    const payment = await fresh(place)
    const url = `${place.shop.url}/paid/work?n=${name.length}`
    place.facilitator.set({ settle })
    await place.shop.onchain.setMining('manual')
    const first = send(url, payment.header)
    const purchase = { name, url, payment, first }
    const { status } = await isAnsweredOrUnknown(t, place, purchase)
    t.equal(status, 503, name)
    await place.shop.onchain.mine()
    await place.shop.onchain.setMining('automatic')
    await isAnsweredOnce(t, place, purchase)
  }
  t.equal(place.shop.upstream.runs(), ways.size)
})

t.test(
  'without an endpoint: a reason that may follow a settlement leaves it unknown under every status',
  async (t) => {
    const place = await open(t, 'without an endpoint')
    const ways = REPEATED_REASONS.flatMap((refused) =>
      REFUSAL_STATUSES.map(
        (status) => [`${refused} ${status}`, { refused, status, settled: 'mined' }] as const,
      ),
    )
    const purchases = await buyAll(place, new Map(ways))
    for (const purchase of purchases) {
      const { status } = await isAnsweredOrUnknown(t, place, purchase)
      t.equal(status, 503, purchase.name)
    }
    place.facilitator.set({})
    for (const purchase of purchases) await isAnsweredOnce(t, place, purchase)
    t.equal(place.shop.upstream.runs(), purchases.length)
  },
)

for (const operator of OPERATORS) {
  t.test(`${operator}: recovery finds the charge of an unknown settlement without its buyer`, async (t) => {
    const place = await open(t, operator)
    const { facilitator, shop } = place
    facilitator.set({ settle: { declined: 429, settled: 'broadcast' } })
    const payment = await fresh(place)
    const url = `${shop.url}/paid/work?n=1`
    await shop.onchain.setMining('manual')
    const response = await send(url, payment.header)
    t.match(await readProblem(response), { code: 'payment_pending', charged: 'unknown' })
    await shop.onchain.mine()
    await shop.onchain.setMining('automatic')
    facilitator.set({})
    t.equal(await recovered(place, response), 'yes')
    await isAnsweredOnce(t, place, { name: 'after recovery', url, payment, first: Promise.resolve(response) })
    t.equal(shop.upstream.runs(), 1)
  })
}

t.test('with an endpoint: recovery calls an unused payment uncharged once it has expired', async (t) => {
  const place = await open(t, 'with an endpoint')
  const { facilitator, shop } = place
  facilitator.set({ settle: { declined: 401 } })
  const validBefore = BigInt(Math.floor(Date.now() / 1_000) + 20)
  const payment = await fresh(place, { validBefore })
  const response = await send(`${shop.url}/paid/work?n=1`, payment.header)
  t.match(await readProblem(response), { code: 'payment_pending', charged: 'unknown' })
  while (Date.now() / 1_000 <= Number(validBefore)) {
    t.match(await recordOf(place, response), { charged: 'unknown' }, 'it may still be settled')
    await delay(1_000)
  }
  // The clock of the chain may be a second behind: nothing can settle the payment in blocks from this one on.
  await until('a block is later than the payment', async () => {
    await shop.onchain.mine()
    const { result } = await askNode(shop.chain.rpcUrl, 'eth_getBlockByNumber', ['latest', false])
    return BigInt(String(result?.['timestamp'])) >= validBefore
  })
  t.equal(await recovered(place, response), 'no')
  t.equal(await chargesOf(place, payment), 0)
})

t.test(
  'with an endpoint: a payment that was settled while no facilitator could be reached is answered',
  async (t) => {
    const place = await open(t, 'with an endpoint')
    const { facilitator, shop } = place
    const payment = await fresh(place)
    shop.upstream.during(async () => {
      await facilitator.refuse()
      await shop.onchain.submit(payment)
    })
    const url = `${shop.url}/paid/work?n=1`
    const first = send(url, payment.header)
    const { status } = await isAnsweredOrUnknown(t, place, {
      name: 'a stranger settles it',
      url,
      payment,
      first,
    })
    t.equal(status, 200)
  },
)
