import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { until } from '../../../support/until.ts'
import type { Route } from '../../../../src/engine/catalog/catalog.ts'
import { Failure, LedgerError } from '../../../../src/engine/base/errors.ts'
import { readAnswer, writeAnswer } from '../../../../src/engine/ledger/answers.ts'
import type { PaymentRecord, State, StoredAnswer } from '../../../../src/engine/ledger/payment-record.ts'
import { LEASE_MS } from '../../../../src/engine/base/money-times.ts'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import { toMicros } from '../../../../src/engine/base/money.ts'
import { type HandlerCall, type PurchaseDeps } from '../../../../src/engine/purchase/request.ts'
import { type PurchaseResult } from '../../../../src/engine/purchase/result.ts'
import { markReceived } from '../../../../src/engine/purchase/delivery-marks.ts'
import {
  AWAY,
  DEEP,
  FAILED,
  FORGED,
  KEY,
  leave,
  MOON,
  NOW,
  openShop,
  POOR,
  RECEIPT,
  SETTLED,
  STORED,
  TIDE,
  TRANSACTION,
  UNKNOWN,
  type Shop,
} from '../../../support/scripted-protocol.ts'
import { makeRecord, nextRecord } from '../../../support/payment-records.ts'

const forOther = (shop: Shop, route: Route, digest: string): Promise<PurchaseResult> =>
  shop.buy({ route, digest })

t.test('answers a payment once, and stores every step before the next', async (t) => {
  const shop = await openShop(t)
  const outcome = await shop.buy()
  t.match(outcome, { kind: 'answered', receipt: RECEIPT, answer: { kind: 'json', value: { run: 1 } } })
  if (outcome.kind !== 'answered') return
  await markReceived(shop.deps, outcome.record)
  t.strictSame(shop.history, ['reserved', 'settling', 'settled', 'sent'])
  t.equal(shop.bank.charges, 1)
  t.match(await shop.stored(), {
    key: KEY,
    protocol: 'test',
    network: 'test:1',
    asset: 'coin',
    payer: 'buyer',
    payee: 'shop',
    amount: '5000',
    validBefore: NOW + 60_000,
    operation: TIDE.operation.id,
    digest: 'arguments',
    revision: 'r1',
    redeliveryToken: 'secret',
    owner: 'mine',
    attempts: 1,
  })
})

t.test('refuses a payment that differs from the offer or is forged, before any work or record', async (t) => {
  for (const step of ['check', 'verify'] as const) {
    const shop = await openShop(t)
    shop.bank[step] = FORGED
    t.strictSame(await shop.buy(), { kind: 'refused', refusal: FORGED })
    t.equal(await shop.stored(), undefined)
    t.equal(shop.runs(), 0)
  }
})

t.test('refuses a payment that the chain would reject before any work, and accepts it later', async (t) => {
  const shop = await openShop(t)
  shop.bank.simulate = POOR
  t.strictSame(await shop.buy(), { kind: 'refused', refusal: POOR })
  t.equal(shop.runs(), 0)
  shop.bank.simulate = undefined
  t.match(await shop.buy(), { kind: 'answered' })
  t.strictSame(shop.history, ['reserved', 'voided', 'reserved', 'settling', 'settled'])
})

t.test('refuses to begin work with less than three seconds left for it', async (t) => {
  const shop = await openShop(t)
  shop.bank.validBefore = NOW + 8_999
  t.match(await shop.buy(), { kind: 'refused', refusal: { code: 'deadline_too_short' } })
  t.equal(shop.runs(), 0)
  t.equal(await shop.stored(), undefined)
  shop.bank.validBefore = NOW + 9_000
  t.match(await shop.buy(), { kind: 'answered' })
})

