import t from 'tap'
import { Failure } from '../../../../src/engine/base/errors.ts'
import { markReceived } from '../../../../src/engine/purchase/delivery-marks.ts'
import type { HandlerCall } from '../../../../src/engine/purchase/request.ts'
import { isThrottled } from '../../../../src/engine/purchase/payer-throttle.ts'
import {
  AWAY,
  DEEP,
  FAILED,
  leave,
  NOW,
  openShop,
  POOR,
  RECEIPT,
  SETTLED,
  STORED,
  UNKNOWN,
} from '../../../support/scripted-protocol.ts'

const BROKEN = new Failure('source_error', 'the source is broken')

t.test('starts the work of an upfront route after settlement', async (t) => {
  const shop = await openShop(t)
  let charged = 0
  const outcome = await shop.buy({
    route: DEEP,
    run: async () => {
      charged = shop.bank.charges
      return STORED
    },
  })
  t.match(outcome, { kind: 'answered', receipt: RECEIPT, answer: STORED })
  t.equal(charged, 1, 'before the work')
  t.strictSame(shop.history, ['reserved', 'settling', 'settled', 'fulfilled'])
  if (outcome.kind === 'answered') await markReceived(shop.deps, outcome.record)
  t.match(await shop.stored(), { state: 'sent', settle: 'upfront' })
})

t.test('runs failed paid work again at no charge', async (t) => {
  const shop = await openShop(t)
  const failing = { route: DEEP, run: () => Promise.reject(BROKEN) }
  t.match(await shop.buy(failing), { kind: 'paidUnfulfilled', receipt: RECEIPT, fault: BROKEN })
  t.match(await shop.buy(failing), { kind: 'paidUnfulfilled' }, 'again')
  shop.clock.now += 3_600_000
  t.match(await shop.buy({ route: DEEP }), { kind: 'answered' }, 'long after the payment has expired')
  t.match(await shop.buy({ route: DEEP }), { kind: 'answered', answer: { value: { run: 1 } } })
  t.equal(shop.bank.charges, 1)
  t.equal(shop.runs(), 1)
})

t.test('owes the money back when paid work fails for good, and stops running it', async (t) => {
  const shop = await openShop(t)
  const gone = new Failure('not_found', 'there is no such thing')
  const failing = { route: DEEP, run: () => Promise.reject(gone) }
  const refund = { kind: 'due', reason: 'not_found' }
  t.match(await shop.buy(failing), { kind: 'paidUnfulfilled', record: { refund }, receipt: RECEIPT })
  t.match(await shop.buy({ route: DEEP }), { kind: 'replayRejected', record: { refund } })
  t.match(await shop.stored(), { state: 'settled', refund })
  t.equal(shop.runs(), 0)
  t.equal(shop.bank.charges, 1)
  const next = { route: DEEP, payment: shop.payment({ key: 'test:next' }) }
  t.match(await shop.buy(next), { kind: 'answered', answer: { value: { run: 1 } } }, 'a new payment buys')
  t.equal(shop.bank.charges, 2)
})

t.test('checks upfront work before it charges', async (t) => {
  const shop = await openShop(t)
  const doomed = { route: DEEP, check: () => Promise.reject(BROKEN) }
  t.match(await shop.buy(doomed), { kind: 'failed', fault: BROKEN })
  t.equal(shop.bank.charges, 0)
  t.equal(shop.runs(), 0)
  t.equal(await shop.stored(), undefined, 'the payment is as good as new')
  let timeLeft = 0
  const check = async (ms: number): Promise<void> => {
    timeLeft = ms
  }
  t.match(await shop.buy({ route: DEEP, check }), { kind: 'answered' })
  t.ok(timeLeft > 0 && timeLeft < shop.bank.validBefore - shop.clock.now, 'within the payment’s time')
  t.equal(shop.bank.charges, 1)
})

t.test('skips the check of work that is charged afterwards', async (t) => {
  const shop = await openShop(t)
  t.match(await shop.buy({ check: () => Promise.reject(BROKEN) }), { kind: 'answered' })
})

t.test('runs copies of an owed payment one after the other', async (t) => {
  const shop = await openShop(t)
  await shop.buy({ route: DEEP, run: () => Promise.reject(BROKEN) })
  const outcomes = await Promise.all([1, 2, 3, 4].map(() => shop.buy({ route: DEEP })))
  for (const outcome of outcomes) t.match(outcome, { kind: 'answered', answer: { value: { run: 1 } } })
  t.equal(shop.runs(), 1)
})

t.test('gives paid work its whole time, however short the payment is valid', async (t) => {
  const shop = await openShop(t)
  shop.bank.validBefore = NOW + 6_000
  let given = 0
  const run = async ({ timeLeft }: HandlerCall) => {
    given = timeLeft
    return STORED
  }
  t.match(await shop.buy({ route: DEEP, run }), { kind: 'answered' })
  t.equal(given, 20_000)
})

