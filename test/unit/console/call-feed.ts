import t from 'tap'
import type { AccessRecord } from '../../../src/engine/base/access-record.ts'
import { CallFeed, MOVED } from '../../../src/console/call-feed.ts'
import { makeRecord, nextRecord } from '../../support/payment-records.ts'

const NOW = 1_800_000_000_000
const OPERATION = makeRecord('x402:one').operation

function access(changes: Partial<AccessRecord>): AccessRecord {
  return {
    requestId: 'request 1',
    method: 'GET',
    place: '/paid/ping',
    status: 402,
    outcome: 'payment_required',
    detail: undefined,
    cause: undefined,
    price: undefined,
    cached: undefined,
    customer: undefined,
    sale: { operation: OPERATION, paid: false, probe: false },
    ms: 1,
    payment: undefined,
    ...changes,
  }
}

t.test('fills the row of a call in, from its 402 to the delivery', async (t) => {
  let now = NOW - 500
  const feed = new CallFeed(() => now)
  const told: string[] = []
  feed.listen(({ id, trouble }) => told.push(`${id} ${trouble}`))
  feed.observe(access({}))
  t.match(feed.calls(), [{ askedAt: NOW - 500, signedAt: undefined }])
  now = NOW
  const reserved = makeRecord('x402:one', NOW)
  const fulfilled = nextRecord(reserved, { state: 'fulfilled', updatedAt: NOW + 10 })
  feed.settle(reserved, fulfilled)
  t.match(feed.calls(), [{ payment: reserved.id, askedAt: NOW - 500, signedAt: NOW }])
  t.equal(feed.calls().length, 1, 'the 402 goes on as this call')
  t.ok(told.includes(`request 1 ${MOVED}`))
  const { network, payer, amount } = reserved
  const receipt = { transaction: '0x01', network, payer, amount }
  const settled = nextRecord(fulfilled, {
    state: 'settled',
    receipt,
    settledAt: NOW + 90,
    updatedAt: NOW + 91,
  })
  feed.settle(fulfilled, settled)
  t.match(feed.calls(), [{ settledAt: NOW + 90, deliveredAt: undefined }])
  feed.settle(settled, nextRecord(settled, { state: 'sent', updatedAt: NOW + 200 }))
  t.match(feed.calls(), [{ settledAt: NOW + 90, deliveredAt: NOW + 200, trouble: undefined }])
})

t.test('links a 402 with the payment that was signed for it, however long the work takes', async (t) => {
  let now = NOW
  const feed = new CallFeed(() => now)
  feed.observe(access({ requestId: 'before' }))
  const reserved = makeRecord('x402:one', NOW + 100)
  now = NOW + 60_000
  feed.observe(access({ requestId: 'after' }))
  feed.settle(reserved, nextRecord(reserved, { state: 'fulfilled', updatedAt: now }))
  t.match(feed.calls(), [{ payment: reserved.id, askedAt: NOW }, { id: 'after' }])
})

t.test('links no 402 where two may be meant, nor that of a probe', async (t) => {
  const feed = new CallFeed(() => NOW)
  feed.observe(access({ requestId: 'one' }))
  feed.observe(access({ requestId: 'two' }))
  feed.observe(access({ requestId: 'probe', sale: { operation: OPERATION, paid: false, probe: true } }))
  const reserved = makeRecord('x402:one', NOW)
  feed.settle(reserved, nextRecord(reserved, { state: 'fulfilled' }))
  t.match(feed.calls()[0], { askedAt: undefined, signedAt: NOW })
  t.equal(feed.calls().length, 4)
})

t.test('says why a payment was refused, and forgets the oldest calls', async (t) => {
  const feed = new CallFeed(() => NOW)
  const sale = { operation: OPERATION, paid: true, probe: false }
  feed.observe(access({ outcome: 'payer_denied', status: 403, sale }))
  t.match(feed.calls(), [{ trouble: 'payer_denied', signedAt: NOW }])
  for (let number = 0; number < 500; number += 1) feed.observe(access({ requestId: `more ${number}` }))
  t.ok(feed.calls().length <= 60)
  t.equal(feed.calls()[0]?.id, 'more 499')
  feed.observe(access({ requestId: 'free', sale: undefined, status: 200, outcome: 'ok' }))
  t.equal(feed.calls()[0]?.id, 'more 499')
})