t.test('limits work by its own time and by the time that settlement needs', async (t) => {
  for (const [validFor, timeLeft] of [
    [15_000, 9_000],
    [3_600_000, 20_000],
  ] as const) {
    const shop = await openShop(t)
    let given = 0
    const run = async ({ timeLeft: time }: HandlerCall): Promise<StoredAnswer> => {
      given = time
      return STORED
    }
    shop.bank.validBefore = NOW + validFor
    await shop.buy({ run })
    t.equal(given, timeLeft)
  }
})

t.test('leaves failed work uncharged, and accepts the same payment for it or another request', async (t) => {
  for (const fault of [
    new Failure('answer_too_large', 'the answer is larger than 1 MB'),
    new TypeError('bug'),
  ]) {
    const shop = await openShop(t)
    t.strictSame(await shop.buy({ run: () => Promise.reject(fault) }), { kind: 'failed', fault })
    t.match(await shop.stored(), { state: 'voided', answer: undefined })
    t.equal(shop.bank.charges, 0)
    t.match(await forOther(shop, MOON, 'other arguments'), { kind: 'answered' })
    t.match(await shop.stored(), { operation: MOON.operation.id, digest: 'other arguments', attempts: 2 })
    t.equal(shop.bank.charges, 1)
  }
})

t.test('withholds the answer, uncharged, when a settlement has definitely failed', async (t) => {
  const shop = await openShop(t)
  shop.bank.settlements = [FAILED, SETTLED]
  const outcome = await shop.buy()
  t.match(outcome, {
    kind: 'settlementFailed',
    refusal: { code: 'settlement_failed' },
    record: { state: 'voided' },
  })
  t.strictSame(shop.history, ['reserved', 'settling', 'voided'])
  t.match(await shop.buy(), { kind: 'answered' }, 'the payment may be used as if it were new')
  t.equal(shop.bank.charges, 1)
})

t.test('reports an unreachable network as such', async (t) => {
  const shop = await openShop(t)
  shop.bank.settlements = [AWAY, SETTLED]
  t.match(await shop.buy(), { kind: 'refused', refusal: { code: 'chain_unavailable' } })
  t.match(await shop.buy(), { kind: 'answered' })
  t.equal(shop.bank.charges, 1)
})

t.test(
  'charges a payer who has been denied only for payments that are on their way to the chain',
  async (t) => {
    for (const [state, expected] of [
      ['reserved', { kind: 'refused', refusal: { code: 'payer_denied' } }],
      ['fulfilled', { kind: 'refused', refusal: { code: 'payer_denied' } }],
      ['settling', { kind: 'answered' }],
      ['unknown', { kind: 'answered' }],
      ['settled', { kind: 'answered' }],
    ] as const) {
      const shop = await openShop(t)
      await leave(shop, state)
      const denied = new Set(['buyer'])
      t.match(await shop.buy({ payment: shop.payment() }, { ...shop.deps, denied }), expected, state)
      t.equal(shop.bank.charges, 0, `${state}: nothing new is sent`)
    }
  },
)

t.test('resolves an unknown settlement at the next copy, with one run', async (t) => {
  const shop = await openShop(t)
  shop.bank.settlements = [UNKNOWN]
  const outcome = await shop.buy()
  t.match(outcome, { kind: 'pending', id: (await shop.stored())?.id })
  shop.bank.resolution = UNKNOWN
  t.match(await shop.buy(), { kind: 'pending' })
  shop.bank.resolution = SETTLED
  t.match(await shop.buy(), { kind: 'answered', answer: { value: { run: 1 } } })
  t.equal(shop.runs(), 1)
  t.equal(shop.bank.resolved, 2)
  t.equal(shop.bank.charges, 0, 'nothing was sent a second time')
  t.strictSame(shop.history, ['reserved', 'settling', 'unknown', 'settled'])
  t.strictSame((await shop.stored())?.dispatch, TRANSACTION, 'it is kept until the payment expires')
})

