import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createKeyPairSignerFromPrivateKeyBytes, type KeyPairSigner } from '@solana/kit'
import { x402Client, wrapFetchWithPayment } from '@x402/fetch'
import { SOLANA_DEVNET_CAIP2 } from '@x402/svm'
import { ExactSvmScheme } from '@x402/svm/exact/client'
import t, { type Test } from 'tap'
import { encodeBase58 } from '../../../../src/engine/base/base58.ts'
import type { JsonObject } from '../../../../src/engine/base/json.ts'
import { startSvmSale, svmFacilitator, svmTokenAccount, type SvmSale } from '../../../support/svm.ts'
import { callTool } from '../../../support/mcp.ts'
import { encode, readHeader, type Challenge } from '../../../support/payment.ts'
import { at } from '../../../support/documents.ts'
import { listening } from '../../../support/http.ts'
import { startServer, type RunningServer } from '../../../support/server.ts'
import { openCountingUpstream } from '../../../support/upstream.ts'

const CATALOG = fileURLToPath(new URL('../../../fixtures/svm/catalog.yaml', import.meta.url))
const HANDLERS = fileURLToPath(new URL('../../../fixtures/payments/handlers', import.meta.url))
const PRICE = 10_000n

const sale = await startSvmSale()
t.teardown(() => sale.chain.stop())
const upstream = await openCountingUpstream()
t.teardown(() => upstream.close())

// The service holds the key of the fee payer, whose seed a signer of the official client does not give out.
const seed = randomBytes(32)
const feePayer = await createKeyPairSignerFromPrivateKeyBytes(seed)
await sale.chain.setLamports(feePayer.address, 1_000_000_000n)
const pair = Buffer.concat([seed, Buffer.from(await crypto.subtle.exportKey('raw', feePayer.keyPair.publicKey))])

const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-svm-'))
t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))

function serve(env: Readonly<Record<string, string>>, directory = dataDir): Promise<RunningServer> {
  return startServer({
    args: ['--catalog', CATALOG, '--handlers', HANDLERS],
    dataDir: directory,
    env: {
      HOST: '127.0.0.1',
      BASE_URL: 'https://api.example.com',
      ALLOW_TEST_NETWORKS: '1',
      UPSTREAM_URL: upstream.url,
      PAY_TO: sale.seller,
      ...env,
    },
  })
}

const OWN = { SOLANA_FEE_PAYER_KEY: encodeBase58(pair), RPC_URL_SOLANA_DEVNET: sale.chain.rpcUrl }

function clientOf(buyer: KeyPairSigner): x402Client {
  const scheme = new ExactSvmScheme(buyer, { rpcUrl: sale.chain.rpcUrl })
  return new x402Client().register(SOLANA_DEVNET_CAIP2, scheme)
}

async function earned(): Promise<bigint> {
  const account = await svmTokenAccount(sale.seller)
  const found = await sale.chain.call('getTokenAccountBalance', [account])
  return BigInt(String(at(found, 'value', 'amount')))
}

async function offerOf(url: string): Promise<Challenge> {
  return readHeader(await fetch(url), 'PAYMENT-REQUIRED') as unknown as Challenge
}

async function signed(url: string): Promise<string> {
  const challenge = await offerOf(url)
  return encode((await clientOf(sale.buyer).createPaymentPayload(challenge as never)) as unknown as JsonObject)
}

const own = await serve(OWN)
t.teardown(() => own.stop())

t.test('the official client pays over HTTP, and our fee payer settles', async (t) => {
  const before = await earned()
  const response = await wrapFetchWithPayment(fetch, clientOf(sale.buyer))(`${own.url}/paid/work?n=1`)
  t.equal(response.status, 200, await response.clone().text())
  const receipt = readHeader(response, 'PAYMENT-RESPONSE')
  t.match(receipt, { success: true, network: SOLANA_DEVNET_CAIP2, payer: sale.buyer.address, amount: '10000' })
  t.equal((await earned()) - before, PRICE)
})

t.test('the official client pays for a tool', async (t) => {
  const before = await earned()
  const { content } = await callTool(`${own.url}/mcp/game`, 'work', { n: 2 })
  const payload = await clientOf(sale.buyer).createPaymentPayload(content as never)
  const meta = { 'x402/payment': payload as unknown as JsonObject }
  const answer = await callTool(`${own.url}/mcp/game`, 'work', { n: 2 }, { meta })
  t.notOk(answer.isError, answer.text)
  t.match(answer.meta['x402/payment-response'], { success: true, payer: sale.buyer.address })
  t.equal((await earned()) - before, PRICE)
})

t.test('fifty copies of a payment are one charge and one run', async (t) => {
  const url = `${own.url}/paid/work?n=3`
  const header = await signed(url)
  const [before, runs] = [await earned(), upstream.runs()]
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => fetch(url, { headers: { 'payment-signature': header } })),
  )
  const bodies = await Promise.all(answers.map((answer) => answer.text()))
  t.same(new Set(answers.map(({ status }) => status)), new Set([200]))
  t.equal(new Set(bodies).size, 1)
  t.equal((await earned()) - before, PRICE)
  t.equal(upstream.runs() - runs, 1)
})
