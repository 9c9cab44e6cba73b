import { keccak256 } from 'viem'
import { Account, Actions, P256 } from 'viem/tempo'
import { privateKeyToAccount } from 'viem/accounts'
import t from 'tap'
import type {
  Dispatch,
  PaymentRecord,
  PayerTransaction,
} from '../../../../src/engine/ledger/payment-record.ts'
import { newRecord } from '../../../../src/engine/ledger/payment-lifecycle.ts'
import type { Payment } from '../../../../src/engine/payment/payment.ts'
import { openMppProtocol } from '../../../support/mpp.ts'
import { openRpcProxy, type ConnectionState } from '../../../support/rpc-proxy.ts'
import { addressOf, randomKey, type Hex } from '../../../support/payment.ts'
import {
  ALPHA_USD,
  clientOf,
  mined,
  openCredential,
  PATH_USD,
  payAs,
  signTempo,
  startTempo,
  type EchoedChallenge,
} from '../../../support/tempo.ts'

const RECIPIENT = addressOf(randomKey())
const WALLET_BALANCE = 100_000_000n

const chain = await startTempo()
const node = await openRpcProxy(chain.rpcUrl)
/** Waiting costs no time here: it moves the clock. */
const clock = { ahead: 0 }
const counter = openMppProtocol({
  rpcUrl: node.url,
  recipient: RECIPIENT,
  now: () => Date.now() + clock.ahead,
  sleep: async (ms) => {
    clock.ahead += ms
    await new Promise((resolve) => setTimeout(resolve, 5))
  },
})
t.teardown(async () => {
  await counter.close()
  await node.close()
  await chain.stop()
})
t.afterEach(() => {
  node.set('open')
  node.onCall(async () => {})
  clock.ahead = 0
})

interface Signed {
  readonly key: Hex
  readonly challenge: EchoedChallenge
  readonly authorization: string
  readonly payment: Payment
  readonly raw: Hex
}

async function fresh(): Promise<Signed> {
  const key = await chain.wallet()
  const challenge = counter.challenge()
  const authorization = await signTempo(chain.rpcUrl, key, challenge)
  const raw = String(openCredential(authorization).payload['signature']) as Hex
  return { key, challenge, authorization, payment: counter.take(authorization), raw }
}

/** The payment of a new account with a passkey. */
async function passkeyPayment(challenge: EchoedChallenge): Promise<string> {
  const passkey = Account.fromP256(P256.randomPrivateKey())
  await chain.fund(passkey.address)
  return payAs(chain.rpcUrl, passkey, challenge)
}

/** What the wallet of a payment has paid to us. */
async function charges({ key }: Signed): Promise<bigint[]> {
  return chain.received(RECIPIENT, PATH_USD, addressOf(key))
}

/** Moves what a wallet has out of it, the fee paid in the other token. */
async function drain(key: Hex, token: Hex): Promise<void> {
  const client = clientOf(chain.rpcUrl, privateKeyToAccount(key))
  const feeToken = token === PATH_USD ? ALPHA_USD : PATH_USD
  await Actions.token.transferSync(client, {
    token,
    to: addressOf(randomKey()),
    amount: WALLET_BALANCE,
    feeToken,
  })
}

async function settle(payment: Payment, record: (dispatch: Dispatch) => void = () => {}) {
  if (payment.settle === undefined) throw new Error('charged without a transfer')
  return payment.settle(payment.authorizedAmount, {
    record: async (dispatch) => {
      record(dispatch)
    },
  })
}

/** The entry a process that has died has left. */
async function left({ payment }: Signed, dispatch: Dispatch | undefined): Promise<PaymentRecord> {
  const verification = await payment.verify()
  if (verification.kind !== 'verified') throw new Error(verification.kind)
  const { payer, validBefore } = verification
  const purchase = {
    key: payment.key,
    protocol: 'mpp',
    scheme: payment.scheme,
    network: payment.network,
    asset: payment.asset,
    payer,
    payee: payment.payee,
    authorizationHash: payment.authorizationHash,
    authorizedAmount: payment.authorizedAmount.toString(),
    amount: payment.authorizedAmount.toString(),
    validBefore,
    operation: 'ping',
    digest: 'the-arguments',
    revision: 'r1',
    redeliveryToken: undefined,
    settle: 'after',
    redeliver: 86_400_000,
    buyerKey: 'buyer',
    identifier: undefined,
  } as const
  const record = newRecord(purchase, 'one', Date.now(), 10_000)
  return dispatch === undefined ? record : { ...record, state: 'settling', dispatch }
}

