import t from 'tap'
import { randomKey } from '../../../support/payment.ts'
import { startServer } from '../../../support/server.ts'
import { writeShop } from '../../../support/catalogs.ts'

const ROUTES = `  /paid/greeting: { price: 0.01, summary: Greets, handler: greet }
  /paid/weather: { price: 0.02, summary: Not written yet, planned: true, sample: true }
`
const HEAD = `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] } }
documents: { index: /, llms: /llms.txt, openapi: /openapi.json, status-json: /status.json }
`
const { catalog, handlers } = writeShop(t, ROUTES, HEAD)
const server = await startServer({
  args: ['--catalog', catalog, '--handlers', handlers],
  env: {
    HOST: '127.0.0.1',
    BASE_URL: 'https://api.example.com',
    PAY_TO: `0x${'2b'.repeat(20)}`,
    SETTLER_PRIVATE_KEY: randomKey(),
    RPC_URL_8453: 'http://127.0.0.1:9',
  },
})
t.teardown(() => server.stop())
const { url } = server

t.test('says that an announced route is unwritten before anybody pays', async (t) => {
  const got = await fetch(`${url}/paid/weather`)
  t.equal(got.status, 402, 'the price is known all the same')
  t.match(await got.json(), {
    would_fail: { status: 501, code: 'not_implemented' },
    price: { amount: '0.020000' },
  })
  const page = await fetch(`${url}/paid/weather`, { headers: { accept: 'text/html' } })
  t.match(await page.text(), 'announced and not served yet')
  const sample = await fetch(`${url}/sample/weather`)
  t.equal(sample.status, 501)
  t.match(await sample.json(), { status: 501, code: 'not_implemented', charged: 'no', retryable: false })
})

t.test('leaves unwritten routes out of every document', async (t) => {
  for (const path of ['/', '/llms.txt', '/openapi.json', '/status.json'])
    t.notMatch(await (await fetch(url + path)).text(), 'weather', path)
})
