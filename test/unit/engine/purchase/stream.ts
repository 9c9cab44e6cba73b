import { mock } from 'node:test'
import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { LedgerError } from '../../../../src/engine/base/errors.ts'
import { isThrottled } from '../../../../src/engine/purchase/payer-throttle.ts'
import type { StreamedAnswer } from '../../../../src/engine/purchase/request.ts'
import type { PurchaseResult } from '../../../../src/engine/purchase/result.ts'
import { openStream } from '../../../../src/engine/purchase/stream.ts'
import { FAILED, FLOW, openShop, type Changes, type Shop } from '../../../support/scripted-protocol.ts'
import { until } from '../../../support/until.ts'

/** A source that makes a piece whenever it is asked for one. */
function source(pieces: number, size = 65_536) {
  const controller = new AbortController()
  const told = { made: 0, closed: () => controller.signal.aborted }
  async function* make(): AsyncGenerator<Uint8Array> {
    for (; told.made < pieces; told.made += 1) yield Buffer.alloc(size, told.made)
  }
  const limits = { maxSize: 10_000_000, patience: 20_000, end: Infinity, now: Date.now }
  const run: Changes['run'] = async () =>
    openStream({ type: 'text/event-stream' }, make(), limits, controller)
  return { told, run }
}

function streamed(result: PurchaseResult): StreamedAnswer {
  if (result.kind !== 'answered' || result.answer.kind !== 'stream') throw new Error(result.kind)
  return result.answer
}

async function stateOf(shop: Shop): Promise<object> {
  const { state, runs, refund, answer, leaseUntil = 0 } = (await shop.stored()) ?? {}
  return { state, runs, refund, size: answer?.size, leased: leaseUntil > shop.clock.now }
}

/** The buyer has been given as much as waits for them to read it. */
async function isFull({ body }: StreamedAnswer): Promise<void> {
  await until('nothing more is written', () => body instanceof PassThrough && body.writableNeedDrain)
  await settleDown()
}

/** What could still happen by itself has happened. */
async function settleDown(): Promise<void> {
  for (let turns = 0; turns < 200; turns += 1) await turn()
}

t.test('reads no more than a buyer takes', async (t) => {
  const shop = await openShop(t)
  const { told, run } = source(100)
  const answer = streamed(await shop.buy({ route: FLOW, run }))
  const { body, recorded } = answer
  await isFull(answer)
  t.ok(told.made < 4, `${told.made} of 100 pieces while nobody reads`)
  t.equal((await buffer(body)).length, 100 * 65_536)
  await recorded
  t.strictSame(await stateOf(shop), {
    state: 'fulfilled',
    runs: 1,
    refund: undefined,
    size: 100 * 65_536,
    leased: true,
  })
})

t.test('cuts off a buyer who takes nothing for ten seconds, and records the rest', async (t) => {
  const shop = await openShop(t)
  const { told, run } = source(20)
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const answer = streamed(await shop.buy({ route: FLOW, run }))
  const { body, recorded } = answer
  await isFull(answer)
  mock.timers.tick(9_999)
  await settleDown()
  t.notOk(body.destroyed)
  mock.timers.tick(1)
  await recorded
  t.ok(body.destroyed)
  t.equal(told.made, 20)
  t.match(await stateOf(shop), { state: 'fulfilled', size: 20 * 65_536 })
})

t.test('gives a connected buyer a stream even when its recording fails', async (t) => {
  const shop = await openShop(t)
  const { run } = source(5)
  const reported: unknown[] = []
  const answers: typeof shop.ledger.answers = {
    ...shop.ledger.answers,
    write: async (_, body) => {
      for await (const _piece of body) throw new LedgerError('the disk is full')
      throw new Error('there was nothing to write')
    },
  }
  const deps = {
    ...shop.deps,
    ledger: { ...shop.ledger, answers },
    report: (fault: unknown) => reported.push(fault),
  }
  const { body, recorded } = streamed(await shop.buy({ route: FLOW, run }, deps))
  t.equal((await buffer(body)).length, 5 * 65_536)
  await recorded
  t.match(reported, [{ message: 'the disk is full' }])
  t.match(await stateOf(shop), { state: 'settled', runs: 1, size: undefined, refund: undefined })
})

t.test('breaks streams off when the process ends, and owes them', async (t) => {
  const shop = await openShop(t)
  const { told, run } = source(100)
  const stopping = new AbortController()
  const deps = { ...shop.deps, stopping: stopping.signal }
  const { body, recorded } = streamed(await shop.buy({ route: FLOW, run }, deps))
  const broken = t.rejects(buffer(body))
  stopping.abort()
  await Promise.all([broken, recorded])
  t.ok(told.closed())
  t.strictSame(await stateOf(shop), {
    state: 'settled',
    runs: 1,
    refund: undefined,
    size: undefined,
    leased: false,
  })
  const again = streamed(await shop.buy({ route: FLOW, run: source(3).run }))
  t.equal((await buffer(again.body)).length, 3 * 65_536)
  t.equal(shop.bank.charges, 1)
})

t.test('ends the work of a stream whose settlement fails, and settles first after two', async (t) => {
  const shop = await openShop(t)
  shop.bank.settlements = [FAILED]
  for (const key of ['test:two', 'test:three']) {
    const { told, run } = source(1)
    const result = await shop.buy({ route: FLOW, run, payment: shop.payment({ key }) })
    t.equal(result.kind, 'settlementFailed')
    t.ok(told.closed())
    t.equal(told.made, 0, 'nothing of it was read')
  }
  await until('the payer is known', () => isThrottled(shop.ledger, 'buyer', shop.clock.now))
  const order: string[] = []
  shop.bank.beforeRecord = async () => {
    order.push('settled')
  }
  const { run } = source(1)
  await shop.buy({
    route: FLOW,
    payment: shop.payment({ key: 'test:four' }),
    run: async (call) => {
      order.push('run')
      if (run === undefined) throw new Error('there is work')
      return run(call)
    },
  })
  t.strictSame(order, ['settled'], 'no work is begun for them before')
})
