import { createServer } from 'node:http'
import t from 'tap'
import type { Payment } from '../../../../src/engine/payment/payment.ts'
import { listening } from '../../../support/http.ts'
import { randomKey, sign, stockFetch, challengeIn } from '../../../support/payment.ts'
import { BASE_URL, paidRoutes, PAY_TO, quietX402, shippedCatalog } from '../../../support/shipped-catalog.ts'
import { fixedPriceOf } from '../../../support/catalogs.ts'

const catalog = shippedCatalog()
const x402 = quietX402(catalog)

function paymentIn(header: string | undefined): Payment {
  const detection = x402.detect({ 'payment-signature': header })
  if (detection.kind !== 'payment') throw new Error(detection.kind)
  return detection.payment
}

t.test('settles before the work exactly what costs more than 0.10 USD', async (t) => {
  for (const { path, operation } of paidRoutes(catalog))
    t.equal(operation.settle, fixedPriceOf({ operation }) > 100_000n ? 'upfront' : 'after', path)
})

t.test('accepts the stock client on an offer that is settled upfront', async (t) => {
  const route = paidRoutes(catalog).find(({ operation }) => operation.settle === 'upfront')
  if (route?.operation.price === undefined) throw new Error('no such route')
  const resource = BASE_URL + route.path
  const issued = x402.challenge(route)?.issue({ resource, scope: 'none', error: 'payment_required' })
  const challenge = challengeIn(issued)
  t.match(challenge.accepts, [{ extra: { paymentFlow: 'upfront' } }])
  const offer = { endpoint: route, resource, scope: 'none', price: fixedPriceOf(route) }
  let paid: string | undefined
  const { url, close } = await listening(
    createServer(({ headers }, response) => {
      const { 'payment-signature': header } = headers
      paid = typeof header === 'string' ? header : undefined
      response.writeHead(paid === undefined ? 402 : 200, issued?.headers).end('{}')
    }),
  )
  t.teardown(close)
  t.equal((await stockFetch(randomKey())(url + route.path)).status, 200)
  const detection = x402.detect({ 'payment-signature': paid })
  if (detection.kind !== 'payment') throw new Error(detection.kind)
  const { payment } = detection
  t.equal(payment.payee, PAY_TO)
  t.equal(
    payment.check({ endpoint: route, resource, scope: 'none', price: fixedPriceOf(route) }, Date.now()),
    undefined,
  )
  t.match(await payment.verify(), { kind: 'verified' })
  const [cheap] = paidRoutes(catalog)
  if (cheap === undefined) throw new Error('no route')
  const later = x402.challenge(cheap)?.issue({ resource, scope: 'none', error: 'payment_required' })
  t.notMatch(JSON.stringify(challengeIn(later)), /paymentFlow/, 'the usual flow goes unsaid')
  const accepted = { ...challenge.accepts[0], extra: { name: 'USD Coin', version: '2' } }
  const other = await sign(challenge, randomKey(), { accepted })
  t.match(
    paymentIn(other.header).check(offer, Date.now()),
    { code: 'no_matching_requirements' },
    'who has agreed to pay after the work is not charged before it',
  )
})
