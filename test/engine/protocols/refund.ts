import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openLmdbLedger } from '../../../src/engine/ledger/lmdb.ts'
import type { PaymentRecord, Purchase, Refund } from '../../../src/engine/ledger/payment-record.ts'
import { refundPayment, type RefundResult } from '../../../src/engine/protocols/refund.ts'
import { startBase } from '../../support/base-chain.ts'
import {
  ANSWER,
  HOUR,
  openLedgerFixture,
  purchaseOf,
  receiptOf,
  sell,
  type LedgerFixture,
} from '../../support/ledger-fixture.ts'
import { openRpcProxy } from '../../support/rpc-proxy.ts'
import { addressOf, randomKey, type Hex } from '../../support/payment.ts'
import { PATH_USD, startTempo, TEMPO_CHAIN } from '../../support/tempo.ts'

t.setTimeout(120_000)

const [base, tempo] = await Promise.all([startBase(), startTempo()])
t.teardown(async () => {
  await Promise.all([base.stop(), tempo.stop()])
})

/** A chain on which payments were taken, as far as refunds see it. */
interface Place {
  readonly chainId: number
  readonly rpcUrl: string
  readonly purchase: () => Purchase
  /** The key of an account with tokens and gas. */
  readonly account: () => Promise<Hex>
  /** What an address holds that was empty before, in atomic units. */
  readonly balance: (address: string) => Promise<bigint>
}

const places: Readonly<Record<string, Place>> = {
  x402: {
    chainId: 8453,
    rpcUrl: base.rpcUrl,
    purchase: () => purchaseOf(),
    account: async () => {
      const key = randomKey()
      await base.mint(addressOf(key), 1_000_000n)
      await base.setGas(addressOf(key), 10n ** 18n)
      return key
    },
    balance: (address) => base.balance(address as Hex),
  },
  mpp: {
    chainId: TEMPO_CHAIN,
    rpcUrl: tempo.rpcUrl,
    purchase: () => {
      const network = `eip155:${TEMPO_CHAIN}`
      return purchaseOf({ key: `mpp:${network}:${randomKey()}`, protocol: 'mpp', network, asset: PATH_USD })
    },
    account: () => tempo.wallet(),
    balance: async (address) => (await tempo.received(address)).reduce((sum, each) => sum + each, 0n),
  },
}

async function refund(
  { dataDir }: LedgerFixture,
  { chainId, rpcUrl }: Pick<Place, 'chainId' | 'rpcUrl'>,
  key: Hex,
  id: string,
): Promise<RefundResult> {
  const ledger = await openLmdbLedger(join(dataDir, 'ledger'))
  // A minute of waiting takes six seconds here: the chain has a block each second.
  let waited = 0
  const now = (): number => Date.now() + waited
  const sleep = async (ms: number): Promise<void> => {
    waited += ms
    await new Promise((resolve) => setTimeout(resolve, ms / 10))
  }
  try {
    const entry = await ledger.find(id)
    if (entry === undefined) throw new Error(`there is no payment ${id}`)
    const rpcUrls = { [chainId]: rpcUrl }
    return await refundPayment({ ledger, owner: 'a command', rpcUrls, caller: fetch, key, now, sleep }, entry)
  } finally {
    await ledger.close()
  }
}

async function refundOf(fixture: LedgerFixture): Promise<Refund | undefined> {
  return (await fixture.all())[0]?.refund
}

function bookSale(fixture: LedgerFixture, purchase: Purchase): Promise<PaymentRecord> {
  return fixture.record(purchase, Date.now() - HOUR, sell(receiptOf(purchase)))
}

