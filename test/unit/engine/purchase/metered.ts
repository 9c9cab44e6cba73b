import { text } from 'node:stream/consumers'
import t from 'tap'
import { toMicros } from '../../../../src/engine/base/money.ts'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import { LEASE_MS } from '../../../../src/engine/base/money-times.ts'
import type { SettledPayment } from '../../../../src/engine/payment/payment.ts'
import type { Settlement } from '../../../../src/engine/payment/settlement.ts'
import { noteFailure } from '../../../../src/engine/purchase/payer-throttle.ts'
import type { Fulfillment, MeteredAnswer, PurchaseDeps } from '../../../../src/engine/purchase/request.ts'
import { noteUnpaid, unpaidStreams } from '../../../../src/engine/purchase/payer-credit.ts'
import { openStream } from '../../../../src/engine/purchase/stream.ts'
import { compileRoutes, routeAt } from '../../../support/catalogs.ts'
import { makeRecord } from '../../../support/payment-records.ts'
import {
  AWAY,
  FAILED,
  NOW,
  openShop,
  STORED,
  TRANSACTION,
  UNKNOWN,
  type Changes,
  type Shop,
} from '../../../support/scripted-protocol.ts'

const CHAT = routeAt(
  compileRoutes(`  /paid/chat:
    price: { metered: [{ value_of: /tokens, price: 0.001 }], ceiling: 0.005 }
    handler: chat
    summary: Words
    example: { tokens: 2 }
`),
  '/paid/chat',
)

/** An answer that costs this many micro-dollars. */
function costing(amount: bigint): () => Promise<MeteredAnswer> {
  const parts = [{ part: 'value_of /tokens', count: 1, amount: '0.001' }]
  return async () => ({ kind: 'metered', answer: STORED, amount: toMicros(amount), parts })
}

/** A payment that moves as much as it is told to; `moved`: what it has moved. */
function metered(shop: Shop) {
  const moved: bigint[] = []
  const settle: SettledPayment['settle'] = async (amount, journal) => {
    await journal.record(TRANSACTION)
    const [settlement = FAILED, ...more] = shop.bank.settlements
    if (more.length > 0) shop.bank.settlements = more
    if (settlement.kind !== 'settled') return settlement
    moved.push(amount)
    return { kind: 'settled', receipt: { ...settlement.receipt, amount: amount.toString() } }
  }
  const payment = shop.payment({ amountFor: (price) => price, settle })
  const buy = (amount: bigint, changes: Changes = {}, deps?: PurchaseDeps) =>
    shop.buy({ route: CHAT, payment, run: costing(amount), ...changes }, deps)
  return { moved, payment, buy }
}

t.test('settles what the work has cost, which is stored with its answer before', async (t) => {
  const shop = await openShop(t)
  const { moved, buy } = metered(shop)
  t.match(await buy(1_234n), {
    kind: 'answered',
    receipt: { amount: '1234' },
    record: { amount: '1234', authorizedAmount: '5000', usage: [{ part: 'value_of /tokens' }] },
  })
  t.strictSame(moved, [1_234n])
  t.strictSame(shop.history, ['reserved', 'settling', 'settled'])
  t.match(await shop.stored(), { amount: '1234', authorizedAmount: '5000', usage: [{ count: 1 }] })
})

t.test('settles at most what the payer has signed', async (t) => {
  const shop = await openShop(t)
  const { moved, buy } = metered(shop)
  t.match(await buy(9_000n), { kind: 'answered', record: { amount: '5000' } })
  t.strictSame(moved, [5_000n])
})

t.test('answers work that costs nothing, sends nothing, and takes its payment once', async (t) => {
  const shop = await openShop(t)
  const { moved, buy } = metered(shop)
  t.match(await buy(0n), { kind: 'answered', receipt: { transaction: '', amount: '0' } })
  t.strictSame(moved, [])
  t.strictSame(shop.history, ['reserved', 'fulfilled', 'settled'])
  t.match(await buy(0n, { digest: 'other arguments' }), { kind: 'replayRejected', code: 'payment_reused' })
})

t.test('withholds the answer, uncharged, when the amount cannot be settled', async (t) => {
  const shop = await openShop(t)
  const { moved, buy } = metered(shop)
  shop.bank.settlements = [FAILED]
  t.match(await buy(1_000n), { kind: 'settlementFailed' })
  t.strictSame(moved, [])
  t.match(await shop.stored(), { state: 'voided' })
})

t.test('keeps the amount of an answer that waits for the network', async (t) => {
  const shop = await openShop(t)
  const { moved, buy } = metered(shop)
  const good = shop.bank.settlements
  shop.bank.settlements = [AWAY]
  t.match(await buy(1_000n), { kind: 'refused', refusal: { code: 'chain_unavailable' } })
  shop.bank.settlements = good
  t.match(await buy(4_000n), { kind: 'answered', receipt: { amount: '1000' } }, 'the work is not done again')
  t.strictSame(moved, [1_000n])
})

