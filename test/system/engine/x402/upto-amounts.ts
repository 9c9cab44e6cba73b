import t from 'tap'
import type { JsonObject } from '../../../../src/engine/base/json.ts'
import { CANNOT_LOOK } from '../../../../src/engine/chains/evm/finality.ts'
import type { PaymentRecord } from '../../../../src/engine/ledger/payment-record.ts'
import type { SettledPayment } from '../../../../src/engine/payment/payment.ts'
import { requirementsFor } from '../../../../src/engine/x402/requirements.ts'
import type { Scheme } from '../../../../src/engine/x402/scheme.ts'
import { SharedAccounts } from '../../../../src/engine/x402/exact-evm/shared-accounts.ts'
import type { SettleableNetwork } from '../../../../src/engine/x402/exact-evm/exact.ts'
import { permitNetworks, uptoScheme } from '../../../../src/engine/x402/upto-evm/upto.ts'
import { readPayload } from '../../../../src/engine/x402/payload.ts'
import { onchainClient, startBase } from '../../../support/base-chain.ts'
import { addressOf, randomKey, type Challenge, type Hex } from '../../../support/payment.ts'
import { makeRecord } from '../../../support/payment-records.ts'
import { askNode } from '../../../support/rpc-proxy.ts'
import {
  BASE,
  newRecorder,
  openChainControl,
  openSettlementContext,
  recorded,
  type QuickSettlementContext,
} from '../../../support/settlement-context.ts'
import { openTemporaryLedger } from '../../../support/temporary-ledger.ts'
import { PAY_TO } from '../../../support/shipped-catalog.ts'
import { PERMIT2, signPermit, type PermitFaults } from '../../../support/upto.ts'
import { until } from '../../../support/until.ts'

const CEILING = 10_000n
const MUCH = 2n ** 255n

const chain = await startBase()
t.teardown(() => chain.stop())
const ledger = await openTemporaryLedger(t)
const control = openChainControl(chain)
const onchain = onchainClient(chain)
t.afterEach(() => control.automine('on'))

/** The scheme as the application makes it, with the signers of a context. */
function schemeOn(context: QuickSettlementContext): Scheme {
  const accounts = context.signerKeys.map((key) => toSpelling(addressOf(key)))
  const network: SettleableNetwork = {
    network: BASE,
    payTo: PAY_TO,
    timeoutSeconds: 60,
    testnet: false,
    settler: () => Promise.reject(new Error('only upto is settled here')),
    own: {
      accounts,
      shared: new SharedAccounts(BASE.id, accounts, { ledger, owner: 'one', report: () => undefined }),
      now: ledger.now,
      context: async () => context,
    },
    theirs: undefined,
    lookAtBlocks: async () => CANNOT_LOOK,
  }
  const networks = permitNetworks([network])
  return uptoScheme({ offered: networks, reachable: networks, prices: ['fixed', 'metered'] })
}

function toSpelling(address: string): Hex {
  return `0x${address.slice(2)}`
}

function challengeOf({ offers }: Scheme): Challenge {
  const accepts = offers.map((offer) => requirementsFor(offer, CEILING.toString(), 'after'))
  const resource = { url: 'https://api.example.com/paid/work' }
  const challenge: object = {
    x402Version: 2,
    error: 'payment_required',
    resource,
    accepts,
    extensions: {},
  }
  return challenge as unknown as Challenge
}

interface Signed {
  readonly key: Hex
  readonly payment: Payment
}

type Payment = Pick<SettledPayment, 'key' | 'simulate' | 'release' | 'settle' | 'authorizedAmount'>

/** A permit of the ceiling by a new wallet, which has approved Permit2. */
async function permit(scheme: Scheme, faults: PermitFaults = {}): Promise<Signed> {
  const key = randomKey()
  await chain.mint(addressOf(key), CEILING)
  await onchain.approvePermit2(addressOf(key), MUCH)
  return { key, payment: await paymentBy(scheme, key, faults) }
}

async function paymentBy(scheme: Scheme, key: Hex, faults: PermitFaults = {}): Promise<Payment> {
  const { payload } = await signPermit(challengeOf(scheme), key, faults)
  const read = readPayload(payload)
  if (read.kind !== 'payload') throw new Error(read.detail)
  const decoded = scheme.decode(read.payload)
  if (decoded.kind !== 'payment' || decoded.payment.settle === undefined)
    throw new Error(`decoded as ${decoded.kind}`)
  return decoded.payment
}