t.test('settles again, with one run, when an unknown settlement turns out to have failed', async (t) => {
  const shop = await openShop(t)
  shop.bank.settlements = [UNKNOWN, SETTLED]
  await shop.buy()
  shop.bank.resolution = FAILED
  t.match(await shop.buy(), { kind: 'answered', answer: { value: { run: 1 } } })
  t.equal(shop.runs(), 1)
  t.equal(shop.bank.charges, 1)
})

t.test('leaves a settlement that fails again uncharged', async (t) => {
  const shop = await openShop(t)
  shop.bank.settlements = [UNKNOWN, FAILED]
  await shop.buy()
  shop.bank.resolution = FAILED
  t.match(await shop.buy(), { kind: 'settlementFailed' })
  t.match(await shop.stored(), { state: 'voided' })
  t.equal(shop.bank.charges, 0)
})

t.test('answers ten simultaneous copies with one run and one charge', async (t) => {
  const shop = await openShop(t)
  const outcomes = await Promise.all(Array.from({ length: 10 }, () => shop.buy()))
  for (const outcome of outcomes)
    t.match(outcome, { kind: 'answered', receipt: RECEIPT, answer: { value: { run: 1 } } })
  t.equal(shop.runs(), 1)
  t.equal(shop.bank.charges, 1)
})

t.test('runs the work for a copy whose first has failed', async (t) => {
  const shop = await openShop(t)
  const gate = newGate()
  const failing = shop.buy({
    run: async () => {
      await gate.opened
      throw new Error('the first fails')
    },
  })
  const copy = shop.buy()
  await delay(20)
  gate.open()
  t.match(await failing, { kind: 'failed' })
  t.match(await copy, { kind: 'answered', answer: { value: { run: 1 } } })
  t.equal(shop.bank.charges, 1)
})

t.test('checks a copy whose first has failed like a new payment', async (t) => {
  const shop = await openShop(t)
  const gate = newGate()
  const failing = shop.buy({
    run: async () => {
      await gate.opened
      throw new Error('the first fails')
    },
  })
  const copy = shop.buy()
  await delay(20)
  shop.clock.now += 55_000
  gate.open()
  await failing
  t.match(await copy, { kind: 'refused', refusal: { code: 'deadline_too_short' } })
})

t.test('honours the old price for a copy whose first request has died', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'reserved', { leaseUntil: NOW + 1 })
  const payment = shop.payment({ check: ({ price }) => (price === 4_000n ? undefined : FORGED) })
  const copy = shop.buy(
    { payment },
    { ...shop.deps, recentOffers: async () => [{ price: toMicros(4_000n) }] },
  )
  await delay(10)
  shop.clock.now += 1
  t.match(await copy, { kind: 'answered' })
})

t.test('refuses a copy without the token that has waited since before the answer', async (t) => {
  const shop = await openShop(t)
  const first = await leave(shop, 'settling', { leaseUntil: NOW + 1 })
  const observed = shop.buy({ payment: shop.payment({ token: undefined }) })
  await delay(10)
  await shop.ledger.replace(first, nextRecord(first, { state: 'sent', receipt: RECEIPT, settledAt: NOW }))
  t.match(await observed, { kind: 'replayRejected', code: 'payment_reused' })
})

t.test('refuses a copy when the payment has bought another request meanwhile', async (t) => {
  const shop = await openShop(t)
  const gate = newGate()
  const polled = newGate()
  const failing = shop.buy({
    run: async () => {
      await gate.opened
      throw new Error('the first fails')
    },
  })
  const paused: PurchaseDeps = { ...shop.deps, sleep: () => polled.opened }
  const copy = shop.buy({}, paused)
  await delay(20)
  gate.open()
  await failing
  t.match(await forOther(shop, MOON, 'other arguments'), { kind: 'answered' })
  polled.open()
  t.match(await copy, { kind: 'replayRejected', record: { operation: MOON.operation.id } })
})

