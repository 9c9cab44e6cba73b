import t from 'tap'
import type { PaymentRecord, State } from '../../../../src/engine/ledger/payment-record.ts'
import { LEASE_MS } from '../../../../src/engine/base/money-times.ts'
import { paymentId } from '../../../../src/engine/ledger/payment-lifecycle.ts'
import { recover } from '../../../../src/engine/purchase/recovery.ts'
import { isThrottled } from '../../../../src/engine/purchase/payer-throttle.ts'
import type { Settlement } from '../../../../src/engine/payment/settlement.ts'
import type { PurchaseResult } from '../../../../src/engine/purchase/result.ts'
import type { Store } from '../../../../src/engine/purchase/request.ts'
import {
  FAILED,
  KEY,
  leave,
  NOW,
  openShop,
  recoverAll,
  RECEIPT,
  SETTLED,
  UNKNOWN,
  type Shop,
} from '../../../support/scripted-protocol.ts'

/** Finishes and cleans up everything that is due at this time. */
async function sweep(shop: Shop, store?: Store): Promise<void> {
  const { protocol } = shop.payment()
  const faults: unknown[] = []
  await recoverAll({
    ...shop.deps,
    protocols: () => [protocol],
    storeOf: () => store,
    report: (fault) => faults.push(fault),
  })
  if (faults.length > 0) throw faults[0]
}

/** Settled before the work: no answer yet. */
const OWED: object = { settle: 'upfront', answer: undefined }

const END = NOW + 60_000 + 30_000

t.test('finishes what a dead process has left without another request', async (t) => {
  const ends: [State, Partial<PaymentRecord>, number, object | undefined][] = [
    // state, more, when, what is left
    ['reserved', {}, NOW, undefined],
    ['settling', {}, NOW, { state: 'settled', receipt: RECEIPT, answer: { size: 9 } }],
    ['unknown', {}, NOW, { state: 'settled', receipt: RECEIPT, answer: { size: 9 } }],
    ['fulfilled', {}, END, { state: 'settled', receipt: RECEIPT, answer: { size: 9 } }],
    ['voided', {}, END, undefined],
    ['sent', { settledAt: NOW }, NOW + 86_400_000, { state: 'sent', receipt: RECEIPT, answer: undefined }],
  ]
  for (const [state, changes, when, left] of ends) {
    const shop = await openShop(t)
    const record = await leave(shop, state, { validBefore: NOW + 60_000, due: when, ...changes })
    shop.clock.now = when - 1
    await sweep(shop)
    t.strictSame(await shop.stored(), record, `${state} is left alone before its time`)
    shop.clock.now = when
    await sweep(shop)
    const stored = await shop.stored()
    if (left === undefined) t.equal(stored, undefined, state)
    else t.match(stored, left, state)
    t.equal(shop.bank.charges + shop.runs(), 0)
  }
})

t.test('settles work that costs nothing without asking its protocol', async (t) => {
  const shop = await openShop(t)
  shop.bank.resolution = FAILED
  await leave(shop, 'fulfilled', { amount: '0', due: NOW })
  await sweep(shop)
  t.equal(shop.bank.resolved, 0)
  t.match(await shop.stored(), {
    state: 'settled',
    receipt: { transaction: '', amount: '0' },
    answer: { size: 9 },
  })
})

t.test('lets a copy of a single-use payment wait while recovery settles it, and answers it', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'settling', { redeliveryToken: undefined })
  const payment = shop.payment({ copies: { code: 'invalid_challenge', detail: 'paid' }, token: undefined })
  let copy: Promise<PurchaseResult> | undefined
  /** The chain answers when the copy has found the payment at work three times. */
  const resolve = (): Promise<Settlement> =>
    new Promise((answer) => {
      let looks = 0
      const sleep = async (ms: number): Promise<void> => {
        looks += 1
        if (looks === 3) answer(SETTLED)
        await shop.deps.sleep(ms)
      }
      copy = shop.buy({ payment }, { ...shop.deps, sleep })
      // One that is refused never sleeps.
      void copy.then(() => answer(SETTLED))
    })
  const protocols = () => [{ ...payment.protocol, resolve }]
  await recoverAll({ ...shop.deps, protocols, storeOf: () => undefined })
  t.match(await copy, { kind: 'answered', receipt: RECEIPT }, 'a refusal would have made its buyer pay again')
  t.equal(shop.bank.charges + shop.runs(), 0)
})

t.test('refuses a copy of a single-use payment while its first request is answered', async (t) => {
  const shop = await openShop(t)
  const payment = shop.payment({ copies: { code: 'invalid_challenge', detail: 'paid' }, token: undefined })
  shop.bank.beforeRecord = async () => {
    t.match(await shop.buy({ payment }), { kind: 'refused', refusal: { code: 'invalid_challenge' } })
  }
  t.match(await shop.buy({ payment }), { kind: 'answered' })
  t.equal(shop.bank.charges, 1)
})