const received = (): Promise<readonly bigint[]> => onchain.received(PAY_TO)

/** The record of a payment, as a process that has died leaves it. */
function recordOf({ key: text, payment }: Signed, changes: Partial<PaymentRecord>): PaymentRecord {
  const record = makeRecord(payment.key, Date.now())
  return {
    ...record,
    scheme: 'upto',
    network: BASE.id,
    asset: BASE.token.address,
    payer: addressOf(text),
    payee: PAY_TO,
    validBefore: Date.now() + 60_000,
    ...changes,
  }
}

t.test('moves on chain exactly the amounts that are settled, each at most what was signed', async (t) => {
  const context = await openSettlementContext(chain, { ledger, keys: [randomKey(), randomKey()] })
  const scheme = schemeOn(context)
  const before = (await received()).length
  const amounts = [
    1n,
    2n,
    9_999n,
    CEILING,
    ...Array.from({ length: 16 }, () => 1n + BigInt(Math.floor(Math.random() * 9_999))),
  ]
  const sales: (readonly [bigint, Payment])[] = []
  for (const amount of amounts) sales.push([amount, (await permit(scheme)).payment])
  const settled = await Promise.all(
    sales.map(async ([amount, payment]) => {
      if ((await payment.simulate()) !== undefined) throw new Error('refused')
      const settlement = await payment.settle(amount, newRecorder())
      payment.release()
      return settlement.kind === 'settled' ? settlement.receipt.amount : settlement.kind
    }),
  )
  t.strictSame(settled, amounts.map(String))
  const sorted = (list: readonly bigint[]): string[] => list.map(String).toSorted()
  t.strictSame(sorted((await received()).slice(before)), sorted(amounts))
})

t.test('moves nothing when asked for more than was signed', async (t) => {
  const scheme = schemeOn(await openSettlementContext(chain, { ledger }))
  const { payment } = await permit(scheme)
  const [before, journal] = [(await received()).length, newRecorder()]
  t.match(await payment.settle(CEILING + 1n, journal), { kind: 'failed' })
  t.strictSame(journal.dispatches, [], 'nothing was sent')
  t.equal((await received()).length, before)
})

t.test('lets the account settle that the permit names', async (t) => {
  const context = await openSettlementContext(chain, {
    ledger,
    keys: [randomKey(), randomKey(), randomKey()],
  })
  const scheme = schemeOn(context)
  for (const key of context.signerKeys) {
    const { payment } = await permit(scheme, { facilitator: addressOf(key) })
    const journal = newRecorder()
    t.match(await payment.settle(5n, journal), { kind: 'settled' })
    t.equal(recorded(journal).signer, addressOf(key))
  }
})

t.test('finds out what became of a payment whose process has died', async (t) => {
  const context = await openSettlementContext(chain, { ledger })
  const scheme = schemeOn(context)

  await t.test('settled, by the transaction that was recorded', async (t) => {
    const signed = await permit(scheme)
    const journal = newRecorder()
    await signed.payment.settle(77n, journal)
    const record = recordOf(signed, { amount: '77', dispatch: recorded(journal), state: 'settling' })
    t.match(await scheme.resolve(record), { kind: 'settled', receipt: { amount: '77' } })
  })

  await t.test('settled, by another transaction than the one that was recorded', async (t) => {
    const signed = await permit(scheme)
    const journal = newRecorder()
    await signed.payment.settle(78n, journal)
    const { hash } = recorded(journal)
    const dispatch = { ...recorded(journal), hash: `0x${'0'.repeat(64)}` }
    const record = recordOf(signed, { amount: '78', dispatch, state: 'settling' })
    t.match(await scheme.resolve(record), { kind: 'settled', receipt: { amount: '78', transaction: hash } })
  })

  await t.test('failed, when nothing was sent', async (t) => {
    t.match(await scheme.resolve(recordOf(await permit(scheme), { amount: '5' })), { kind: 'failed' })
  })

  await t.test('failed, when its payer has canceled the nonce', async (t) => {
    const nonce: Hex = `0x${'7'.repeat(64)}`
    const signed = await permit(scheme, { nonce })
    await onchain.cancelPermit(addressOf(signed.key), BigInt(nonce))
    t.match(await scheme.resolve(recordOf(signed, { amount: '5' })), { kind: 'failed' })
  })

  await t.test('not settled by another payment of the same payer and amount', async (t) => {
    const signed = await permit(scheme)
    const other = await paymentBy(scheme, signed.key)
    t.match(await other.settle(79n, newRecorder()), { kind: 'settled' })
    t.match(await scheme.resolve(recordOf(signed, { amount: '79' })), { kind: 'failed' })
  })
})