t.test('ends the wait of a copy at its limit and when its client leaves', async (t) => {
  const shop = await openShop(t)
  const { id } = await leave(shop, 'settling')
  // Somebody is alive and renews the lease.
  const leased = (record: PaymentRecord | undefined): PaymentRecord | undefined =>
    record && { ...record, leaseUntil: shop.clock.now + LEASE_MS }
  const ledger = { ...shop.ledger, get: async (key: string) => leased(await shop.ledger.get(key)) }
  const deps: PurchaseDeps = { ...shop.deps, ledger }
  t.strictSame(await shop.buy({ gone: AbortSignal.abort() }, deps), { kind: 'pending', id })
  const copy = shop.buy({}, deps)
  await delay(20)
  shop.clock.now += 45_001
  t.strictSame(await copy, { kind: 'pending', id })
})

t.test('finishes what a dead process has left, with one run', async (t) => {
  const ends: [State, readonly State[], number, number][] = [
    // state, states after it, runs, charges of ours
    ['reserved', ['voided', 'reserved', 'settling', 'settled'], 1, 1],
    ['fulfilled', ['fulfilled', 'settling', 'settled'], 0, 1],
    ['settling', ['settling', 'settled'], 0, 0],
    ['unknown', ['unknown', 'settled'], 0, 0],
    ['settled', [], 0, 0],
  ]
  for (const [state, after, runs, charges] of ends) {
    const shop = await openShop(t)
    await leave(shop, state)
    const outcomes = await Promise.all([shop.buy(), shop.buy(), shop.buy()])
    for (const outcome of outcomes) t.match(outcome, { kind: 'answered', receipt: RECEIPT }, state)
    t.strictSame(shop.history, after)
    t.equal(shop.runs(), runs)
    t.equal(shop.bank.charges, charges)
    t.ok(shop.bank.resolved <= 1)
  }
})

t.test('stores the answer with what is sent for it, or earlier while that is prepared', async (t) => {
  for (const [prepare, history] of [
    [async () => {}, ['reserved', 'settling', 'settled']],
    [() => delay(20), ['reserved', 'fulfilled', 'settling', 'settled']],
  ] as const) {
    const shop = await openShop(t)
    shop.bank.beforeRecord = prepare
    const payment = shop.payment()
    const settle: typeof payment.settle = (amount, journal) =>
      payment.settle(amount, {
        record: async (...given) => {
          await journal.record(...given)
          const sent = await shop.stored()
          t.match(sent, { state: 'settling', dispatch: TRANSACTION })
          t.match(sent && (await readAnswer(shop.ledger.answers, sent)), { value: { run: 1 } })
        },
      })
    t.match(await shop.buy({ payment: { ...payment, settle } }), { kind: 'answered' })
    t.strictSame(shop.history, history)
  }
})

t.test('keeps the answer for the same payment when nothing could be sent for it', async (t) => {
  const shop = await openShop(t)
  const payment = shop.payment()
  const broken = new Error('the settlement has failed before it was recorded')
  t.match(await shop.buy({ payment: { ...payment, settle: () => Promise.reject(broken) } }), {
    kind: 'failed',
    fault: broken,
  })
  t.match(await shop.stored(), { state: 'fulfilled', answer: { kind: 'json' } })
  shop.clock.now += LEASE_MS
  t.match(await shop.buy(), { kind: 'answered', answer: { value: { run: 1 } } })
  t.equal(shop.runs(), 1)
  t.equal(shop.bank.charges, 1)
})

t.test('leaves the work of a living process to it', async (t) => {
  for (const state of ['reserved', 'fulfilled', 'settling', 'unknown'] as const) {
    const shop = await openShop(t)
    const record = await leave(shop, state, { leaseUntil: NOW + LEASE_MS })
    const copy = shop.buy()
    await delay(20)
    t.strictSame(await shop.stored(), record)
    const answer = await writeAnswer(shop.ledger.answers, record, STORED)
    await shop.ledger.replace(record, nextRecord(record, { state: 'settled', answer, receipt: RECEIPT }))
    t.match(await copy, { kind: 'answered', answer: STORED }, state)
    t.equal(shop.runs() + shop.bank.charges + shop.bank.resolved, 0)
  }
})

