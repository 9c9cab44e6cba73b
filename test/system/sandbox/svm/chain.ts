import t from 'tap'
import {
  address,
  createSolanaRpc,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  getTransactionDecoder,
  partiallySignTransaction,
  signature,
} from '@solana/kit'
import { isJsonObject, type Json } from '../../../../src/engine/base/json.ts'
import { adoptSvmChain, startSvmChain } from '../../../../src/sandbox/svm/chain.ts'
import { newSvmAccount, signSvmPayment, startSvmSale, svmFacilitator, svmTokenAccount } from '../../../support/svm.ts'

const sale = await startSvmSale()
const { chain, buyer, seller, feePayer, requirements } = sale
t.teardown(() => chain.stop())
t.beforeEach(() => chain.clearFaults())

const rpc = createSolanaRpc(chain.rpcUrl)
const facilitator = svmFacilitator(sale)

async function held(owner: string): Promise<bigint> {
  const { value } = await rpc.getTokenAccountBalance(address(await svmTokenAccount(owner))).send()
  return BigInt(value.amount)
}

async function lamportsOf(owner: string): Promise<bigint> {
  return (await rpc.getBalance(address(owner)).send()).value
}

/** A payment that the fee payer has signed too, as it is sent. */
async function signedByBoth(payment = signSvmPayment(sale)) {
  const { payload } = await payment
  const half = getTransactionDecoder().decode(Buffer.from(String(payload['transaction']), 'base64'))
  const whole = await partiallySignTransaction([feePayer.keyPair], half)
  return { wire: getBase64EncodedWireTransaction(whole), name: getSignatureFromTransaction(whole) }
}

const BASE64 = { encoding: 'base64' } as const

async function statusOf(name: string): Promise<Json> {
  const { value } = await rpc.getSignatureStatuses([signature(name)], { searchTransactionHistory: true }).send()
  const [status] = value
  return status === null || status === undefined
    ? null
    : { err: status.err === null ? null : String(status.err), confirmation: status.confirmationStatus }
}

/** Error of a call as it is sent, with its code and data. */
async function errorOf(method: string, params: readonly Json[]): Promise<Json> {
  const response = await fetch(chain.rpcUrl, {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const reply: unknown = await response.json()
  return isJsonObject(reply) ? (reply['error'] ?? null) : null
}

t.test('the official facilitator verifies and settles a payment of the official client', async (t) => {
  const before = { buyer: await held(buyer.address), seller: await held(seller) }
  const payment = await signSvmPayment(sale)
  t.match(await facilitator.verify(payment, requirements), { isValid: true, payer: buyer.address })
  const settled = await facilitator.settle(payment, requirements)
  t.match(settled, { success: true, transaction: /^[1-9A-HJ-NP-Za-km-z]{80,90}$/ })
  t.equal(await held(buyer.address), before.buyer - 10_000n)
  t.equal(await held(seller), before.seller + 10_000n)
  const found = await rpc
    .getTransaction(signature(settled.transaction), { maxSupportedTransactionVersion: 0, encoding: 'jsonParsed' })
    .send()
  t.match(found?.meta, { err: null, postTokenBalances: [{}, {}] })
  const paid = found?.transaction.message.accountKeys[0]
  t.match(paid, { pubkey: feePayer.address, signer: true, writable: true })
})
