import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ANSWER, HOUR, openLedgerFixture, purchaseOf } from '../../../support/ledger-fixture.ts'
import { bookSale, openRefundPlaces, refund, refundOf } from '../../../support/refunds.ts'
import { openRpcProxy } from '../../../support/rpc-proxy.ts'
import { addressOf, randomKey } from '../../../support/payment.ts'

const places = await openRefundPlaces()
t.teardown(() => places.stop())
const { x402 } = places

for (const [protocol, place] of [
  ['x402', places.x402],
  ['mpp', places.mpp],
] as const) {
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
    const place = x402
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
  const place = x402
  const fixture = openLedgerFixture(t)
  const purchase = place.purchase()
  const { id } = await bookSale(fixture, purchase)
  const key = randomKey()
  await places.base.mint(addressOf(key), 5000n)
  const poor = { kind: 'refused', reason: /holds too little to pay for the gas/ }
  t.match(await refund(fixture, place, key, id), poor)
  t.equal(await refundOf(fixture), undefined, 'nothing was recorded as sent')
  // The price of gas rises between the look and the broadcast.
  const node = await openRpcProxy(place.rpcUrl)
  t.teardown(() => node.close())
  node.instead(async (method) => (method === 'eth_getBalance' ? { result: '0xde0b6b3a7640000' } : undefined))
  t.match(await refund(fixture, { ...place, rpcUrl: node.url }, key, id), poor)
  t.match(await refundOf(fixture), { kind: 'sending' })
  await places.base.setGas(addressOf(key), 10n ** 18n)
  t.match(await refund(fixture, place, key, id), { kind: 'sent' })
  t.equal(await place.balance(purchase.payer), 5000n)
})

t.test('refuses to refund what was left uncharged or may have been', async (t: Test) => {
  const fixture = openLedgerFixture(t)
  const { id } = await fixture.record(purchaseOf(), Date.now() - HOUR, async (lease) => {
    await lease.advance('fulfilled', { answer: ANSWER })
  })
  t.match(await refund(fixture, x402, randomKey(), id), { kind: 'refused', reason: 'nothing was charged' })
  const unknown = await fixture.record(purchaseOf(), Date.now() - HOUR, async (lease) => {
    await lease.advance('settling', { dispatch: { kind: 'payer', hash: randomKey() } })
    await lease.advance('unknown')
  })
  const reason = 'whether it was charged is not known yet'
  t.match(await refund(fixture, x402, randomKey(), unknown.id), { kind: 'refused', reason })
})
