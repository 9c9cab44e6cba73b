import t from 'tap'
import { Failure, type Handler } from '../../src/engine/handler.ts'
import { startTestServer } from '../../src/engine/testing.ts'
import { stockFetch } from '../support/payment.ts'

const text = `catalog: 1
service: { name: Greetings, version: '1.0.0' }
payments: { currency: USD, x402: { networks: [base, polygon] } }
routes:
  /paid/hello/{name}:
    price: 0.001
    summary: A greeting
    parameters: { name: { type: string, example: Ada } }
    example: { text: Hello Ada }
`
const hello: Handler<{ readonly name: string }> = async ({ name }) => {
  if (name === 'nobody') throw new Failure('not_found', 'nobody is not here')
  return { source: [], body: { text: `Hello ${name}` } }
}

t.test('a test serves a catalog, pays on a chain of its own and reads the answer', async (t) => {
  const server = await startTestServer({ catalog: { text }, handlers: { hello } })
  t.teardown(() => server.close())
  const response = await server.fetch('/paid/hello/Ada')
  t.equal(response.status, 200)
  t.match(await response.json(), { text: 'Hello Ada' })
  t.equal(await server.received(), 1_000n)

  const failed = await server.fetch('/paid/hello/nobody')
  t.match(await failed.json(), { code: 'not_found', charged: 'no' })
  t.equal(await server.received(), 1_000n, 'a failure is not charged')

  const stock = await stockFetch(server.payerKey)(`${server.url}/paid/hello/Grace`)
  t.match(await stock.json(), { text: 'Hello Grace' })
  t.equal(await server.received(), 2_000n)
  await server.close()
  await t.rejects(fetch(server.url), 'nothing is left running')
})

t.test('stops every process when the catalog has errors', async (t) => {
  const options = { catalog: { text: text.replace('0.001', 'free of charge') }, handlers: { hello } }
  await t.rejects(startTestServer(options), { name: 'CatalogError', message: /catalog\.yaml:6:/ })
})