t.test('leaves a payment of a living process to it', async (t) => {
  for (const state of ['reserved', 'fulfilled', 'settling', 'unknown'] as const) {
    const shop = await openShop(t)
    const record = await leave(shop, state, { leaseUntil: NOW + LEASE_MS, due: NOW })
    await sweep(shop)
    t.strictSame(await shop.stored(), record, state)
  }
})

t.test('keeps unpaid work for the same payment until that expires, then deletes it', async (t) => {
  const shop = await openShop(t)
  shop.bank.resolution = FAILED
  await leave(shop, 'settling', { validBefore: NOW + 60_000 })
  await sweep(shop)
  t.match(await shop.stored(), { state: 'fulfilled', answer: { size: 9 } })
  shop.clock.now = END
  await sweep(shop)
  t.match(await shop.stored(), { state: 'voided', answer: undefined })
  shop.clock.now += LEASE_MS
  await sweep(shop)
  t.equal(await shop.stored(), undefined)
})

t.test('asks a silent chain again, less and less often', async (t) => {
  const shop = await openShop(t)
  shop.bank.resolution = UNKNOWN
  await leave(shop, 'settling')
  const asked: number[] = []
  for (let step = 0; step < 2_000; step += 1) {
    const before = shop.bank.resolved
    await sweep(shop)
    if (shop.bank.resolved > before) asked.push(shop.clock.now - NOW)
    shop.clock.now += 1_000
  }
  t.match(await shop.stored(), { state: 'unknown' })
  t.ok(asked.length > 5 && asked.length < 20, `${asked.length} times in half an hour`)
  const pauses = asked.map((time, place) => time - (asked[place - 1] ?? 0))
  t.ok(
    pauses.every((pause) => pause <= 301_000),
    'never more than five minutes apart',
  )
})

t.test('keeps a payment of a protocol that is switched off', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'settling', { protocol: 'gone' })
  await sweep(shop)
  t.match(await shop.stored(), { state: 'settling' })
})

t.test(
  'keeps a pending write after a crash when its payment was settled, and drops it otherwise',
  async (t) => {
    for (const [state, changes, resolution, decision] of [
      ['reserved', {}, undefined, 'abort'],
      ['voided', {}, undefined, 'abort'],
      ['settling', {}, { kind: 'settled', receipt: RECEIPT }, 'commit'],
      ['settling', { validBefore: NOW - 1 }, FAILED, 'abort'],
      ['settled', { settledAt: NOW }, undefined, 'commit'],
      ['sent', { settledAt: NOW }, undefined, 'commit'],
      ['sent', { settledAt: NOW - 86_400_000 }, undefined, 'commit'],
      ['settled', { settledAt: NOW, ...OWED }, undefined, 'abort'],
    ] as const) {
      const shop = await openShop(t)
      if (resolution !== undefined) shop.bank.resolution = resolution
      const record = await leave(shop, state, { pendingWrite: true, ...changes })
      const told: string[] = []
      let broken = true
      const store: Store = {
        commit: async (id) => {
          told.push(`commit ${id}`)
          if (broken) throw new Error('the store is away')
        },
        abort: async (id) => {
          told.push(`abort ${id}`)
          if (broken) throw new Error('the store is away')
        },
      }
      await t.rejects(sweep(shop, store), /the store is away/)
      t.match(await shop.stored(), { pendingWrite: true }, `${state}: not forgotten when the handler fails`)
      broken = false
      shop.clock.now += 60_000
      await sweep(shop, store)
      t.strictSame(told, [`${decision} ${record.id}`, `${decision} ${record.id}`], state)
      t.notHas(await shop.stored(), { pendingWrite: true })
    }
  },
)

t.test('aborts pending writes of an operation that was removed', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'settled', { pendingWrite: true, settledAt: NOW })
  let rounds = 0
  for (; rounds < 2_000; rounds += 1) {
    const faults: unknown[] = []
    const { protocol } = shop.payment()
    const found = await recoverAll({
      ...shop.deps,
      protocols: () => [protocol],
      storeOf: () => undefined,
      report: (fault) => faults.push(fault),
    })
    if (faults.length > 0) break
    shop.clock.now += found > 0 ? 5_000 : 60_000
  }
  t.ok(shop.clock.now - NOW >= 86_400_000 - LEASE_MS, 'another process may have it')
  t.ok(rounds < 2_000, 'said once')
  t.notHas(await shop.stored(), { pendingWrite: true })
  const left = await shop.stored()
  t.ok((left?.attempts ?? 0) < 500, `${left?.attempts} attempts in a day`)
})

t.test('asks about payments at once however many entries have to be cleaned up first', async (t) => {
  const shop = await openShop(t)
  for (let n = 0; n < 1_200; n += 1) {
    const key = `test:void:${n}`
    await leave(shop, 'voided', { key, id: paymentId(key), identifier: undefined, due: NOW - 1_000 })
  }
  await leave(shop, 'settling')
  await sweep(shop)
  t.match(await shop.stored(), { state: 'settled' })
  t.strictSame(await shop.ledger.due('cleanup', NOW, 10), [])
})

