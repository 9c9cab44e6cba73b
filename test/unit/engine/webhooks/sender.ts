import t from 'tap'
import type { HttpTransport } from '../../../../src/engine/base/runtime.ts'
import type { PaymentRecord } from '../../../../src/engine/ledger/payment-record.ts'
import type { NetworkHealth } from '../../../../src/engine/payment/network-health.ts'
import { announceChanges } from '../../../../src/engine/webhooks/announcements.ts'
import { QUEUE, type Receiver, withOutbox } from '../../../../src/engine/webhooks/outbox.ts'
import { WebhookSender } from '../../../../src/engine/webhooks/webhook-sender.ts'
import { findNetwork } from '../../../../src/engine/base/networks.ts'
import { openSimulatedLedger, StoredData } from '../../../simulate/store.ts'
import { makeRecord, nextRecord } from '../../../support/payment-records.ts'

const URL = 'https://hooks.example/ratecard'
const OTHER = 'https://crm.example/sales'

interface Taken {
  readonly id: string
  readonly type: string
  readonly payment: unknown
}

/** A shop with a receiver whose answers the test decides. */
function openShop(
  events: Receiver['events'] = ['sale', 'refund_due', 'network_closed', 'listing_dropped'],
  urls: readonly string[] = [URL],
) {
  const clock = { now: 1_800_000_000_000 }
  const data = new StoredData()
  const taken: Taken[] = []
  const line: { answer: number | 'gone' | 'late'; gone: string[]; log: string[] } = {
    answer: 200,
    gone: [],
    log: [],
  }
  const receivers = (): Receiver[] => urls.map((url) => ({ url, events, secret: Buffer.alloc(32, 7) }))
  const http: HttpTransport = async (url, { headers, body }) => {
    if (line.answer === 'gone' || line.gone.includes(String(url))) throw new Error('connect ECONNREFUSED')
    const { type, data: sent } = JSON.parse(body ?? '')
    if (line.answer === 200 || line.answer === 'late')
      taken.push({ id: headers['webhook-id'] ?? '', type, payment: sent.payment })
    if (line.answer === 'late') throw new Error('no answer in time')
    return { status: line.answer, header: () => undefined, body: (async function* () {})() }
  }
  const plain = openSimulatedLedger(data, () => clock.now)
  const ledger = withOutbox(plain, receivers, () => undefined)
  /** A process that has just been started. */
  const newSender = (owner = 'one'): WebhookSender =>
    new WebhookSender({
      ledger,
      owner,
      now: () => clock.now,
      http,
      deadline: () => new AbortController().signal,
      receivers,
      log: (text) => line.log.push(text),
    })
  const waiting = async (): Promise<number> => {
    let count = 0
    for await (const _ of plain.states.list(QUEUE)) count += 1
    return count
  }
  const sell = async (key: string): Promise<PaymentRecord> => {
    const reserved = makeRecord(key, clock.now)
    await ledger.insert(reserved)
    const { network, payer, amount } = reserved
    const receipt = { transaction: '0xaa', network, payer, amount }
    const settled = nextRecord(reserved, { state: 'settled', receipt, settledAt: clock.now })
    await ledger.replace(reserved, settled)
    return settled
  }
  const going = new AbortController().signal
  return { clock, taken, line, ledger, plain, receivers, newSender, waiting, sell, going }
}

t.test('tells a receiver of each sale once', async (t) => {
  const shop = openShop()
  const sender = shop.newSender()
  const one = await shop.sell('x402:one')
  await shop.sell('x402:two')
  t.equal(await shop.waiting(), 2)
  await sender.send(shop.going)
  await sender.send(shop.going)
  t.equal(shop.taken.length, 2)
  t.match(
    shop.taken.find(({ payment }) => payment === one.id),
    { type: 'sale' },
  )
  t.equal(await shop.waiting(), 0)
  t.equal(new Set(shop.taken.map(({ id }) => id)).size, 2)
})