/** What is recorded of a payment before it is sent. */
function recorded({ raw }: Signed): PayerTransaction {
  return { kind: 'payer', hash: keccak256(raw), raw }
}

t.test('loads the heavy libraries at the first payment that is not the usual one only', async (t) => {
  const threads = (): number => {
    const report = process.report?.getReport() as unknown as { readonly workers: readonly unknown[] }
    return report.workers.length
  }
  const before = node.calls().length
  const quiet = openMppProtocol({ rpcUrl: node.url, recipient: RECIPIENT })
  t.teardown(() => quiet.close())
  const idle = threads()
  for (let n = 0; n < 10; n += 1) quiet.challenge()
  t.equal(threads(), idle)
  t.equal(node.calls().length, before)
  const { authorization, payment } = await fresh()
  t.match(await quiet.take(authorization).verify(), { kind: 'verified' })
  t.equal(node.calls().length, before, 'the signature of a key is checked here')
  t.equal((await settle(payment)).kind, 'settled')
  t.equal(threads(), idle, 'the usual payment needs none')
  await quiet.take(await passkeyPayment(quiet.challenge())).verify()
  t.equal(threads(), idle + 1, 'one thread, at the first passkey')
})

const BLOCKED: readonly (readonly [ConnectionState, string])[] = [
  ['down', 'cannot be reached'],
  ['html', 'is hidden behind an error page'],
  ['failing', 'answers errors'],
  ['silent', 'never answers'],
]

/** Its blocks come by themselves elsewhere; here waiting takes no time. */
const goOn = (): void =>
  node.onCall(async (method) => {
    if (method === 'eth_getTransactionReceipt') await chain.ask('evm_mine', [])
  })

for (const [way, what] of BLOCKED) {
  t.test(`leaves the buyer uncharged and the payment unspent when a network ${what}`, async (t) => {
    const signed = await fresh()
    node.set(way)
    t.match(await counter.refusal(signed.authorization), { code: 'chain_unavailable' })
    const dispatched: Dispatch[] = []
    const settlement = await settle(signed.payment, (dispatch) => dispatched.push(dispatch))
    t.match(settlement, { kind: 'failed', refusal: { code: 'chain_unavailable' } })
    t.strictSame(dispatched, [], 'nothing was to be sent')
    node.set('open')
    t.equal(await counter.refusal(signed.authorization), undefined)
    goOn()
    t.equal((await settle(signed.payment)).kind, 'settled')
    t.strictSame(await charges(signed), [5_000n], 'charged once')
  })
}

t.test(
  'reports unknown when the network falls silent after the broadcast, and finds the outcome later',
  async (t) => {
    const signed = await fresh()
    node.set('broken_after_send')
    const dispatched: Dispatch[] = []
    const settlement = await settle(signed.payment, (dispatch) => dispatched.push(dispatch))
    t.match(settlement, { kind: 'unknown' }, 'never a failure: the buyer would pay again')
    t.equal(dispatched.length, 1)
    await mined(chain, signed.raw)
    const record = await left(signed, dispatched[0])
    t.equal((await counter.protocol.resolve(record)).kind, 'unknown', 'while the way is blocked')
    node.set('open')
    clock.ahead = 0
    const resolved = await counter.protocol.resolve(record)
    t.match(resolved, { kind: 'settled', receipt: { payer: addressOf(signed.key), amount: '5000' } })
    t.strictSame(await charges(signed), [5_000n])
  },
)

t.test('sends the stored bytes once after a process died before the broadcast', async (t) => {
  const signed = await fresh()
  const record = await left(signed, recorded(signed))
  t.match(await counter.protocol.resolve(record), { kind: 'settled' })
  t.match(await counter.protocol.resolve(record), { kind: 'settled' }, 'again, as another process would')
  const { raw: _, ...disarmed } = recorded(signed)
  t.match(
    await counter.protocol.resolve({ ...record, dispatch: disarmed }),
    { kind: 'settled' },
    'the bytes are gone, the receipt is there',
  )
  t.strictSame(await charges(signed), [5_000n])
})