t.test('refuses a charge by a process that was presumed dead', async (t) => {
  const shop = await openShop(t)
  const theirs: PurchaseDeps = { ...shop.deps, owner: 'theirs' }
  const late = await shop.buy({
    run: async () => {
      shop.clock.now += LEASE_MS
      t.match(await shop.buy({}, theirs), { kind: 'answered' })
      return STORED
    },
  })
  t.match(late, { kind: 'pending' })
  t.equal(shop.bank.charges, 1)
  const stored = await shop.stored()
  t.match(stored, { state: 'settled', owner: 'theirs' })
  t.match(stored && (await readAnswer(shop.ledger.answers, stored)), { value: { run: 1 } })
})

t.test('leaves a payment unsent that is lost before its transaction is recorded', async (t) => {
  const shop = await openShop(t)
  const theirs: PurchaseDeps = { ...shop.deps, owner: 'theirs' }
  shop.bank.beforeRecord = async () => {
    shop.bank.beforeRecord = async () => {}
    await until('the answer is stored', async () => (await shop.stored())?.state === 'fulfilled')
    shop.clock.now += LEASE_MS
    t.match(await shop.buy({}, theirs), { kind: 'answered' })
  }
  t.match(await shop.buy(), { kind: 'pending' })
  t.equal(shop.bank.charges, 1)
  t.equal(shop.runs(), 1)
})

t.test('skips the work for a client that has left before it begins', async (t) => {
  const shop = await openShop(t)
  t.strictSame(await shop.buy({ gone: AbortSignal.abort() }), { kind: 'disconnected' })
  t.equal(await shop.stored(), undefined)
  t.equal(shop.runs() + shop.bank.charges, 0)
  t.match(await shop.buy(), { kind: 'answered', answer: { value: { run: 1 } } }, 'when it comes back')
  t.equal(shop.bank.charges, 1)
})

t.test('drops work whose client has left, and charges such a payer first', async (t) => {
  const shop = await openShop(t)
  for (const key of ['test:one', 'test:two']) {
    const leaving = new AbortController()
    const run = async (): Promise<StoredAnswer> => {
      leaving.abort()
      return STORED
    }
    const payment = shop.payment({ key })
    t.strictSame(await shop.buy({ payment, run, gone: leaving.signal }), { kind: 'disconnected' })
    t.equal(await shop.ledger.get(key), undefined)
  }
  t.equal(shop.bank.charges, 0)
  t.match(await shop.buy({ payment: shop.payment({ key: 'test:three' }) }), {
    kind: 'answered',
    record: { settle: 'upfront' },
  })
})

t.test('leaves a client uncharged that leaves just before its payment is recorded', async (t) => {
  const shop = await openShop(t)
  const leaving = new AbortController()
  shop.bank.beforeRecord = async () => leaving.abort()
  t.strictSame(await shop.buy({ gone: leaving.signal }), { kind: 'disconnected' })
  t.equal(await shop.stored(), undefined)
  t.equal(shop.runs(), 1)
  t.equal(shop.bank.charges, 0)
})

t.test('settles a recorded payment whose client leaves before it is recorded once more', async (t) => {
  const shop = await openShop(t)
  const leaving = new AbortController()
  const payment = shop.payment({
    settle: async (_amount, journal) => {
      await journal.record(TRANSACTION)
      leaving.abort()
      await journal.record({ ...TRANSACTION, hash: '0x05', nonce: 5 })
      return SETTLED
    },
  })
  t.match(await shop.buy({ payment, gone: leaving.signal }), { kind: 'answered', receipt: RECEIPT })
  t.match(await shop.stored(), { state: 'settled', dispatch: { hash: '0x05' } })
})

