import { decodePaymentRequiredHeader } from '@x402/core/http'
import { PaymentRequiredV2Schema } from '@x402/core/schemas'
import t from 'tap'
import { examplePath } from '../../../../src/engine/catalog/catalog.ts'
import { createChallenge, HEADER_TARGET } from '../../../../src/engine/x402/x402-challenge.ts'
import type { Micros } from '../../../../src/engine/base/money.ts'
import { isJsonObject } from '../../../../src/engine/base/json.ts'
import { ERRORS, type ErrorCode } from '../../../../src/engine/base/errors.ts'
import { PAID } from '../../../fixtures/specification.ts'
import { challengeIn } from '../../../support/payment.ts'
import { BASE_URL, paidRoutes, PAY_TO, quietX402, shippedCatalog } from '../../../support/shipped-catalog.ts'

const catalog = shippedCatalog()
const routes = paidRoutes(catalog)
const x402 = quietX402(catalog)
const plain = quietX402(catalog, undefined, 'version 2 alone')
const unpaid = (resource: string) => ({ resource, scope: 'none', error: 'payment_required' }) as const
const REFUSALS = Object.entries(ERRORS).flatMap(([code, { status }]) =>
  status === 402 ? [code as ErrorCode] : [],
)

/** The specified price in the token's units: six decimals, moved by hand. */
function atomic(path: string): string {
  const price = PAID.find((route) => route.path === path)?.price ?? ''
  const [whole = '', decimals = ''] = price.split('.')
  return String(Number(`${whole}${decimals.padEnd(6, '0')}`))
}

t.test('offers every paid route at its exact price, in a small challenge that the SDK reads', async (t) => {
  let largest = { bytes: 0, path: '' }
  for (const route of routes) {
    const challenge = x402.challenge(route)
    if (challenge === undefined) throw new Error(`${route.path} offers nothing`)
    const resource = `${BASE_URL}${route.path.replace(/\{\w+\}/, '730')}`
    const sizes = REFUSALS.map((error) => {
      const header = challenge.issue({ resource, scope: 'none', error }).headers['PAYMENT-REQUIRED'] ?? ''
      return header.length
    })
    const { headers } = challenge.issue(unpaid(resource))
    const header = headers['PAYMENT-REQUIRED'] ?? ''
    const decoded = decodePaymentRequiredHeader(header)
    t.ok(PaymentRequiredV2Schema.safeParse(decoded).success, `${route.path} satisfies the schema of the SDK`)
    const inBody: unknown = JSON.parse(`{${plain.challenge(route)?.issue(unpaid(resource)).members}}`)
    t.strictSame(inBody, decoded, 'without version 1, the body says what the header says')
    t.equal(decoded.resource.url, resource)
    t.match(decoded.resource.serviceName, /^[\x20-\x7e]{1,32}$/)
    t.ok((decoded.resource.description ?? '').length <= 200)
    t.strictSame(
      decoded.accepts.map(({ network, amount, payTo }) => [network, amount, payTo]),
      ['eip155:8453', 'eip155:137', 'eip155:42161', 'eip155:43114'].map((network) => [
        network,
        atomic(route.path),
        PAY_TO,
      ]),
    )
    const bytes = Math.max(...sizes)
    t.equal(challenge.headerBytes, bytes, 'what it says of its size is the largest it sends')
    if (bytes > largest.bytes) largest = { bytes, path: route.path }
  }
  t.comment(`largest PAYMENT-REQUIRED: ${largest.bytes} bytes, ${largest.path}`)
  t.ok(largest.bytes <= HEADER_TARGET, `${largest.path} takes ${largest.bytes} bytes`)
})

t.test('names what is of the moment, as it changes, where the headers have room for it', async (t) => {
  const [route] = routes
  if (route === undefined) throw new Error('no route')
  const [scheme, network] = ['exact', 'solana:test']
  const offer = { scheme, network, asset: 'mint', decimals: 6, payTo: 'payee', timeoutSeconds: 60 }
  let recentBlockhash = 'first'
  let named = [{ scheme, network, extra: { recentBlockhash } }]
  const challenge = createChallenge(route, 1_000n as Micros, {
    service: catalog.service,
    baseUrl: BASE_URL,
    offers: [{ ...offer, prices: ['fixed'], extra: { feePayer: 'payer' } }],
    recent: () => named,
    v1: false,
    nextToken: () => '',
  })
  const header = () => challenge.issue(unpaid(BASE_URL)).headers['PAYMENT-REQUIRED'] ?? ''
  const extra = () => decodePaymentRequiredHeader(header()).accepts[0]?.extra
  for (recentBlockhash of ['first', 'second']) {
    named = [{ scheme, network, extra: { recentBlockhash } }]
    t.strictSame(extra(), { feePayer: 'payer', recentBlockhash })
  }
  named = [{ scheme, network, extra: { recentBlockhash: 'x'.repeat(HEADER_TARGET) } }]
  t.strictSame(extra(), { feePayer: 'payer' })
  t.notMatch(JSON.stringify(challenge.published), /recentBlockhash/)
})

t.test('gives two buyers different tokens, and documents none', async (t) => {
  const [route] = routes
  if (route === undefined) throw new Error('no route')
  const challenge = x402.challenge(route)
  const issued = challenge?.issue({ resource: BASE_URL, scope: 'none', error: 'payment_required' })
  t.match(
    JSON.stringify(challengeIn(issued)),
    /"token":"_{24}"/,
    'made of the bytes that were given, 18 of them',
  )
  t.notMatch(JSON.stringify(challenge?.published), /redelivery/)
})

t.test('makes the same offers in documents and in the 402', async (t) => {
  for (const route of routes) {
    const challenge = x402.challenge(route)
    const { published } = challenge ?? {}
    if (published === undefined || !isJsonObject(published['resource'])) throw new Error(route.path)
    const resource = `${BASE_URL}${examplePath(route)}`
    t.equal(published['resource']['url'], resource)
    const issued = challengeIn(challenge?.issue(unpaid(resource)))
    const { accepts, resource: listed } = published
    const { description: _, tags: _tags, iconUrl: _icon, ...rest } = listed
    t.match(issued, { accepts, resource: rest }, 'a header may say less of the route')
  }
})

t.test('says in the challenge of a tool when to use it', async (t) => {
  for (const endpoint of routes) {
    const { useWhen } = endpoint.operation
    const demand = x402
      .challenge(endpoint)
      ?.demand({ resource: BASE_URL, scope: 'none', error: 'payment_required' })
    t.match(demand?.content, {
      resource: { description: `${endpoint.summary}. Use when: ${useWhen}`.slice(0, 200) },
    })
  }
})

t.test('offers nothing for a free route and for a service without a network', async (t) => {
  const free = catalog.routes.find(({ operation }) => operation.price === undefined)
  if (free !== undefined) t.equal(x402.challenge(free), undefined)
  for (const route of routes) t.equal(quietX402(catalog, []).challenge(route), undefined)
})