t.test('leaves a payment unsent whose process died before it recorded anything', async (t) => {
  const signed = await fresh()
  t.match(await counter.protocol.resolve(await left(signed, undefined)), {
    kind: 'failed',
    refusal: { code: 'settlement_failed' },
  })
  const elsewhere = { ...(await left(signed, recorded(signed))), network: 'eip155:42431' }
  t.match(await counter.protocol.resolve(elsewhere), { kind: 'unknown' }, 'another chain is not this one')
  t.strictSame(await charges(signed), [])
})

t.test('accepts a transaction that the buyer has broadcast, as one charge', async (t) => {
  const [early, late] = [await fresh(), await fresh()]
  await chain.ask('eth_sendRawTransaction', [early.raw])
  await mined(chain, early.raw)
  t.match(await settle(early.payment), { kind: 'settled' })
  node.onCall(async (method) => {
    if (method === 'eth_sendRawTransaction') await chain.ask(method, [late.raw])
  })
  t.match(await settle(late.payment), { kind: 'settled' }, '“already known” is success')
  t.strictSame([await charges(early), await charges(late)], [[5_000n], [5_000n]])
})

t.test('decides by validity when the node refuses because the fee was spent meanwhile', async (t) => {
  const signed = await fresh()
  node.onCall(async (method) => {
    if (method === 'eth_sendRawTransaction') await drain(signed.key, ALPHA_USD)
  })
  t.match(await settle(signed.payment), { kind: 'unknown' }, 'the chain’s time has not passed as ours')
  t.strictSame(await charges(signed), [])
})

t.test(
  'fails the payment when the money was spent under the broadcast and the transaction reverts',
  async (t) => {
    const signed = await fresh()
    node.onCall(async (method) => {
      if (method === 'eth_sendRawTransaction') await drain(signed.key, PATH_USD)
    })
    t.match(await settle(signed.payment), { kind: 'failed', refusal: { code: 'settlement_failed' } })
    const receipt = await chain.ask('eth_getTransactionReceipt', [keccak256(signed.raw)])
    t.match(receipt, { status: '0x0' })
    t.strictSame(await charges(signed), [])
  },
)

t.test('replaces a thread that dies during a question, and leaves the payment as it was', async (t) => {
  const authorization = await passkeyPayment(counter.challenge())
  const asked = counter.take(authorization).verify()
  await counter.validator.close()
  t.match(await asked, { kind: 'refused', refusal: { code: 'chain_unavailable' } })
  t.equal(await counter.refusal(authorization), undefined, 'a new thread answers')
  t.strictSame(counter.reports, [], 'an end that was ordered is no news')
})

t.test(
  'counts a transaction that comes into a block at the end of its time under three more blocks',
  async (t) => {
    const signed = await fresh()
    const ahead = 20
    await chain.ask('evm_increaseTime', [ahead])
    clock.ahead = ahead * 1_000
    goOn()
    const newest = async (): Promise<number> => Number(await chain.ask('eth_blockNumber', []))
    const settlement = await settle(signed.payment)
    const late = settlement.kind === 'settled' ? (settlement.receipt.block?.number ?? Infinity) : Infinity
    t.ok((await newest()) - late >= 3)
    t.strictSame(await charges(signed), [5_000n])
  },
)

t.test('reports a transaction as failed only when its time is over on the chain', async (t) => {
  const signed = await fresh()
  // The bytes are lost, as behind a node that has taken them and has them no more.
  const { raw: _, ...dispatch } = recorded(signed)
  const record = await left(signed, dispatch)
  t.match(await counter.protocol.resolve(record), { kind: 'unknown' }, 'our clock is not the chain’s')
  await chain.ask('evm_increaseTime', [60])
  await chain.ask('evm_mine', [])
  clock.ahead = 60_000
  t.match(await counter.protocol.resolve(record), { kind: 'failed', refusal: { code: 'settlement_failed' } })
  t.strictSame(await charges(signed), [])
})