t.test('finishes the work of a client that has left for a waiting copy', async (t) => {
  const shop = await openShop(t)
  const leaving = new AbortController()
  let copy: Promise<PurchaseResult> | undefined
  const run = async (): Promise<StoredAnswer> => {
    copy = shop.buy()
    await delay(20)
    leaving.abort()
    return STORED
  }
  await shop.buy({ run, gone: leaving.signal })
  t.match(await copy, { kind: 'answered', answer: STORED })
  t.equal(shop.bank.charges, 1)
  t.equal(shop.runs(), 0)
})

t.test('answers the buyer on the line when the store loses the record after the money moved', async (t) => {
  const lost: [string, (shop: Shop) => Ledger][] = [
    [
      'it cannot be reached',
      (shop) => ({
        ...shop.ledger,
        replace: async (previous, next) => {
          if (next.receipt !== undefined) throw new LedgerError('away')
          return shop.ledger.replace(previous, next)
        },
      }),
    ],
    [
      'it was emptied',
      (shop) => ({
        ...shop.ledger,
        insert: async (record) => {
          const standing = await shop.stored()
          if (record.receipt !== undefined && standing !== undefined) await shop.ledger.remove(standing)
          return shop.ledger.insert(record)
        },
        replace: async (previous, next) => {
          if (previous.state === 'settling') return false
          return shop.ledger.replace(previous, next)
        },
      }),
    ],
  ]
  for (const [name, ledgerOf] of lost) {
    for (const route of [TIDE, DEEP]) {
      const shop = await openShop(t)
      const faults: unknown[] = []
      const deps = {
        ...shop.deps,
        ledger: ledgerOf(shop),
        report: (fault: unknown) => faults.push(fault),
      }
      t.match(await shop.buy({ route }, deps), {
        kind: 'answered',
        receipt: RECEIPT,
        answer: { value: { run: 1 } },
        record: { state: 'settled' },
      })
      t.ok(faults.length > 0, `${name}: the operator is told`)
      t.equal(shop.bank.charges, 1)
      if (name === 'it was emptied')
        t.match(await shop.stored(), { receipt: RECEIPT }, 'the record is made once more')
    }
  }
})

t.test('keeps an observer of the pool waiting until the buyer on the line has the answer', async (t) => {
  const shop = await openShop(t)
  const token = undefined
  const leased = { token, leaseUntil: NOW + LEASE_MS, dispatch: TRANSACTION }
  const record = await leave(shop, 'settling', leased)
  const observed = shop.buy({ payment: shop.payment({ token }) })
  const settled = nextRecord(record, { state: 'settled', receipt: RECEIPT, settledAt: NOW })
  await shop.ledger.replace(record, settled)
  await delay(20)
  await markReceived(shop.deps, settled)
  t.match(await observed, { kind: 'replayRejected', code: 'payment_reused' })
})

t.test('answers every copy that came before the payment was visible, with or without a token', async (t) => {
  const shop = await openShop(t)
  const gate = newGate()
  const bare = shop.payment({ token: undefined })
  const run = async (): Promise<StoredAnswer> => {
    await gate.opened
    return STORED
  }
  const first = shop.buy({ payment: bare, run })
  const copies = [1, 2, 3].map(() => shop.buy({ payment: bare }))
  await delay(20)
  gate.open()
  for (const outcome of await Promise.all([first, ...copies]))
    t.match(outcome, { kind: 'answered', answer: STORED })
  t.equal(shop.bank.charges, 1)
})

t.test('reuses the work for a new payment when the network was away for the first', async (t) => {
  const shop = await openShop(t)
  shop.bank.settlements = [AWAY, AWAY, SETTLED]
  for (const key of ['test:one', 'test:two'])
    t.match(await shop.buy({ payment: shop.payment({ key }) }), {
      kind: 'refused',
      refusal: { code: 'chain_unavailable' },
    })
  t.match(await shop.buy({ payment: shop.payment({ key: 'test:three' }) }), {
    kind: 'answered',
    record: { key: 'test:three' },
    answer: { value: { run: 1 } },
  })
  t.equal(shop.runs(), 1)
  t.equal(shop.bank.charges, 1)
  t.equal(await shop.ledger.get('test:two'), undefined, 'the answer was sold once')
  t.match(await shop.buy({ payment: shop.payment({ key: 'test:four' }), digest: 'others' }), {
    kind: 'answered',
    answer: { value: { run: 2 } },
  })
})