t.test('carries out again what a reorganization has undone', async (t) => {
  const context = await openSettlementContext(chain, { ledger })
  const scheme = schemeOn(context)

  await t.test('by the same transaction, while it can be mined', async (t) => {
    const signed = await permit(scheme)
    const journal = newRecorder()
    await signed.payment.settle(80n, journal)
    const before = (await received()).length
    await control.reorg(1)
    t.equal((await received()).length, before - 1)
    const record = recordOf(signed, { amount: '80', dispatch: recorded(journal), state: 'unknown' })
    t.match(await scheme.resolve(record), { kind: 'settled', receipt: { amount: '80' } })
    t.equal((await received()).length, before)
  })

  await t.test('by another one, when its account nonce was used meanwhile', async (t) => {
    const signed = await permit(scheme)
    const journal = newRecorder()
    await signed.payment.settle(82n, journal)
    const before = (await received()).length
    await control.reorg(1)
    const dispatch = recorded(journal)
    await sendAs(dispatch.signer, { to: dispatch.signer })
    const record = recordOf(signed, { amount: '82', dispatch, state: 'unknown' })
    t.match(await scheme.resolve(record), { kind: 'failed' })
    t.match(await scheme.resettle?.(record, newRecorder()), { kind: 'settled', receipt: { amount: '82' } })
    t.equal((await received()).length, before)
  })

  await t.test('by nobody else than the account that the permit names', async (t) => {
    const signed = await permit(scheme)
    const journal = newRecorder()
    await signed.payment.settle(83n, journal)
    await control.reorg(1)
    const record = recordOf(signed, { amount: '83', dispatch: recorded(journal), state: 'unknown' })
    const others = schemeOn(await openSettlementContext(chain, { ledger, owner: 'two' }))
    t.match(await others.resettle?.(record, newRecorder()), { kind: 'failed' })
  })
})

t.test('counts the gas of a transaction against a payer who has withdrawn the approval', async (t) => {
  const context = await openSettlementContext(chain, { ledger })
  const scheme = schemeOn(context)
  const signed = await permit(scheme)
  const payer = addressOf(signed.key)
  const before = (await received()).length
  await control.automine('off')
  const settling = signed.payment.settle(81n, newRecorder())
  await until('the node has the transaction', async () => (await pending()) === 1)
  await revoke(payer)
  await until('the node has both', async () => (await pending()) === 2)
  await control.mine()
  t.match(await settling, { kind: 'failed' })
  t.equal((await received()).length, before)
  t.equal(context.losses.totals.reverts, 1)
})

/** Withdraws the approval of Permit2. */
async function revoke(from: string): Promise<void> {
  const word = (digits: string): string => digits.padStart(64, '0')
  await sendAs(from, { to: BASE.token.address, data: `0x095ea7b3${word(PERMIT2.slice(2))}${word('0')}` })
}

/** Sends a transaction of any account, at a higher fee than ours. */
async function sendAs(from: string, call: JsonObject): Promise<void> {
  await askNode(chain.rpcUrl, 'anvil_impersonateAccount', [from])
  await chain.setGas(toSpelling(from), 10n ** 20n)
  const fees = { maxFeePerGas: '0x2540be400', maxPriorityFeePerGas: '0x59682f00', gas: '0xf4240' }
  await askNode(chain.rpcUrl, 'eth_sendTransaction', [{ from, ...call, ...fees }])
}

async function pending(): Promise<number> {
  const { result } = await askNode(chain.rpcUrl, 'txpool_status', [])
  return Number((result as { readonly pending: string }).pending)
}
