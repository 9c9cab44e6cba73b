import t from 'tap'
import { x402Client, x402HTTPClient } from '@x402/core/client'
import { createSIWxClientExtension } from '@x402/extensions/sign-in-with-x'
import { privateKeyToAccount } from 'viem/accounts'
import { writeShop } from '../support/catalogs.ts'
import { randomKey } from '../support/payment.ts'
import { startServer } from '../support/server.ts'

const shop = writeShop(
  t,
  '  /mine/{id}: { price: free, handler: whoami, summary: Tells who has signed in, requires: signer, parameters: { id: { type: integer, example: 1 } } }\n',
)
const server = await startServer({
  args: ['--sandbox', '--catalog', shop.catalog, '--handlers', shop.handlers],
})
t.teardown(() => server.stop())

t.test('lets a client of x402 in by its extension for sign-in, without a payment', async (t) => {
  const account = privateKeyToAccount(randomKey())
  const client = new x402Client().registerExtension(createSIWxClientExtension({ signers: [account] }))
  const http = new x402HTTPClient(client)
  const url = `${server.url}/mine/7?about=this`
  const asked = await fetch(url)
  t.equal(asked.status, 402)
  const required = http.getPaymentRequiredResponse((name) => asked.headers.get(name), await asked.json())
  const headers = await http.handlePaymentRequired(required, url)
  t.ok(headers)
  const answer = await fetch(url, { headers: headers ?? {} })
  t.equal(answer.status, 200)
  t.match(await answer.json(), { signer: account.address })
})