t.test('withholds the answer from anyone who has seen a payment in the transaction pool', async (t) => {
  for (const state of ['fulfilled', 'settling', 'unknown', 'settled'] as const) {
    for (const token of ['wrong', undefined]) {
      const shop = await openShop(t)
      await leave(shop, state)
      const observed = shop.buy({ payment: shop.payment({ token }) })
      t.match(await observed, { kind: 'replayRejected', code: 'payment_reused' }, state)
      t.match(await shop.buy(), { kind: 'answered', answer: STORED }, 'which its buyer gets')
    }
  }
})

t.test('answers a client without a token again until it has the answer', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'settled', { redeliveryToken: undefined })
  const bare = (): Promise<PurchaseResult> => shop.buy({ payment: shop.payment({ token: undefined }) })
  const outcome = await bare()
  t.match(outcome, { kind: 'answered', answer: STORED })
  if (outcome.kind === 'answered') await markReceived(shop.deps, outcome.record)
  t.match(await bare(), { kind: 'replayRejected' })
})

t.test('repeats a delivered answer for the holder of the token, for the promised period', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'sent', { createdAt: NOW })
  const buyWith = (token: string | undefined): Promise<PurchaseResult> =>
    shop.buy({ payment: shop.payment({ token }) })
  t.match(await buyWith('secret'), { kind: 'answered', answer: STORED, receipt: RECEIPT })
  t.match(await buyWith('wrong'), { kind: 'replayRejected' })
  t.match(await buyWith(undefined), { kind: 'replayRejected' })
  shop.clock.now = NOW + shop.deps.redeliver - 1
  t.match(await buyWith('secret'), { kind: 'answered' }, 'whatever its validBefore')
  shop.clock.now += 1
  t.match(await buyWith('secret'), { kind: 'replayRejected' })
  t.equal(shop.runs() + shop.bank.charges, 0)
})

t.test('gives a payment without a token to its buyer until it is delivered', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'sent', { redeliveryToken: undefined })
  t.match(await shop.buy({ payment: shop.payment({ token: undefined }) }), { kind: 'replayRejected' })
})

t.test('refuses other requests for a payment that is in use', async (t) => {
  for (const state of ['fulfilled', 'settling', 'unknown', 'settled', 'sent'] as const) {
    const shop = await openShop(t)
    const record = await leave(shop, state)
    t.strictSame(await forOther(shop, MOON, 'arguments'), {
      kind: 'replayRejected',
      record,
      code: 'payment_reused',
    })
    t.strictSame(await forOther(shop, TIDE, 'other arguments'), {
      kind: 'replayRejected',
      record,
      code: 'payment_reused',
    })
    t.strictSame(await shop.stored(), record)
  }
  const shop = await openShop(t)
  const record = await leave(shop, 'reserved', { leaseUntil: NOW + LEASE_MS })
  t.strictSame(
    await forOther(shop, MOON, 'arguments'),
    { kind: 'replayRejected', record, code: 'payment_reused' },
    'while it is worked for',
  )
})

t.test('accepts any request for a payment whose work has died with its process', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'reserved')
  t.match(await forOther(shop, MOON, 'other arguments'), { kind: 'answered' })
  t.match(await shop.stored(), { operation: MOON.operation.id, attempts: 2 })
})

t.test('shows the state of a payment to its signer only', async (t) => {
  for (const state of [
    'reserved',
    'fulfilled',
    'settling',
    'unknown',
    'settled',
    'sent',
    'voided',
  ] as const) {
    const shop = await openShop(t)
    const record = await leave(shop, state)
    shop.bank.verify = FORGED
    t.strictSame(await shop.buy(), { kind: 'refused', refusal: FORGED })
    t.strictSame(await shop.stored(), record)
  }
})

