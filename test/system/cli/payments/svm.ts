import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { address } from '@solana/kit'
import { getTransferCheckedInstruction } from '@solana-program/token'
import t from 'tap'
import { encodeBase58 } from '../../../../src/engine/base/base58.ts'
import type { JsonObject } from '../../../../src/engine/base/json.ts'
import { systemEvery } from '../../../../src/engine/base/every.ts'
import { createSvmAccount, openSvmAccount } from '../../../../src/engine/base/svm-signature.ts'
import { openLmdbLedger } from '../../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { refundPayment } from '../../../../src/engine/refunds/refund.ts'
import type { RefundResult } from '../../../../src/engine/refunds/refund-result.ts'
import { findSvmNetwork } from '../../../../src/engine/base/networks.ts'
import type { PaymentRecord, Purchase } from '../../../../src/engine/ledger/payment-record.ts'
import { svmKey } from '../../../../src/engine/x402/exact-svm/svm-key.ts'
import { readSvm } from '../../../../src/engine/x402/exact-svm/svm-payload.ts'
import { at } from '../../../support/documents.ts'
import {
  HOUR,
  loseOutcome,
  openLedgerFixture,
  purchaseOf,
  sell,
  type LedgerFixture,
} from '../../../support/ledger-fixture.ts'
import { runLine, type Ran } from '../../../support/run-command.ts'
import { openRpcInterceptor, rpcResult } from '../../../support/rpc-proxy.ts'
import { sendSvmInstructions } from '../../../support/bent-svm.ts'
import { signSvmPayment, startSvmSale, svmFacilitator, svmTokenAccount } from '../../../support/svm.ts'

const network = findSvmNetwork('solana-devnet')
if (network === undefined) throw new Error('the table has no devnet')
const sale = await startSvmSale()
const { chain, buyer, seller } = sale
t.teardown(() => chain.stop())
await chain.giveTokens(buyer.address, 10_000_000n)

/** A payment that an official client has signed and an official facilitator has carried out, and how it is recorded. */
async function takePayment(): Promise<{ readonly purchase: Purchase; readonly transaction: string }> {
  const payment = await signSvmPayment(sale)
  const settled = await svmFacilitator(sale).settle(payment, sale.requirements)
  t.ok(settled.success, settled.errorReason ?? 'settled')
  return { purchase: purchaseFor(payment.payload), transaction: settled.transaction }
}

function purchaseFor({ transaction }: { readonly transaction?: unknown }): Purchase {
  const read = readSvm({ payload: { transaction: String(transaction) } })
  if (read.kind !== 'payload' || network === undefined) throw new Error('the client signs no payment')
  return purchaseOf({
    key: svmKey(network, read.payload),
    network: network.id,
    asset: network.token.address,
    payer: buyer.address,
    payee: seller,
    authorizedAmount: '10000',
    amount: '10000',
  })
}

const receiptFor = ({ network: id, payer, amount }: Purchase, transaction: string) => ({
  transaction,
  network: id,
  payer,
  amount,
})

async function book(fixture: LedgerFixture, changes: Partial<PaymentRecord> = {}): Promise<PaymentRecord> {
  const { purchase, transaction } = await takePayment()
  const entry = await fixture.record(purchase, Date.now() - HOUR, sell(receiptFor(purchase, transaction)))
  if (Object.keys(changes).length > 0) await fixture.amend(entry, changes)
  return entry
}

const RPC = { RPC_URL_SOLANA_DEVNET: chain.rpcUrl }

function reconcile(
  { dataDir }: LedgerFixture,
  variables: Readonly<Record<string, string>> = RPC,
): Promise<Ran> {
  const line = ['payments', 'reconcile', '--json', '--data-dir', dataDir]
  return runLine(line, { variables: { PAY_TO: seller, ...variables } })
}

interface Report {
  readonly networks: readonly (JsonObject & { readonly differences: readonly JsonObject[] })[]
}

function parsed({ out }: Ran): Report {
  return JSON.parse(out) as Report
}

async function held(owner: string): Promise<bigint> {
  const found = await chain.call('getTokenAccountBalance', [await svmTokenAccount(owner)])
  const amount = at(found, 'value', 'amount')
  return BigInt(typeof amount === 'string' ? amount : -1)
}