t.test('refuses a payment that fails to settle before the work, uncharged', async (t) => {
  const shop = await openShop(t)
  shop.bank.simulate = POOR
  t.match(await shop.buy({ route: DEEP }), { kind: 'refused', refusal: POOR })
  shop.bank.simulate = undefined
  shop.bank.settlements = [AWAY, FAILED, SETTLED]
  t.match(await shop.buy({ route: DEEP }), { kind: 'refused', refusal: { code: 'chain_unavailable' } })
  t.equal(await shop.stored(), undefined, 'as if it had never come')
  t.match(await shop.buy({ route: DEEP }), { kind: 'refused', refusal: { code: 'settlement_failed' } })
  t.equal(shop.runs(), 0)
  t.match(await shop.buy({ route: DEEP }), { kind: 'answered' }, 'the same payment')
  t.equal(shop.bank.charges, 1)
})

t.test('works for an unknown settlement once it is resolved', async (t) => {
  const shop = await openShop(t)
  shop.bank.settlements = [UNKNOWN]
  t.match(await shop.buy({ route: DEEP }), { kind: 'pending' })
  t.equal(shop.runs(), 0)
  t.match(await shop.buy({ route: DEEP }), { kind: 'answered', answer: { value: { run: 1 } } })
  t.equal(shop.bank.charges, 0, 'nothing was sent a second time')
})

t.test('leaves a client that disconnects before settlement uncharged', async (t) => {
  const shop = await openShop(t)
  t.match(await shop.buy({ route: DEEP, gone: AbortSignal.abort() }), { kind: 'disconnected' })
  t.equal(await shop.stored(), undefined)
  t.equal(shop.bank.charges + shop.runs(), 0)
})

t.test('settles first when work may outlast a payment of this protocol', async (t) => {
  const shop = await openShop(t)
  const payment = shop.payment()
  const hasty = { ...payment, protocol: { ...payment.protocol, longestWork: 15_000 } }
  await shop.buy({ payment: hasty })
  t.strictSame(shop.history, ['reserved', 'settling', 'settled', 'fulfilled'])
})

t.test('settles first, for an hour, for a payer whose settlements failed twice in ten minutes', async (t) => {
  const shop = await openShop(t)
  const { ledger } = shop.deps
  let nonce = 0
  const fail = async (): Promise<void> => {
    shop.bank.settlements = [FAILED]
    nonce += 1
    t.match(await shop.buy({ payment: shop.payment({ key: `test:${nonce}` }) }), { kind: 'settlementFailed' })
  }
  const throttled = (payer = 'buyer') => isThrottled(ledger, payer, shop.clock.now)
  await fail()
  t.notOk(await throttled(), 'once is no pattern')
  shop.clock.now += 600_001
  shop.bank.validBefore = shop.clock.now + 60_000
  await fail()
  t.notOk(await throttled(), 'nor are two far apart')
  shop.clock.now += 60_000
  shop.bank.validBefore = shop.clock.now + 60_000
  await fail()
  t.ok(await throttled())
  t.notOk(await throttled('BUYER'), 'another spelling is another payer: schemes spell them')
  t.notOk(await throttled('somebody else'))
  const runs = shop.runs()
  t.match(await shop.buy(), { kind: 'refused', refusal: { code: 'settlement_failed' } })
  t.equal(shop.runs(), runs, 'no more work for nothing')
  shop.bank.settlements = [SETTLED]
  t.match(await shop.buy(), { kind: 'answered', record: { settle: 'upfront' } })
  shop.clock.now += 3_600_000
  t.notOk(await throttled(), 'an hour later it is forgiven')
})

t.test('finishes what a dead process has left of an upfront payment', async (t) => {
  for (const [state, changes, runs, charges] of [
    ['reserved', {}, 1, 1],
    ['settling', { answer: undefined }, 1, 0],
    ['unknown', { answer: undefined }, 1, 0],
    ['settled', { answer: undefined }, 1, 0],
    ['fulfilled', { receipt: RECEIPT }, 0, 0],
  ] as const) {
    const shop = await openShop(t)
    const { answer, ...more } = { answer: STORED, ...changes }
    const operation = DEEP.operation.id
    await leave(shop, state, {
      settle: 'upfront',
      operation,
      ...more,
      ...(answer === undefined ? NOTHING : {}),
    })
    const outcomes = await Promise.all([1, 2, 3].map(() => shop.buy({ route: DEEP })))
    for (const outcome of outcomes) t.match(outcome, { kind: 'answered', receipt: RECEIPT }, state)
    t.equal(shop.runs(), runs, state)
    t.equal(shop.bank.charges, charges, state)
  }
})

const NOTHING: object = { answer: undefined }