t.test('runs a settled payment without an answer again, with one charge', async (t) => {
  const shop = await openShop(t)
  const record = await leave(shop, 'settled')
  const { answer: _, ...bare } = record
  await shop.ledger.replace(record, nextRecord(bare))
  t.match(await shop.buy(), { kind: 'answered', answer: { value: { run: 1 } }, receipt: RECEIPT })
  t.equal(shop.runs(), 1)
  t.equal(shop.bank.charges, 0)
})

t.test('treats a record that is deleted while a copy waits as a new payment', async (t) => {
  const shop = await openShop(t)
  let asked = 0
  const dead = makeRecord(KEY, NOW, 'dead')
  const record = { ...dead, operation: TIDE.operation.id, digest: 'arguments', redeliveryToken: 'secret' }
  const forgetful: Ledger = {
    ...shop.ledger,
    get: async (key) => {
      asked += 1
      return asked === 1 ? record : shop.ledger.get(key)
    },
  }
  t.match(await shop.buy({}, { ...shop.deps, ledger: forgetful }), { kind: 'answered' })
  t.equal(shop.runs(), 1)
})

t.test('marks only a settled answer as sent, and only the one that was given', async (t) => {
  const shop = await openShop(t)
  const fulfilled = await leave(shop, 'fulfilled')
  await markReceived(shop.deps, fulfilled)
  t.strictSame(await shop.stored(), fulfilled)
  const settled = nextRecord(fulfilled, { state: 'settled', receipt: RECEIPT })
  await shop.ledger.replace(fulfilled, settled)
  const again = nextRecord(settled, { attempts: settled.attempts + 1 })
  await shop.ledger.replace(settled, again)
  await markReceived(shop.deps, settled)
  t.strictSame(await shop.stored(), again, 'it has been given out again since')
  shop.clock.now += 5
  await markReceived(shop.deps, again)
  t.match(await shop.stored(), { state: 'sent', updatedAt: NOW + 5, version: 4 })
})

function newGate(): { readonly open: () => void; readonly opened: Promise<void> } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open: () => open(), opened }
}

t.test('refuses an authorization of another amount under the same nonce', async (t) => {
  const shop = await openShop(t)
  shop.bank.settlements = [AWAY, SETTLED]
  t.match(await shop.buy(), { kind: 'refused' })
  t.equal((await shop.stored())?.state, 'fulfilled')
  const payment = shop.payment({ authorizationHash: 'another authorization', authorizedAmount: 0n })
  t.match(await shop.buy({ payment }), { kind: 'replayRejected' })
  t.equal(shop.bank.charges, 0)
  t.match(await shop.buy(), { kind: 'answered' }, 'the real one is charged and answered')
  t.equal(shop.bank.charges, 1)
  t.match(await shop.buy({ payment }), { kind: 'replayRejected' })
})

t.test('closes redelivery of a settled answer after its window', async (t) => {
  const shop = await openShop(t)
  t.match(await shop.buy(), { kind: 'answered' })
  shop.clock.now += 86_399_999
  t.match(await shop.buy(), { kind: 'answered' })
  shop.clock.now += 1
  t.match(await shop.buy(), { kind: 'replayRejected' })
})

t.test('keeps an answer that was settled late for the whole redelivery window', async (t) => {
  const shop = await openShop(t)
  shop.bank.beforeRecord = async () => {
    shop.clock.now += 40_000
  }
  t.match(await shop.buy(), { kind: 'answered' })
  shop.clock.now = NOW + 86_400_001
  t.match(await shop.buy(), { kind: 'answered' }, 'a day counts from the settlement')
  shop.clock.now = NOW + 40_000 + 86_400_000
  t.match(await shop.buy(), { kind: 'replayRejected' })
})