for (const [protocol, place] of Object.entries(places)) {
  t.test(
    `${protocol}: sends the amount of a payment back once, also when the ledger has forgotten it`,
    async (t) => {
      const fixture = openLedgerFixture(t)
      const purchase = place.purchase()
      const { id } = await bookSale(fixture, purchase)
      const key = await place.account()
      const first = await refund(fixture, place, key, id)
      t.match(first, { kind: 'sent', hash: /^0x[0-9a-f]{64}$/ })
      t.equal(await place.balance(purchase.payer), 5000n)
      t.match(await refundOf(fixture), first, 'it is recorded')
      t.match(await refund(fixture, place, key, id), { kind: 'refused', reason: /was refunded before/ })
      // A ledger restored from a backup of before the refund.
      await rm(join(fixture.dataDir, 'ledger'), { recursive: true })
      await bookSale(fixture, purchase)
      t.match(await refund(fixture, place, key, id), first, 'the chain knows it')
      t.equal(await place.balance(purchase.payer), 5000n)
    },
  )

  t.test(`${protocol}: goes on with a refund whose broadcast was lost, and sends it once`, async (t) => {
    const fixture = openLedgerFixture(t)
    const purchase = place.purchase()
    const { id } = await bookSale(fixture, purchase)
    const key = await place.account()
    const node = await openRpcProxy(place.rpcUrl)
    t.teardown(() => node.close())
    node.instead(async (method) => (method === 'eth_sendRawTransaction' ? { result: '0x00' } : undefined))
    const lost = await refund(fixture, { ...place, rpcUrl: node.url }, key, id)
    t.match(lost, { kind: 'unconfirmed' })
    t.equal(await place.balance(purchase.payer), 0n)
    t.match(await refundOf(fixture), { kind: 'sending', hash: lost.kind === 'unconfirmed' ? lost.hash : '' })
    t.match(await refund(fixture, place, key, id), { ...lost, kind: 'sent' }, 'the same transaction')
    t.equal(await place.balance(purchase.payer), 5000n)
  })

  t.test(`${protocol}: finds a refund that was mined while the node was away`, async (t) => {
    const fixture = openLedgerFixture(t)
    const purchase = place.purchase()
    const { id } = await bookSale(fixture, purchase)
    const key = await place.account()
    const node = await openRpcProxy(place.rpcUrl)
    t.teardown(() => node.close())
    node.set('broken_after_send')
    const lost = await refund(fixture, { ...place, rpcUrl: node.url }, key, id)
    t.match(lost, { kind: 'unconfirmed' })
    t.match(await refund(fixture, place, key, id), { ...lost, kind: 'sent' })
    t.equal(await place.balance(purchase.payer), 5000n)
  })

  t.test(
    `${protocol}: sends nothing from an account without money, and nothing while the node is away`,
    async (t) => {
      const fixture = openLedgerFixture(t)
      const purchase = place.purchase()
      const { id } = await bookSale(fixture, purchase)
      t.match(await refund(fixture, place, randomKey(), id), {
        kind: 'refused',
        reason: /holds too little of the token/,
      })
      t.equal(await refundOf(fixture), undefined)
      const node = await openRpcProxy(place.rpcUrl)
      t.teardown(() => node.close())
      node.set('down')
      const key = await place.account()
      await t.rejects(refund(fixture, { ...place, rpcUrl: node.url }, key, id), {
        name: 'RpcUnavailableError',
      })
      t.equal(await refundOf(fixture), undefined)
      t.equal(await place.balance(purchase.payer), 0n)
    },
  )
}

t.test(
  'x402: has the token refuse a second refund when neither the ledger nor the logs know the first',
  async (t) => {
    const { x402: place } = places
    if (place === undefined) throw new Error('x402 is a place')
    const fixture = openLedgerFixture(t)
    const purchase = place.purchase()
    const { id } = await bookSale(fixture, purchase)
    const key = await place.account()
    t.match(await refund(fixture, place, key, id), { kind: 'sent' })
    await rm(join(fixture.dataDir, 'ledger'), { recursive: true })
    await bookSale(fixture, purchase)
    const node = await openRpcProxy(place.rpcUrl)
    t.teardown(() => node.close())
    node.instead(async (method) => (method === 'eth_getLogs' ? { result: [] } : undefined))
    const second = await refund(fixture, { ...place, rpcUrl: node.url }, key, id)
    t.match(second, { kind: 'refused', reason: /the token refuses it/ })
    // Sent without any check, it reverts.
    node.instead(async (method) => {
      if (method === 'eth_getLogs') return { result: [] }
      return method === 'eth_estimateGas' ? { result: '0x30d40' } : undefined
    })
    t.match(await refund(fixture, { ...place, rpcUrl: node.url }, key, id), {
      kind: 'refused',
      reason: /was reverted/,
    })
    t.equal(await place.balance(purchase.payer), 5000n)
  },
)

t.test('x402: says that the account has no gas, and goes on once it has', async (t) => {
  const { x402: place } = places
  if (place === undefined) throw new Error('x402 is a place')
  const fixture = openLedgerFixture(t)
  const purchase = place.purchase()
  const { id } = await bookSale(fixture, purchase)
  const key = randomKey()
  await base.mint(addressOf(key), 5000n)
  const poor = { kind: 'refused', reason: /holds too little to pay for the gas/ }
  t.match(await refund(fixture, place, key, id), poor)
  t.equal(await refundOf(fixture), undefined, 'nothing was recorded as sent')
  // The price of gas rises between the look and the broadcast.
  const node = await openRpcProxy(place.rpcUrl)
  t.teardown(() => node.close())
  node.instead(async (method) => (method === 'eth_getBalance' ? { result: '0xde0b6b3a7640000' } : undefined))
  t.match(await refund(fixture, { ...place, rpcUrl: node.url }, key, id), poor)
  t.match(await refundOf(fixture), { kind: 'sending' })
  await base.setGas(addressOf(key), 10n ** 18n)
  t.match(await refund(fixture, place, key, id), { kind: 'sent' })
  t.equal(await place.balance(purchase.payer), 5000n)
})

t.test('refuses to refund what was left uncharged or may have been', async (t: Test) => {
  const fixture = openLedgerFixture(t)
  const { id } = await fixture.record(purchaseOf(), Date.now() - HOUR, async (lease) => {
    await lease.advance('fulfilled', { answer: ANSWER })
  })
  const { x402 } = places
  if (x402 === undefined) throw new Error('x402 is a place')
  t.match(await refund(fixture, x402, randomKey(), id), { kind: 'refused', reason: 'nothing was charged' })
  const unknown = await fixture.record(purchaseOf(), Date.now() - HOUR, async (lease) => {
    await lease.advance('settling', { dispatch: { kind: 'payer', hash: randomKey() } })
    await lease.advance('unknown')
  })
  const reason = 'whether it was charged is not known yet'
  t.match(await refund(fixture, x402, randomKey(), unknown.id), { kind: 'refused', reason })
})
