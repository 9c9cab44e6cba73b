/** Clients of both versions of x402, as they come from the registry, pay the same running shop. */
import { wrapAxiosWithPayment, x402Client } from '@x402/axios'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import axios from 'axios'
import t from 'tap'
import { privateKeyToAccount } from 'viem/accounts'
import { withPaymentInterceptor } from 'x402-axios'
import { decodeXPaymentResponse, wrapFetchWithPayment } from 'x402-fetch'
import { addressOf, readHeader, stockFetch } from '../support/payment.ts'
import { openShop } from '../support/shop.ts'

t.setTimeout(120_000)

const shop = await openShop()
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