t.test('reconcile agrees with what the chain shows, and counts other transfers apart', async (t) => {
  const fixture = openLedgerFixture(t)
  await book(fixture)
  await book(fixture)
  const ran = await reconcile(fixture)
  const [first] = parsed(ran).networks
  t.match(first, {
    network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
    status: 'checked',
    payees: [seller],
    blocks: null,
    agreed: 2,
    differences: [],
  })
  t.equal(ran.code, 0, ran.err)
  const source = address(await svmTokenAccount(buyer.address))
  const destination = address(await svmTokenAccount(seller))
  await chain.setLamports(buyer.address, 1_000_000_000n)
  const transfer = {
    source,
    destination,
    mint: address(chain.mint),
    authority: buyer,
    amount: 70n,
    decimals: 6,
  }
  await sendSvmInstructions(chain, buyer, [getTransferCheckedInstruction(transfer)])
  t.match(parsed(await reconcile(fixture)).networks[0], {
    agreed: 2,
    other_transfers: { count: 1, amount: '0.000070' },
    differences: [],
  })
})

t.test('reconcile names what is missing on the chain, missing in the ledger, and different', async (t) => {
  const fixture = openLedgerFixture(t)
  const unknown = await takePayment()
  const wrong = await book(fixture, { amount: '9000' })
  const { purchase, transaction } = await takePayment()
  const unbooked = await fixture.record(purchase, Date.now() - HOUR, async () => undefined)
  const never = purchaseFor((await signSvmPayment(sale)).payload)
  const missing = await fixture.record(
    { ...never, validBefore: Date.now() - HOUR },
    Date.now() - HOUR / 2,
    sell(receiptFor(never, encodeBase58(randomBytes(64)))),
  )
  const lost = purchaseFor((await signSvmPayment(sale)).payload)
  const open = await fixture.record(
    lost,
    Date.now() - HOUR,
    loseOutcome('unknown', encodeBase58(randomBytes(64))),
  )
  const ran = await reconcile(fixture)
  t.equal(ran.code, 2, ran.err)
  const found = parsed(ran).networks.flatMap(({ differences }) => differences)
  const of = (kind: string, payment: string | undefined) =>
    found.find((each) => each['kind'] === kind && at(each, 'ledger', 'payment') === payment)
  t.ok(
    found.some(
      (each) => each['kind'] === 'not_in_ledger' && at(each, 'chain', 'transaction') === unknown.transaction,
    ),
  )
  t.match(of('differs', wrong.id), {
    fields: ['amount'],
    chain: { amount: '0.010000', payer: buyer.address },
  })
  t.match(of('not_booked', unbooked.id), { chain: { transaction } })
  t.match(of('missing_on_chain', missing.id), { chain: { shows: 'expired' } })
  t.match(of('unresolved', open.id), { chain: { shows: 'open' } })
})

t.test('reconcile checks nothing without a node, and nothing by a node of another network', async (t) => {
  const fixture = openLedgerFixture(t)
  await book(fixture)
  t.match(await reconcile(fixture, {}), { code: 1, out: /RPC_URL_SOLANA_DEVNET is not set/ })
  const other = await openRpcInterceptor(chain.rpcUrl, ({ method }) =>
    method === 'getGenesisHash' ? rpcResult(encodeBase58(randomBytes(32))) : undefined,
  )
  t.teardown(() => other.close())
  t.match(await reconcile(fixture, { RPC_URL_SOLANA_DEVNET: other.url }), {
    code: 1,
    out: /its node is on another network/,
  })
})

/** The key pair of an account with tokens and SOL. */
async function refundAccount(
  tokens = 1_000_000n,
): Promise<{ readonly address: string; readonly key: string }> {
  const { address: own, pair } = createSvmAccount(randomBytes(32))
  await chain.giveTokens(own, tokens)
  await chain.setLamports(own, 1_000_000_000n)
  return { address: own, key: encodeBase58(pair) }
}

function refund({ dataDir }: LedgerFixture, words: readonly string[], key: string): Promise<Ran> {
  const line = ['payments', 'refund', '--data-dir', dataDir, ...words]
  return runLine(line, { variables: { PAY_TO: seller, SOLANA_REFUND_PRIVATE_KEY: key, ...RPC } })
}

/** How far the clock of the refunds below runs ahead, in milliseconds: it never goes back, or leases would seem held. */
let waited = 0

/** As the command does, on a clock that does not wait. */
async function refundBy(
  { dataDir }: LedgerFixture,
  key: string,
  id: string,
  url = chain.rpcUrl,
): Promise<RefundResult> {
  const ledger = await openLmdbLedger(join(dataDir, 'ledger'))
  try {
    const entry = await ledger.find(id)
    if (entry === undefined || network === undefined) throw new Error('it is booked')
    const settings = {
      ledger,
      owner: `command ${Math.random()}`,
      rpcUrls: {},
      svmRpcUrls: { [network.id]: url },
      keys: { evm: undefined, svm: openSvmAccount(key) },
      caller: fetch,
      now: () => Date.now() + waited,
      sleep: async (ms: number) => {
        waited += ms
      },
      every: systemEvery,
    }
    return await refundPayment(settings, entry)
  } finally {
    await ledger.close()
  }
}