t.test('meters again what was sold at a fixed price before', async (t) => {
  const shop = await openShop(t)
  const { moved, payment, buy } = metered(shop)
  const good = shop.bank.settlements
  shop.bank.settlements = [AWAY]
  const fixed = { ...payment, key: 'test:fixed' }
  t.match(await shop.buy({ route: CHAT, payment: fixed }), { kind: 'refused' }, 'its answer waits')
  shop.bank.settlements = good
  t.match(await buy(1_000n), { kind: 'answered', receipt: { amount: '1000' } })
  t.strictSame(moved, [1_000n])
})

t.test('suspends a payer who twice uses a payment up for something else during the work', async (t) => {
  const shop = await openShop(t)
  const { payment } = metered(shop)
  // Nothing is sent: the simulation before says that it was used.
  const settle: SettledPayment['settle'] = async () => UNKNOWN
  const buy = (key: string) =>
    shop.buy({ route: CHAT, payment: { ...payment, key, settle }, digest: key, run: costing(1_000n) })
  t.match(await buy('test:1'), { kind: 'pending' })
  t.match(await buy('test:2'), { kind: 'pending' })
  t.match(await buy('test:3'), { kind: 'refused', refusal: { code: 'payer_suspended' } })
})

t.test('holds nothing against a payer whose payments are late because an account was busy', async (t) => {
  const shop = await openShop(t)
  const { payment } = metered(shop)
  const late: Settlement = { kind: 'failed', refusal: { code: 'deadline_too_short', detail: 'too late' } }
  const buy = (key: string, settlement: Settlement) => {
    const settle: SettledPayment['settle'] = async () => settlement
    return shop.buy({ route: CHAT, payment: { ...payment, key, settle }, digest: key, run: costing(1_000n) })
  }
  t.match(await buy('test:1', late), { kind: 'settlementFailed' })
  t.match(await buy('test:2', late), { kind: 'settlementFailed' })
  t.match(await buy('test:3', FAILED), { kind: 'settlementFailed' }, 'it is worked for')
  t.match(await buy('test:4', FAILED), { kind: 'settlementFailed' })
  t.match(await buy('test:5', FAILED), { kind: 'refused', refusal: { code: 'payer_suspended' } })
})

t.test('leaves an unknown outcome with its amount', async (t) => {
  const shop = await openShop(t)
  const { buy } = metered(shop)
  shop.bank.settlements = [UNKNOWN]
  t.match(await buy(1_000n), { kind: 'pending' })
  t.match(await shop.stored(), { state: 'unknown', amount: '1000', answer: { kind: 'json' } })
})

t.test('sells nothing metered to a payer whose settlements have failed', async (t) => {
  const shop = await openShop(t)
  const { buy } = metered(shop)
  for (const id of ['pay_1', 'pay_2']) await noteFailure(shop.ledger, 'buyer', id, NOW)
  t.match(await buy(1_000n), { kind: 'refused', refusal: { code: 'payer_suspended' } })
  t.equal(await shop.stored(), undefined)
  t.match(await shop.buy(), { kind: 'answered' }, 'what has a fixed price is paid before the work')
})

const LIVE = routeAt(
  compileRoutes(`  /paid/live:
    price: { metered: [{ value_of: /tokens, price: 0.001 }], ceiling: 0.005, if_missing: 0.002 }
    handler: live
    summary: Words, one after the other
    response: { stream: true, media_type: text/event-stream }
`),
  '/paid/live',
)

/** A stream that costs this many micro-dollars, where it may be sent in pieces, and as much whole. */
function streaming(amount: bigint, source: () => AsyncGenerator<string>): Fulfillment['run'] {
  const parts = [{ part: 'value_of /tokens', count: 1, amount: '0.001' }]
  const priced = { amount: toMicros(amount), parts }
  return async ({ delivery }) => {
    if (delivery === 'whole') return { kind: 'metered', answer: STORED, ...priced }
    const limits = { maxSize: 1_000_000, patience: 20_000, end: delivery.until, now: () => NOW }
    const stream = openStream({ type: 'text/event-stream' }, source(), limits, new AbortController())
    return { kind: 'metered stream', stream, price: () => priced, priceOfPart: () => priced }
  }
}

async function* words(): AsyncGenerator<string> {
  yield 'data: {"tokens":1}\n\n'
}

