import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { readProblem } from '../../../support/http.ts'
import { challengeOf, encode, readHeader, send, sign, type Hex } from '../../../support/payment.ts'
import { openShop } from '../../../support/shop.ts'

const shop = await openShop()
t.teardown(() => shop.close())
const work = `${shop.url}/paid/work`

/** Charges so far: every transfer to the payee has one authorization. */
async function charges(): Promise<number> {
  const [uses, received] = await Promise.all([shop.onchain.uses(), shop.onchain.received(shop.payTo)])
  if (uses.length !== received.length) throw new Error(`${uses.length} uses, ${received.length} transfers`)
  return uses.length
}

t.test('answers fifty simultaneous copies of one payment with one run and one charge', async (t) => {
  const key = await shop.wallet()
  const payment = await sign(await challengeOf(work), key)
  const before = { runs: shop.upstream.runs(), charges: await charges() }
  shop.upstream.during(() => delay(100))
  const answers = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const response = await send(`${work}?n=5`, payment.header)
      return {
        status: response.status,
        receipt: response.headers.get('payment-response'),
        id: response.headers.get('ratecard-payment'),
        body: await response.text(),
      }
    }),
  )
  shop.upstream.during(async () => {})
  t.strictSame([...new Set(answers.map(({ status }) => status))], [200])
  t.equal(new Set(answers.map(({ receipt }) => receipt)).size, 1, 'one receipt')
  t.equal(new Set(answers.map(({ id }) => id)).size, 1, 'one payment')
  t.equal(new Set(answers.map(({ body }) => body)).size, 1, 'one body')
  t.equal(shop.upstream.runs() - before.runs, 1, 'the work was done once')
  t.equal((await charges()) - before.charges, 1, 'it was charged once')

  await t.test('redelivers a lost answer to its buyer, and refuses an observer of the chain', async (t) => {
    await delay(3_000)
    const again = await send(`${work}?n=5`, payment.header)
    t.equal(again.status, 200, 'with the token of the challenge')
    t.equal(again.headers.get('payment-response'), answers[0]?.receipt)
    t.equal(await again.text(), answers[0]?.body)
    const { extensions: _, ...public_ } = payment.payload
    const observed = await send(`${work}?n=5`, encode(public_))
    t.equal(observed.status, 409, 'with no more than the calldata of the transaction')
    t.match(await readProblem(observed), { code: 'payment_reused', charged: 'yes' })
    const guessed = await send(
      `${work}?n=5`,
      encode({ ...public_, extensions: { redelivery: { info: { token: 'x'.repeat(24) } } } }),
    )
    t.equal(guessed.status, 409, 'with a token of his own')
    t.equal(shop.upstream.runs() - before.runs, 1)
    t.equal((await charges()) - before.charges, 1)
  })

  await t.test('refuses a payment for another path or other parameters, with one charge', async (t) => {
    for (const url of [`${shop.url}/paid/other?n=5`, `${work}?n=6`]) {
      const response = await send(url, payment.header)
      t.equal(response.status, 409, url)
      t.match(await readProblem(response), { code: 'payment_reused', charged: 'yes' })
    }
    t.equal(shop.upstream.runs() - before.runs, 1)
    t.equal((await charges()) - before.charges, 1)
  })

  await t.test('treats a default that is written out as the same request', async (t) => {
    const fresh = await sign(await challengeOf(work), key)
    t.equal((await send(work, fresh.header)).status, 200)
    t.equal((await send(`${work}?n=1`, fresh.header)).status, 200)
    t.equal((await charges()) - before.charges, 2)
  })
})

t.test('refuses a settled answer to anyone who knows only payer and nonce', async (t) => {
  // A long signature belongs to a contract wallet, which only the chain can ask: it must be asked.
  const payment = await sign(await challengeOf(work), await shop.wallet())
  t.equal((await send(`${work}?n=9`, payment.header)).status, 200)
  const { authorization } = payment.payload['payload'] as { authorization: Record<string, string> }
  const forged = { ...payment.payload, payload: { authorization, signature: `0x${'ab'.repeat(130)}` } }
  const response = await send(`${work}?n=9`, encode(forged))
  t.equal(response.status, 402)
  t.match(await readProblem(response), { code: 'invalid_exact_evm_signature', charged: 'no' })
})

t.test('answers twenty simultaneous buyers with twenty transfers in fewer transactions', async (t) => {
  const before = await charges()
  const keys: Hex[] = []
  while (keys.length < 20) keys.push(await shop.wallet())
  const payments = await Promise.all(keys.map(async (key) => sign(await challengeOf(work), key)))
  const answers = await Promise.all(
    payments.map(({ header }, index) => send(`${work}?n=${index + 20}`, header)),
  )
  t.strictSame(
    answers.map(({ status }) => status),
    Array(20).fill(200),
  )
  const transactions = answers.map((answer) => readHeader(answer, 'payment-response')['transaction'])
  t.ok(new Set(transactions).size < 20, `${new Set(transactions).size}`)
  t.equal((await charges()) - before, 20)
})
