import t from 'tap'
import { isJsonObject } from '../../../../src/engine/base/json.ts'
import { openBuyer, readBought } from '../../../support/buyer.ts'
import {
  addressOf,
  challengeOf,
  readHeader,
  send,
  sign,
  type Hex,
  type SignedPayment,
} from '../../../support/payment.ts'
import { Secrets } from '../../../support/secrets.ts'
import { openShop } from '../../../support/shop.ts'

const shop = await openShop()
t.teardown(() => shop.close())
const secrets = new Secrets()
secrets.add('an RPC endpoint', shop.node.url)
secrets.add('the signer’s key', shop.signerKey.slice(2))
t.afterEach(() => {
  shop.upstream.during(async () => {})
})

let last = 0
function url(route = '/paid/work'): string {
  last += 1
  return `${shop.url}${route}?n=${last}`
}

async function pay(at: string, key: Hex): Promise<SignedPayment> {
  const payment = await sign(await challengeOf(at), key)
  secrets.addHeader(payment.header)
  return payment
}

async function problemOf(response: Response): Promise<unknown> {
  const value: unknown = JSON.parse(await secrets.scanResponse(response))
  return isJsonObject(value) ? value : undefined
}

t.test('leaves a payer who cancels the authorization during the work uncharged and unanswered', async (t) => {
  const key = await shop.wallet()
  const payer = addressOf(key)
  for (let time = 1; time <= 2; time += 1) {
    const at = url()
    const payment = await pay(at, key)
    const runs = shop.upstream.runs()
    shop.upstream.during(() => shop.onchain.cancel(key, payment.authorization.nonce))
    const response = await send(at, payment.header)
    t.equal(response.status, 402)
    t.strictSame(readHeader(response, 'payment-response'), {
      success: false,
      errorReason: 'settlement_failed',
      transaction: '',
      network: 'eip155:8453',
      payer,
    })
    const problem = await problemOf(response)
    t.match(problem, { code: 'settlement_failed', charged: 'no' })
    t.notMatch(problem, { value: String }, 'the answer is withheld')
    t.equal(shop.upstream.runs(), runs + 1)
    shop.upstream.during(async () => {})
    t.match(await problemOf(await send(at, payment.header)), { charged: 'no' }, 'the same once more')
    t.equal(shop.upstream.runs(), runs + 1, 'is refused before any work')
  }
  t.equal(await shop.onchain.charges(payer), 0)

  await t.test('charges a payer who has done so twice before the work', async (t) => {
    let before = 0
    shop.upstream.during(async () => {
      before = await shop.onchain.charges(payer)
    })
    t.match(await openBuyer(key, secrets).buy(url()), { status: 200 })
    t.equal(before, 1, 'charged when the work began')
    t.equal(await shop.onchain.charges(payer), 1)
  })

  await t.test('works for other payers first, as before', async (t) => {
    const other = openBuyer(await shop.wallet(), secrets)
    let before = 0
    shop.upstream.during(async () => {
      before = await shop.onchain.charges(other.address)
    })
    t.match(await other.buy(url()), { status: 200 })
    t.equal(before, 0)
  })
})

t.test('tells a buyer that paid work has failed, and runs it again for the same payment', async (t) => {
  const key = await shop.wallet()
  const at = url('/paid/deep')
  const payment = await pay(at, key)
  shop.upstream.during(() => Promise.reject(new Error('unwell')))
  for (let time = 1; time <= 2; time += 1) {
    const response = await send(at, payment.header)
    t.equal(response.status, 500)
    const [use] = (await shop.onchain.uses()).filter(({ payer }) => payer === addressOf(key))
    t.match(readHeader(response, 'payment-response'), { success: true, transaction: use?.transaction })
    t.match(await problemOf(response), { code: 'internal', charged: 'yes' })
    t.equal(await shop.onchain.charges(addressOf(key)), 1)
  }
  const runs = shop.upstream.runs()
  await shop.restart()
  const later = at.replace(/^http:\/\/[^/]+/, shop.url)
  t.match(await problemOf(await send(later, payment.header)), { charged: 'yes' }, 'after a power cut too')
  shop.upstream.during(async () => {})
  const bought = await readBought(await send(later, payment.header))
  t.match(bought, { status: 200, run: runs + 2 })
  t.strictSame(await readBought(await send(later, payment.header)), bought, 'and once done, it is done')
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
})

t.test(
  'keeps the answer for a buyer who loses the connection while a stranger settles the payment',
  async (t) => {
    const key = await shop.wallet()
    const at = url()
    const payment = await pay(at, key)
    const leaving = new AbortController()
    let transaction = ''
    shop.upstream.during(async () => {
      transaction = await shop.onchain.submit(payment)
      leaving.abort()
    })
    const headers = { 'payment-signature': payment.header }
    await t.rejects(fetch(at, { headers, signal: leaving.signal }))
    shop.upstream.during(async () => {})
    t.match(await readBought(await send(at, payment.header)), { status: 200, transaction })
    t.equal(await shop.onchain.charges(addressOf(key)), 1)
  },
)

t.test('keeps secrets out of the logs and out of unpaid answers', async (t) => {
  secrets.scan(shop.output())
  t.strictSame(secrets.leaked(), [])
})
