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
import {
  newSvmAccount,
  signSvmPayment,
  startSvmSale,
  svmFacilitator,
  svmTokenAccount,
} from '../../../support/svm.ts'

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
  const { value } = await rpc
    .getSignatureStatuses([signature(name)], { searchTransactionHistory: true })
    .send()
  const [status] = value
  return status === null || status === undefined
    ? null
    : {
        err: status.err === null ? null : JSON.stringify(status.err),
        confirmation: status.confirmationStatus,
      }
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
    .getTransaction(signature(settled.transaction), {
      maxSupportedTransactionVersion: 0,
      encoding: 'jsonParsed',
    })
    .send()
  t.match(found?.meta, { err: null, postTokenBalances: [{}, {}] })
  const paid = found?.transaction.message.accountKeys[0]
  t.match(paid, { pubkey: feePayer.address, signer: true, writable: true })
})

t.test('sends a transaction once, whatever is asked again', async (t) => {
  const before = await held(seller)
  const { wire, name } = await signedByBoth()
  t.equal(await rpc.sendTransaction(wire, BASE64).send(), name)
  t.same(await statusOf(name), { err: null, confirmation: 'confirmed' })
  t.match(await errorOf('sendTransaction', [wire, BASE64]), {
    code: -32002,
    message: 'Transaction simulation failed: This transaction has already been processed',
    data: { err: 'AlreadyProcessed' },
  })
  t.equal(await rpc.sendTransaction(wire, { ...BASE64, skipPreflight: true }).send(), name)
  t.equal(await held(seller), before + 10_000n)
})

t.test('takes no transaction after 150 blocks', async (t) => {
  const before = await held(seller)
  const { value } = await rpc.getLatestBlockhash({ commitment: 'confirmed' }).send()
  const late = signedByBoth()
  const { wire, name } = await late
  const height = await rpc.getBlockHeight({ commitment: 'confirmed' }).send()
  await chain.advance(Number(value.lastValidBlockHeight - height))
  t.equal(await rpc.getBlockHeight({ commitment: 'confirmed' }).send(), value.lastValidBlockHeight)
  t.equal((await rpc.isBlockhashValid(value.blockhash).send()).value, false)
  t.match(await errorOf('sendTransaction', [wire, BASE64]), {
    code: -32002,
    message: 'Transaction simulation failed: Blockhash not found',
    data: { err: 'BlockhashNotFound', logs: [] },
  })
  t.equal((await rpc.simulateTransaction(wire, { ...BASE64 }).send()).value.err, 'BlockhashNotFound')
  await rpc.sendTransaction(wire, { ...BASE64, skipPreflight: true }).send()
  t.equal(await statusOf(name), null)
  t.equal(await held(seller), before)
})

t.test('takes no transaction that lacks a signature', async (t) => {
  const { payload } = await signSvmPayment(sale)
  const unsigned = { code: -32003, message: 'Transaction signature verification failure' }
  const wire = String(payload['transaction'])
  t.match(await errorOf('sendTransaction', [wire, BASE64]), unsigned)
  t.match(await errorOf('simulateTransaction', [wire, { ...BASE64, sigVerify: true }]), unsigned)
  t.match(await errorOf('sendTransaction', ['AAAA', BASE64]), { code: -32602 })
})

t.test(
  'charges the fee of a transaction that fails in a block, and none of one that fails before',
  async (t) => {
    const poor = await newSvmAccount()
    await chain.giveTokens(poor.address, 1n)
    const { wire, name } = await signedByBoth(signSvmPayment({ ...sale, buyer: poor }))
    const before = await lamportsOf(feePayer.address)
    t.match(await errorOf('sendTransaction', [wire, BASE64]), {
      code: -32002,
      message: 'Transaction simulation failed: Error processing Instruction 2: custom program error: 0x1',
      data: { err: { InstructionError: [2, { Custom: 1 }] } },
    })
    t.equal(await lamportsOf(feePayer.address), before)
    await rpc.sendTransaction(wire, { ...BASE64, skipPreflight: true }).send()
    const found = await rpc
      .getTransaction(signature(name), { maxSupportedTransactionVersion: 0, encoding: 'json' })
      .send()
    t.ok(found?.meta?.err)
    t.equal(await lamportsOf(feePayer.address), before - (found?.meta?.fee ?? 0n))
  },
)

t.test('names the transactions of an account, newest first', async (t) => {
  const first = await signedByBoth()
  const second = await signedByBoth()
  for (const { wire } of [first, second]) await rpc.sendTransaction(wire, BASE64).send()
  const account = address(await svmTokenAccount(seller))
  const names = async (options: { readonly limit?: number; readonly until?: string }) => {
    const { limit = 1_000, until } = options
    const config = until === undefined ? { limit } : { limit, until: signature(until) }
    return (await rpc.getSignaturesForAddress(account, config).send()).map((each) => each.signature)
  }
  t.same(await names({ limit: 2 }), [second.name, first.name])
  t.same(await names({ until: first.name }), [second.name])
})

t.test('a block becomes final under 32 others', async (t) => {
  const { wire, name } = await signedByBoth()
  await rpc.sendTransaction(wire, BASE64).send()
  await chain.advance(32)
  t.same(await statusOf(name), { err: null, confirmation: 'finalized' })
})

t.test('does wrong what a test tells it to', async (t) => {
  const before = await held(seller)
  const { wire, name } = await signedByBoth()
  await chain.setFault({ method: 'sendTransaction', kind: 'drop', times: 1 })
  t.equal(await rpc.sendTransaction(wire, BASE64).send(), name)
  t.equal(await statusOf(name), null, 'dropped')
  await chain.setFault({ method: 'sendTransaction', kind: 'refuse', times: 1 })
  t.match(await errorOf('sendTransaction', [wire, BASE64]), { code: -32005 })
  await chain.setFault({ method: 'sendTransaction', kind: 'lose', times: 1 })
  await t.rejects(rpc.sendTransaction(wire, BASE64).send())
  t.same(await statusOf(name), { err: null, confirmation: 'confirmed' }, 'carried out, and the answer lost')
  await chain.setFault({ method: 'getSignatureStatuses', kind: 'omit', about: name })
  t.equal(await statusOf(name), null, 'forgotten')
  await chain.clearFaults()
  t.same(await statusOf(name), { err: null, confirmation: 'confirmed' })
  t.equal(await held(seller), before + 10_000n)
})

t.test('answers a batch in the order of its calls', async (t) => {
  const calls = ['getHealth', 'getNothing', 'getGenesisHash'].map((method, id) => ({
    jsonrpc: '2.0',
    id,
    method,
    params: [],
  }))
  const response = await fetch(chain.rpcUrl, { method: 'POST', body: JSON.stringify(calls) })
  t.match(await response.json(), [
    { id: 0, result: 'ok' },
    { id: 1, error: { code: -32601, message: 'Method not found' } },
    { id: 2, result: /^EtWTRABZaYq6iMfeYKouRu166VU2xqa1/ },
  ])
})

t.test('makes blocks by time, and a later server takes the chain over', async (t) => {
  const paced = await startSvmChain({ blockMs: 20 })
  t.teardown(() => paced.stop())
  const height = async () => Number(await paced.call('getBlockHeight', [{ commitment: 'confirmed' }]))
  const first = await height()
  while ((await height()) === first) continue
  t.equal(await adoptSvmChain({ ...paced, identity: chain.identity }), undefined, 'another chain')
  const adopted = await adoptSvmChain(paced)
  t.equal(adopted?.identity, paced.identity)
  await adopted?.stop()
  await t.rejects(paced.call('getHealth', []))
})
