import t from 'tap'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import { writeShop } from '../support/catalogs.ts'
import { listening } from '../support/http.ts'
import { stockFetch } from '../support/payment.ts'
import { randomBytes } from '../support/random.ts'
import { readSandboxFile, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { createReceiver, type SentEvent } from './support/webhook-receiver.ts'

const secret = `whsec_${Buffer.from(randomBytes(32)).toString('base64')}`
const taken: SentEvent[] = []
const receiver = await listening(
  createReceiver((event, response) => {
    taken.push(event)
    response.writeHead(204).end()
  }),
)
t.teardown(() => receiver.close())

const shop = writeShop(
  t,
  '  /greet/{name}: { price: 0.01, handler: greet, summary: Greets, parameters: { name: { type: string, example: ann } } }\n',
  `catalog: 1
service: { name: Shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] } }
webhooks: [{ url: '${receiver.url}/hook', secret: WEBHOOK_SECRET }]
`,
)
const server = await startServer({
  args: ['--sandbox', '--catalog', shop.catalog, '--handlers', shop.handlers],
  env: { WEBHOOK_SECRET: secret },
})
t.teardown(() => server.stop())
const { evm } = readSandboxFile(server)

/** The event of a new sale. */
async function sell(name: string): Promise<SentEvent & { readonly payment: string | null }> {
  const known = taken.length
  const response = await stockFetch(evm.payerKey)(`${server.url}/greet/${name}`)
  t.equal(response.status, 200)
  await until('the sale is told', () => taken.length > known)
  const event = taken[known]
  if (event === undefined) throw new Error('it was told')
  return { ...event, payment: response.headers.get('ratecard-payment') }
}

t.test('tells of a sale so that the package of Standard Webhooks verifies it', async (t) => {
  const { headers, body, payment } = await sell('ann')
  t.match(new Webhook(secret).verify(body, headers), {
    type: 'sale',
    data: { payment, amount: '0.010000', token: 'USDC' },
  })
})

t.test('tells of a sale so that nothing verifies once it is changed', async (t) => {
  const { headers, body } = await sell('bob')
  const webhook = new Webhook(secret)
  const other = new Webhook(`whsec_${Buffer.from(randomBytes(32)).toString('base64')}`)
  const old = String(Number(headers['webhook-timestamp']) - 3_600)
  for (const verify of [
    () => webhook.verify(body.replace('0.010000', '0.990000'), headers),
    () => webhook.verify(body, { ...headers, 'webhook-id': 'another' }),
    () => webhook.verify(body, { ...headers, 'webhook-timestamp': old }),
    () => other.verify(body, headers),
  ])
    t.throws(verify, WebhookVerificationError)
  t.match(webhook.verify(body, headers), { type: 'sale' })
})