/** A node that says it has sent a transaction, and has not. */
async function forgetful() {
  const node = await openRpcInterceptor(chain.rpcUrl, ({ method }) =>
    method === 'sendTransaction' ? rpcResult(encodeBase58(randomBytes(64))) : undefined,
  )
  t.teardown(() => node.close())
  return node
}

t.test('a refund is sent to the payer once, and reconcile finds it', async (t) => {
  const fixture = openLedgerFixture(t)
  const { id } = await book(fixture)
  const { key } = await refundAccount()
  const before = await held(buyer.address)
  const ran = await refund(fixture, [id], key)
  t.match(ran, { code: 0, out: new RegExp(`^${id}: sent 0.010000 USDC to ${buyer.address} in `) })
  t.notMatch(ran.out + ran.err, key, 'the key is not printed')
  t.equal(await held(buyer.address), before + 10_000n)
  t.match(await refund(fixture, [id], key), { code: 1, out: /not refunded: it was refunded before, in / })
  t.equal(await held(buyer.address), before + 10_000n)
  t.match(parsed(await reconcile(fixture)).networks[0], {
    refunds: { sent: { count: 1, amount: '0.010000' }, due: { count: 0 } },
    differences: [],
  })
})

t.test('another key goes on with a recorded refund: the same bytes, one refund', async (t) => {
  const fixture = openLedgerFixture(t)
  const { id } = await book(fixture)
  const [first, second] = [await refundAccount(), await refundAccount()]
  const before = await held(buyer.address)
  const node = await forgetful()
  t.match(await refundBy(fixture, first.key, id, node.url), { kind: 'unconfirmed' })
  t.equal(await held(buyer.address), before)
  t.match((await fixture.all())[0]?.refund, { kind: 'sending', sender: first.address, validBefore: Number })
  t.match(await refundBy(fixture, second.key, id), { kind: 'sent' })
  t.match((await fixture.all())[0]?.refund, { kind: 'sent', sender: first.address })
  t.equal(await held(buyer.address), before + 10_000n)
})

t.test('another key sends its own refund once no block can contain the recorded one', async (t) => {
  const fixture = openLedgerFixture(t)
  const { id } = await book(fixture)
  const [first, second] = [await refundAccount(), await refundAccount()]
  const before = await held(buyer.address)
  const node = await forgetful()
  t.match(await refundBy(fixture, first.key, id, node.url), { kind: 'unconfirmed' })
  const recorded = (await fixture.all())[0]?.refund
  const raw = recorded?.kind === 'sending' ? (recorded.raw ?? '') : ''
  // Its height is over, and not final.
  await chain.advance(151)
  t.match(await refundBy(fixture, second.key, id, node.url), { kind: 'unconfirmed' })
  t.match((await fixture.all())[0]?.refund, { sender: first.address })
  await chain.advance(40)
  t.match(await refundBy(fixture, second.key, id), { kind: 'sent' })
  t.match((await fixture.all())[0]?.refund, { kind: 'sent', sender: second.address })
  const [, bytes = ''] = raw.split(' ')
  await t.rejects(chain.call('sendTransaction', [bytes, { encoding: 'base64' }]), /Blockhash not found/)
  t.equal(await held(buyer.address), before + 10_000n)
})

t.test('a refund that the ledger has forgotten is found on the chain and not sent again', async (t) => {
  const fixture = openLedgerFixture(t)
  const { id } = await book(fixture)
  const [first, second] = [await refundAccount(), await refundAccount()]
  const sent = await refundBy(fixture, first.key, id)
  const before = await held(buyer.address)
  const [entry] = await fixture.all()
  if (entry === undefined) throw new Error('it is booked')
  await fixture.amend(entry, { refund: { kind: 'due', reason: 'not_found' } })
  t.strictSame(await refundBy(fixture, second.key, id), sent)
  t.match((await fixture.all())[0]?.refund, { kind: 'sent', sender: first.address })
  t.equal(await held(buyer.address), before)
})

t.test('refuses to refund without a key, without tokens, and without SOL', async (t) => {
  const fixture = openLedgerFixture(t)
  const { id } = await book(fixture)
  t.match(await refund(fixture, [id], ''), { code: 64, err: /on Solana, it is SOLANA_REFUND_PRIVATE_KEY/ })
  t.match(await refund(fixture, [id], 'a key'), { code: 78, err: /SOLANA_REFUND_PRIVATE_KEY must be/ })
  const poor = await refundAccount(9_999n)
  t.match(await refund(fixture, [id], poor.key), { code: 1, out: /holds too little of the token/ })
  await chain.giveTokens(poor.address, 10_000n)
  await chain.setLamports(poor.address, 0n)
  t.match(await refund(fixture, [id], poor.key), { code: 1, out: /holds too little SOL to pay the fee/ })
  t.match((await fixture.all())[0]?.refund, undefined)
})