t.test('sends a metered stream before it is paid, while its payer has credit', async (t) => {
  const shop = await openShop(t)
  const { moved, payment } = metered(shop)
  const run = streaming(1_500n, words)
  const buy = (key: string, validBefore = NOW + 60_000) => {
    shop.bank.validBefore = validBefore
    return shop.buy({ route: LIVE, payment: { ...payment, key }, digest: key, run })
  }
  const first = await buy('test:1')
  if (first.kind !== 'streaming') throw new Error(first.kind)
  t.equal(await text(first.answer.body), 'data: {"tokens":1}\n\n')
  t.strictSame(moved, [1_500n], 'it ends once it is paid')
  t.match(await shop.ledger.get('test:1'), { state: 'settled', amount: '1500', usage: [{ count: 1 }] })
  t.match(await buy('test:2', NOW + 30_000), { kind: 'answered' }, 'whole, for a payment that ends early')
  for (const id of ['pay_1', 'pay_2'])
    await noteUnpaid(shop.ledger, { ...makeRecord(id, NOW, 'mine'), amount: '5000000' }, NOW)
  t.match(await buy('test:3'), { kind: 'answered' }, 'whole, when too much was lost within an hour')
})

t.test('breaks a stream off that is not paid, and sells its payer nothing more after the work', async (t) => {
  const shop = await openShop(t)
  const { payment } = metered(shop)
  const buy = (key: string) =>
    shop.buy({ route: LIVE, payment: { ...payment, key }, digest: key, run: streaming(1_500n, words) })
  shop.bank.settlements = [FAILED]
  const unpaid = await buy('test:1')
  if (unpaid.kind !== 'streaming') throw new Error(unpaid.kind)
  await t.rejects(text(unpaid.answer.body), { code: 'settlement_failed' })
  await unpaid.answer.recorded
  t.strictSame(await unpaidStreams(shop.ledger, NOW), { count: 1, amount: 1_500n })
  t.match(await buy('test:2'), { kind: 'refused', refusal: { code: 'payer_suspended' } })
})

t.test('charges nothing for a stream of which nothing has come', async (t) => {
  const shop = await openShop(t)
  const { moved, payment } = metered(shop)
  // eslint-disable-next-line require-yield
  const broken = async function* (): AsyncGenerator<string> {
    throw new Error('broken')
  }
  const result = await shop.buy({ route: LIVE, payment, run: streaming(1_500n, broken) })
  if (result.kind !== 'streaming') throw new Error(result.kind)
  await t.rejects(text(result.answer.body), { message: 'broken' })
  await result.answer.recorded
  t.strictSame(moved, [])
  t.equal(await shop.stored(), undefined)
})

t.test('counts what was charged against the limit of a payer, and the ceiling until then', async (t) => {
  const shop = await openShop(t)
  const { payment } = metered(shop)
  const payerLimit = { calls: 10, spend: toMicros(6_000n), per: 86_400_000 }
  const buy = (key: string) =>
    shop.buy(
      { route: CHAT, payment: { ...payment, key }, digest: key, run: costing(1_000n) },
      { ...shop.deps, payerLimit },
    )
  t.match(await buy('test:1'), { kind: 'answered' })
  t.match(await buy('test:2'), { kind: 'answered' }, '1,000 and a ceiling of 5,000 are within 6,000')
  t.match(await buy('test:3'), { kind: 'refused', refusal: { code: 'payer_limit_reached' } })
})

t.test('charges what is recorded and answered, once, with a kill at every write', async (t) => {
  for (const [form, amount] of [
    ['some', 1_234n],
    ['nothing', 0n],
  ] as const)
    for (const moment of ['before', 'after'] as const)
      for (let last = 1; last <= 4; last += 1) {
        const name = `${form}, ${moment} write ${last}`
        const shop = await openShop(t)
        const { moved, buy } = metered(shop)
        let writes = 0
        const dead = new Error('killed')
        /** Whatever a dead process asks its ledger for fails. */
        const dying = async <T>(write: () => Promise<T>): Promise<T> => {
          writes += 1
          if (writes > last || (writes === last && moment === 'before')) throw dead
          const done = await write()
          if (writes === last) throw dead
          return done
        }
        const ledger: Ledger = {
          ...shop.ledger,
          insert: (record) => dying(() => shop.ledger.insert(record)),
          replace: (previous, next) => dying(() => shop.ledger.replace(previous, next)),
          remove: (record) => dying(() => shop.ledger.remove(record)),
          get: (key) => (writes >= last ? Promise.reject(dead) : shop.ledger.get(key)),
        }
        await buy(amount, {}, { ...shop.deps, ledger, owner: 'dies' }).catch(() => undefined)
        shop.clock.now += LEASE_MS + 5_000
        const record = await shop.stored()
        const known = moved.length > 0 ? { kind: 'settled' as const } : { kind: 'failed' as const }
        shop.bank.resolution =
          known.kind === 'settled'
            ? {
                kind: 'settled',
                receipt: {
                  transaction: '0x01',
                  network: 'test:1',
                  payer: 'buyer',
                  amount: record?.amount ?? '',
                },
              }
            : FAILED
        const again = await buy(amount, {}, { ...shop.deps, owner: 'lives' })
        t.match(again, { kind: 'answered', receipt: { amount: amount.toString() } }, name)
        t.strictSame(moved, amount === 0n ? [] : [amount], `${name}: moved`)
        t.match(await shop.stored(), { amount: amount.toString() }, `${name}: recorded`)
      }
})