t.test(
  'sends an event again until it is taken, with the same id, over restarts and longer pauses',
  async (t) => {
    const shop = openShop()
    await shop.sell('x402:one')
    for (const answer of [500, 'gone', 302] as const) {
      shop.line.answer = answer
      await shop.newSender().send(shop.going)
      shop.clock.now += 3_600_000
    }
    t.equal(shop.taken.length, 0)
    t.equal(await shop.waiting(), 1)
    shop.line.answer = 200
    await shop.newSender().send(shop.going)
    t.match(shop.taken, [{ type: 'sale' }])
    t.equal(await shop.waiting(), 0)
  },
)

t.test('waits between two tries, and longer with each', async (t) => {
  const shop = openShop()
  const sender = shop.newSender()
  await shop.sell('x402:one')
  shop.line.answer = 500
  await sender.send(shop.going)
  shop.line.answer = 200
  shop.clock.now += 1_000
  await sender.send(shop.going)
  t.equal(shop.taken.length, 0)
  shop.clock.now += 1_000
  await sender.send(shop.going)
  t.equal(shop.taken.length, 1)
})

t.test('tells a receiver that was away for an hour of what has waited within five minutes', async (t) => {
  const shop = openShop()
  const sender = shop.newSender()
  const pass = async (seconds: number): Promise<void> => {
    for (const end = shop.clock.now + seconds * 1_000; shop.clock.now < end; shop.clock.now += 5_000)
      await sender.send(shop.going)
  }
  shop.line.answer = 'gone'
  for (let number = 0; number < 30; number += 1) {
    await shop.sell(`x402:${number}`)
    await pass(120)
  }
  t.equal(shop.taken.length, 0)
  shop.line.answer = 200
  await pass(305)
  t.ok(shop.taken.length > 10, `${shop.taken.length} are told`)
  await pass(3_600)
  t.equal(new Set(shop.taken.map(({ payment }) => payment)).size, 30)
  t.equal(await shop.waiting(), 0)
})

t.test('sends the events of a payment in their order, whatever fails in between', async (t) => {
  const shop = openShop()
  const settled = await shop.sell('x402:one')
  await shop.ledger.replace(
    settled,
    nextRecord(settled, { refund: { kind: 'due', reason: 'source_error' }, redeliver: 0 }),
  )
  shop.line.answer = 500
  await shop.newSender().send(shop.going)
  await shop.sell('x402:two')
  shop.line.answer = 200
  await shop.newSender().send(shop.going)
  t.match(shop.taken, [{ type: 'sale', payment: /^pay_/ }], 'another payment is not held up')
  shop.clock.now += 10_000
  await shop.newSender().send(shop.going)
  const order = shop.taken.filter(({ payment }) => payment === settled.id).map(({ type }) => type)
  t.strictSame(order, ['sale', 'refund_due'])
})

t.test(
  'tells every event at least once and in order of its payment, after an hour away, failures and restarts',
  async (t) => {
    const shop = openShop()
    const sold: string[] = []
    const sell = async (): Promise<void> => {
      const settled = await shop.sell(`x402:${sold.length}`)
      await shop.ledger.replace(
        settled,
        nextRecord(settled, { refund: { kind: 'due', reason: 'source_error' }, redeliver: 0 }),
      )
      sold.push(settled.id)
    }
    const fiveMinutes = async (owner: string): Promise<void> => {
      await sell()
      await shop.newSender(owner).send(shop.going)
      shop.clock.now += 5 * 60_000
    }
    shop.line.answer = 'gone'
    for (let minutes = 0; minutes <= 60; minutes += 5) await fiveMinutes(`process ${minutes}`)
    shop.line.answer = 500
    for (let minutes = 0; minutes < 10; minutes += 5) await fiveMinutes(`process ${minutes}`)
    t.equal(shop.taken.length, 0)
    // Answers that come too late are lost, though the receiver has the event.
    shop.line.answer = 'late'
    await fiveMinutes('slow')
    t.ok(shop.taken.length > 0)
    shop.line.answer = 200
    for (let minutes = 0; minutes < 120; minutes += 1) {
      await shop.newSender('after').send(shop.going)
      shop.clock.now += 60_000
    }
    t.equal(await shop.waiting(), 0)
    for (const id of sold) {
      const told = shop.taken.filter(({ payment }) => payment === id).map(({ type }) => type)
      const times = (type: string): number => told.filter((each) => each === type).length
      t.ok(times('sale') >= 1 && times('refund_due') >= 1, 'each at least once')
      t.ok(told.lastIndexOf('sale') < told.indexOf('refund_due'), 'in their order')
    }
    t.equal(new Set(shop.taken.map(({ id }) => id)).size, 2 * sold.length, 'one id for each event')
  },
)