t.test('counts a settlement that recovery finds failed against its payer, once', async (t) => {
  const shop = await openShop(t)
  shop.bank.resolution = FAILED
  const throttled = () => isThrottled(shop.ledger, 'buyer', shop.clock.now)
  await leave(shop, 'settling', { payer: 'buyer' })
  await sweep(shop)
  shop.clock.now = END
  await sweep(shop)
  t.notOk(await throttled(), 'one payment')
  const key = 'test:two'
  await leave(shop, 'settling', { payer: 'buyer', key, id: paymentId(key), due: END, validBefore: END + 1 })
  await sweep(shop)
  t.ok(await throttled())
})

t.test('holds nothing against a payer whose payments were in no block until they expired', async (t) => {
  const shop = await openShop(t)
  shop.bank.resolution = FAILED
  for (const key of ['test:one', 'test:two'])
    await leave(shop, 'settling', { payer: 'buyer', key, id: paymentId(key), due: END })
  shop.clock.now = END
  await sweep(shop)
  for (const key of ['test:one', 'test:two']) t.match(await shop.ledger.get(key), { state: 'voided' })
  t.notOk(await isThrottled(shop.ledger, 'buyer', END))
})

t.test('settles a payment once that two processes recover', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'settling')
  await Promise.all([1, 2, 3, 4].map(() => sweep(shop)))
  t.equal(shop.bank.resolved, 1)
  t.match(await shop.ledger.get(KEY), { state: 'settled' })
})

t.test('recovers other payments while one waits for its block', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'settling')
  await leave(shop, 'settling', {
    key: 'test:two',
    id: paymentId('test:two'),
    identifier: undefined,
    due: NOW + 1,
  })
  shop.clock.now += 1
  const { protocol } = shop.payment()
  let mined = (): void => {}
  const block = new Promise<void>((resolve) => (mined = resolve))
  const waiting = async (record: PaymentRecord) => {
    if (record.key === KEY) await block
    else mined()
    return shop.bank.resolution
  }
  await recoverAll({
    ...shop.deps,
    protocols: () => [{ ...protocol, resolve: waiting }],
    storeOf: () => undefined,
    report: (fault) => t.fail(String(fault)),
  })
  t.match(await shop.ledger.get(KEY), { state: 'settled' })
  t.match(await shop.ledger.get('test:two'), { state: 'settled' })
})

t.test('recovers payments that become due while an earlier one waits for its block', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'settling')
  const { protocol } = shop.payment()
  let mined = (): void => {}
  const block = new Promise<void>((resolve) => (mined = resolve))
  const resolve = async ({ key }: PaymentRecord): Promise<Settlement> => {
    if (key === KEY) await block
    return SETTLED
  }
  const deps = { ...shop.deps, protocols: () => [{ ...protocol, resolve }], storeOf: () => undefined }
  const waiting = await recover(deps)
  await leave(shop, 'settling', { key: 'test:two', id: paymentId('test:two'), identifier: undefined })
  await recoverAll(deps)
  t.match(await shop.ledger.get('test:two'), { state: 'settled' })
  mined()
  await Promise.all(waiting)
  t.match(await shop.ledger.get(KEY), { state: 'settled' })
})

t.test('works again, uncharged, for a settled payment whose answer was lost', async (t) => {
  const shop = await openShop(t)
  await leave(shop, 'settled', { settledAt: NOW })
  const stored = await shop.stored()
  if (stored?.answer === undefined) throw new Error('there is no answer to lose')
  await shop.ledger.answers.delete(stored.id, stored.answer)
  t.match(await shop.buy(), { kind: 'answered', receipt: RECEIPT, answer: { value: { run: 1 } } })
  t.match(await shop.buy(), { kind: 'answered', answer: { value: { run: 1 } } }, 'once')
  t.equal(shop.runs(), 1)
  t.equal(shop.bank.charges, 0)
})

t.test('reads only the undelivered answers of a buyer, however often it has bought the same', async (t) => {
  const shop = await openShop(t)
  for (let n = 0; n < 300; n += 1) {
    const key = `test:sent:${n}`
    await leave(shop, 'sent', {
      key,
      id: paymentId(key),
      settledAt: NOW,
      receipt: RECEIPT,
    })
  }
  const { buyerKey: buyer } = await leave(shop, 'unknown')
  const found = await shop.ledger.undelivered(buyer, 0, 1_000)
  t.strictSame(
    found.map(({ key }) => key),
    [KEY],
  )
})

t.test('asks the chain first, then deletes work for a payment without an expiry', async (t) => {
  const shop = await openShop(t)
  shop.bank.resolution = FAILED
  await leave(shop, 'fulfilled', { validBefore: Date.UTC(9999, 0), due: NOW })
  shop.clock.now += 2 * 3_600_000
  await sweep(shop)
  t.match(await shop.stored(), { state: 'voided' })
  t.equal(shop.bank.resolved, 1)
  shop.clock.now += LEASE_MS
  await sweep(shop)
  t.equal(await shop.stored(), undefined)
})
