import t from 'tap'
import {
  extractReceiptFromResponse,
  extractReceiptPayload,
  type JWSSignedReceipt,
  verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt'
import { writeShop } from '../support/catalogs.ts'
import { addressOf, randomKey, stockFetch } from '../support/payment.ts'
import { readSandboxFile, startServer } from '../support/server.ts'

const shop = writeShop(
  t,
  '  /greet/{name}: { price: 0.01, handler: greet, summary: Greets, parameters: { name: { type: string, example: ann } } }\n',
)
const server = await startServer({
  args: ['--sandbox', '--catalog', shop.catalog, '--handlers', shop.handlers],
  env: { RECEIPT_PRIVATE_KEY: randomKey() },
})
t.teardown(() => server.stop())
const { evm } = readSandboxFile(server)

async function receiptOf(url: string): Promise<JWSSignedReceipt> {
  const response = await stockFetch(evm.payerKey)(url)
  const receipt = extractReceiptFromResponse(response)
  if (receipt?.format !== 'jws') throw new Error(`${response.status} without a receipt`)
  return receipt
}

t.test('signs a receipt that the package of x402 finds and verifies by its DID', async (t) => {
  const url = `${server.url}/greet/ann`
  const receipt = await receiptOf(url)
  const claims = await verifyReceiptSignatureJWS(receipt)
  t.match(claims, {
    version: 1,
    network: 'eip155:84532',
    resourceUrl: url,
    payer: addressOf(evm.payerKey),
  })
  t.ok(Math.abs(claims.issuedAt * 1000 - Date.now()) < 600_000)
  t.same(extractReceiptPayload(receipt), claims)
})

t.test('signs a receipt that does not verify once it is changed', async (t) => {
  const receipt = await receiptOf(`${server.url}/greet/bob`)
  const [head = '', , signature = ''] = receipt.signature.split('.')
  const claims = { ...extractReceiptPayload(receipt), payer: `0x${'1'.repeat(40)}` }
  const body = Buffer.from(JSON.stringify(claims)).toString('base64url')
  const altered: JWSSignedReceipt = { ...receipt, signature: [head, body, signature].join('.') }
  await t.rejects(verifyReceiptSignatureJWS(altered))
})