t.test('leaves a receiver alone that cannot be reached, and sends everything once it is back', async (t) => {
  const shop = openShop()
  const sender = shop.newSender()
  for (let number = 0; number < 50; number += 1) await shop.sell(`x402:${number}`)
  shop.line.answer = 'gone'
  await sender.send(shop.going)
  t.ok(shop.line.log.length <= 8, 'at most one for each of those that are sent at once')
  shop.line.answer = 200
  for (let tries = 0; tries < 20; tries += 1) {
    shop.clock.now += 60_000
    await sender.send(shop.going)
  }
  t.equal(shop.taken.length, 50)
  t.equal(await shop.waiting(), 0)
})

t.test('tells a receiver at once while any number of events wait for another', async (t) => {
  for (const gone of [URL, OTHER]) {
    const shop = openShop(undefined, [URL, OTHER])
    const sender = shop.newSender()
    shop.line.gone = [gone]
    for (let number = 0; number < 2_500; number += 1) await shop.sell(`x402:${number}`)
    await sender.send(shop.going)
    t.equal(shop.taken.length, 2_500)
    const { id } = await shop.sell('x402:new')
    await sender.send(shop.going)
    t.equal(shop.taken.at(-1)?.payment, id)
  }
})

t.test('lets one process send at a time, and another one go on after its end', async (t) => {
  const shop = openShop()
  await shop.sell('x402:one')
  const [one, two] = [shop.newSender('one'), shop.newSender('two')]
  await Promise.all([one.send(shop.going), two.send(shop.going)])
  t.equal(shop.taken.length, 1)
  await shop.sell('x402:two')
  await two.send(shop.going)
  t.equal(shop.taken.length, 1, 'the first holds the lease')
  await one.release()
  await two.send(shop.going)
  t.equal(shop.taken.length, 2)
})

t.test('stores nothing for events that nobody wants, and gives one up after three days', async (t) => {
  const none = openShop(['network_closed'])
  await none.sell('x402:one')
  t.equal(await none.waiting(), 0)
  const shop = openShop()
  await shop.sell('x402:one')
  shop.clock.now += 3 * 86_400_000
  shop.line.answer = 'gone'
  await shop.newSender().send(shop.going)
  t.equal(await shop.waiting(), 0)
  t.match(shop.line.log, [/given up/])
})

t.test('says once that a network has closed, whichever processes have seen it', async (t) => {
  const shop = openShop()
  const network = findNetwork('base')
  if (network === undefined) return t.fail('the network is known')
  const health = (trouble: string | undefined): NetworkHealth => ({
    network,
    balances: new Map(),
    unmined: { count: 0, age: 0 },
    totals: { transactions: 0, gasSpent: 0n },
    reverts: 0,
    gasLost: 0n,
    trouble,
  })
  const report = { facilitator: 'f.example', operation: 'ping', reason: 'no', at: 1 }
  const look = (trouble: string | undefined, status: 'success' | 'rejected'): Promise<unknown> =>
    Promise.all([
      announceChanges(shop.plain, shop.receivers(), [health(trouble)], [{ ...report, status }]),
      announceChanges(shop.plain, shop.receivers(), [health(trouble)], [{ ...report, status }]),
    ])
  await look(undefined, 'success')
  t.equal(await shop.waiting(), 0)
  await look('no gas', 'rejected')
  await look('no gas at all', 'rejected')
  t.equal(await shop.waiting(), 2)
  await look(undefined, 'success')
  await look('no gas', 'rejected')
  t.equal(await shop.waiting(), 4, 'it has closed again')
  const sender = shop.newSender()
  await sender.send(shop.going)
  t.strictSame(shop.taken.map(({ type }) => type).sort(), [
    'listing_dropped',
    'listing_dropped',
    'network_closed',
    'network_closed',
  ])
})
