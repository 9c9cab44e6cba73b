/** Clients of both versions of x402 and of MPP, as they come from the registry, pay the same running shop. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { wrapAxiosWithPayment, x402Client } from '@x402/axios'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import axios from 'axios'
import t from 'tap'
import { privateKeyToAccount } from 'viem/accounts'
import { withPaymentInterceptor } from 'x402-axios'
import { decodeXPaymentResponse, wrapFetchWithPayment } from 'x402-fetch'
import {
  addressOf,
  challengeOf,
  randomKey,
  readHeader,
  sign,
  stockFetch,
  writtenInV1,
} from '../support/payment.ts'
import { openShop } from '../support/shop.ts'
import { PATH_USD, startTempo, stockPayerOf, TEMPO_CHAIN } from '../support/tempo.ts'

const CATALOG = fileURLToPath(new URL('../fixtures/payments/catalog.yaml', import.meta.url))
const MPP = `  mpp: { method: tempo, intent: charge, chain: ${TEMPO_CHAIN}, currency: '${PATH_USD}' }\n`

const folder = mkdtempSync(join(tmpdir(), 'ratecard-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const catalog = join(folder, 'catalog.yaml')
writeFileSync(catalog, readFileSync(CATALOG, 'utf8').replace('routes:\n', `${MPP}routes:\n`))
const tempo = await startTempo()
t.teardown(() => tempo.stop())
const recipient = addressOf(randomKey())
const shop = await openShop(async () => ({
  CATALOG: catalog,
  MPP_RECIPIENT: recipient,
  MPP_SECRET_KEY: 'k'.repeat(32),
  [`RPC_URL_${TEMPO_CHAIN}`]: tempo.rpcUrl,
}))
t.teardown(() => shop.close())
const work = `${shop.url}/paid/work`

/** What the chain shows of a payer. */
async function transactionsOf(payer: string): Promise<string[]> {
  return (await shop.onchain.uses())
    .filter((use) => use.payer === payer)
    .map(({ transaction }) => transaction)
}

t.test('is paid by x402-fetch 1.2.0', async (t) => {
  const key = await shop.wallet()
  const payer = addressOf(key)
  const response = await wrapFetchWithPayment(fetch, privateKeyToAccount(key))(`${work}?n=4`)
  t.equal(response.status, 200)
  t.match(await response.json(), { n: 4, payer })
  const [transaction, ...more] = await transactionsOf(payer)
  t.strictSame(more, [], 'charged once')
  const receipt = decodeXPaymentResponse(response.headers.get('x-payment-response') ?? '')
  t.strictSame(receipt, { success: true, transaction, network: 'base', payer })
})

t.test('is paid by x402-axios 0.7', async (t) => {
  const key = await shop.wallet()
  const payer = addressOf(key)
  const client = withPaymentInterceptor(axios.create({ baseURL: shop.url }), privateKeyToAccount(key))
  const { status, data, headers } = await client.get<unknown>('/paid/work', { params: { n: 5 } })
  t.equal(status, 200)
  t.match(data, { n: 5, payer })
  const [transaction, ...more] = await transactionsOf(payer)
  t.strictSame(more, [], 'charged once')
  const receipt: unknown = decodeXPaymentResponse(String(headers['x-payment-response']))
  t.strictSame(receipt, { success: true, transaction, network: 'base', payer })
})

t.test('is paid in the wire form of the Python package of version 1', async (t) => {
  const key = await shop.wallet()
  const payer = addressOf(key)
  const now = BigInt(Math.floor(Date.now() / 1000))
  const validity = { validAfter: now - 60n, validBefore: now + 60n }
  const signed = await sign(await challengeOf(work), key, validity)
  const response = await fetch(`${work}?n=3`, {
    headers: { 'X-Payment': Buffer.from(inPython(writtenInV1(signed, 'base'))).toString('base64') },
  })
  t.equal(response.status, 200)
  t.match(await response.json(), { n: 3, payer })
  const [transaction, ...more] = await transactionsOf(payer)
  t.strictSame(more, [], 'charged once')
  t.match(readHeader(response, 'x-payment-response'), { success: true, transaction, network: 'base', payer })
})

/** As json.dumps writes it, with a space after each colon and comma. */
function inPython(value: object): string {
  return JSON.stringify(value).replaceAll('":', '": ').replaceAll(',"', ', "')
}

t.test('is paid by @x402/fetch, in version 2', async (t) => {
  const key = await shop.wallet()
  const payer = addressOf(key)
  const response = await stockFetch(key)(`${work}?n=6`)
  t.equal(response.status, 200)
  const [transaction, ...more] = await transactionsOf(payer)
  t.strictSame(more, [], 'charged once')
  t.match(readHeader(response, 'payment-response'), { success: true, transaction, network: 'eip155:8453' })
})

t.test('is paid by @x402/axios 2.11, in version 2', async (t) => {
  const key = await shop.wallet()
  const payer = addressOf(key)
  const scheme = new ExactEvmScheme(privateKeyToAccount(key))
  const client = wrapAxiosWithPayment(
    axios.create({ baseURL: shop.url }),
    new x402Client().register('eip155:*', scheme),
  )
  const { status, data, headers } = await client.get<unknown>('/paid/work', { params: { n: 8 } })
  t.equal(status, 200)
  t.match(data, { n: 8, payer })
  const [transaction, ...more] = await transactionsOf(payer)
  t.strictSame(more, [], 'charged once')
  const receipt = Buffer.from(String(headers['payment-response']), 'base64').toString()
  t.match(JSON.parse(receipt), { success: true, transaction, network: 'eip155:8453' })
})

t.test('is paid by mppx, over MPP', async (t) => {
  const key = await tempo.wallet()
  const response = await stockPayerOf(tempo.rpcUrl, key).fetch(`${work}?n=9`)
  t.equal(response.status, 200)
  t.match(await response.json(), { n: 9 })
  t.strictSame(await tempo.received(recipient, PATH_USD, addressOf(key)), [10_000n], 'charged once')
})

t.test('tells clients of version 1 why a payment is not enough', async (t) => {
  const poor = await shop.wallet(0n)
  const response = await wrapFetchWithPayment(fetch, privateKeyToAccount(poor))(`${work}?n=7`)
  t.equal(response.status, 402)
  t.match(await response.json(), {
    x402Version: 1,
    error: 'invalid_exact_evm_insufficient_balance',
    charged: 'no',
  })
  t.strictSame(await transactionsOf(addressOf(poor)), [])
})
