import t, { type Test } from 'tap'
import { LedgerError } from '../../../../src/engine/base/errors.ts'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import { openRedisLedger } from '../../../../src/engine/ledger/redis/redis-ledger.ts'
import { KEYS } from '../../../../src/engine/ledger/redis/redis-scripts.ts'
import { UsageStore } from '../../../../src/engine/usage/usage-store.ts'
import { answersIn } from '../../../../src/engine/usage/latency.ts'
import { redisAbsence, startRedis } from '../../../support/redis.ts'
import { openTemporaryLedger } from '../../../support/temporary-ledger.ts'

const DAY = 86_400_000
const NOON = Date.parse('2026-11-21T12:00:00Z')

async function openRedis(t: Test): Promise<Ledger> {
  const redis = await startRedis()
  const ledger = await openRedisLedger({ url: redis.url, settings: 'checked', replicas: 0 })
  t.teardown(async () => {
    await ledger.close()
    await redis.stop()
  })
  return ledger
}

/** Processes on one ledger, with one clock. */
function openClock(ledger: Ledger) {
  let now = NOON
  return {
    start: (owner: string) => new UsageStore({ ledger, owner, now: () => now }),
    pass: (ms: number) => {
      now += ms
    },
    facts: () => ledger.listExpiring('usage', now),
    now: () => now,
  }
}

async function unpaid(usageStore: UsageStore): Promise<number[]> {
  return (await usageStore.read()).map(({ counts }) => counts.get('x')?.stages.unpaid ?? 0)
}

function testUsageStore(name: string, open: (t: Test) => Promise<Ledger>): void {
  t.test(`${name}: every process reads what any has written, once`, async (t) => {
    const clock = openClock(await open(t))
    const [one, other] = [clock.start('one'), clock.start('other')]
    for (const usageStore of [one, one, other]) usageStore.of('x').count('unpaid')
    one.of('x').succeed(20, clock.now())
    other.of('x').succeed(3_000, clock.now() + 5)
    t.strictSame((await unpaid(one)).at(-1), 2, 'its own before anything is written')
    await one.write()
    await other.write()
    clock.pass(10_000)
    for (const reader of [one, other, clock.start('third')]) {
      const today = (await reader.read()).at(-1)
      const counts = today?.counts.get('x')
      t.equal(counts?.stages.unpaid, 3)
      t.equal(answersIn(counts?.latency ?? []), 2)
      t.equal(counts?.lastSuccess, NOON + 5)
    }
  })

  t.test(`${name}: counts a page that is rewritten once, and keeps one copy`, async (t) => {
    const clock = openClock(await open(t))
    const one = clock.start('one')
    for (let minute = 0; minute < 5; minute += 1) {
      one.of('x').count('unpaid')
      await one.write()
      await one.write()
      clock.pass(60_000)
      t.equal((await clock.facts()).length, 1)
      t.equal((await unpaid(clock.start('reader'))).at(-1), minute + 1)
    }
  })

  t.test(`${name}: continues the counts of a process that is started again`, async (t) => {
    const clock = openClock(await open(t))
    for (const run of ['first', 'second', 'third']) {
      const usageStore = clock.start(run)
      usageStore.of('x').count('unpaid')
      await usageStore.write()
      usageStore.of('x').count('unpaid')
      // Killed before it writes this one down.
    }
    t.equal((await unpaid(clock.start('fourth'))).at(-1), 3)
  })

  t.test(`${name}: keeps days apart, and drops the eighth`, async (t) => {
    const clock = openClock(await open(t))
    const one = clock.start('one')
    const reader = clock.start('reader')
    for (let day = 1; day <= 9; day += 1) {
      for (let count = 0; count < day; count += 1) one.of('x').count('unpaid')
      await one.write()
      clock.pass(DAY)
    }
    clock.pass(-DAY)
    t.strictSame(await unpaid(reader), [3, 4, 5, 6, 7, 8, 9])
    t.strictSame(await unpaid(one), [3, 4, 5, 6, 7, 8, 9])
    t.equal((await reader.read())[0]?.date, '2026-11-23')
    t.equal((await clock.facts()).length, 7, 'and is not kept')
    clock.pass(8 * DAY)
    t.strictSame(await unpaid(reader), [0, 0, 0, 0, 0, 0, 0])
    t.equal((await clock.facts()).length, 0)
  })

  t.test(`${name}: ignores a page of a newer version`, async (t) => {
    const ledger = await open(t)
    const clock = openClock(ledger)
    const page = { version: 2, by: 'newer', date: '2026-11-21', number: 1, counts: 'another shape' }
    await ledger.addExpiring('usage', JSON.stringify(page), NOON + DAY)
    t.strictSame((await unpaid(clock.start('one'))).at(-1), 0)
  })
}

testUsageStore('lmdb', openTemporaryLedger)
const absence = redisAbsence()
if (absence === undefined) testUsageStore('redis', openRedis)
else t.comment(absence)

const unread = { skip: absence ?? false }
t.test('redis: expires what is unread, so that payments keep their space', unread, async (t) => {
  const redis = await startRedis()
  const ledger = await openRedisLedger({ url: redis.url, settings: 'checked', replicas: 0 })
  t.teardown(async () => {
    await ledger.close()
    await redis.stop()
  })
  const clock = openClock(ledger)
  const one = clock.start('one')
  for (let minute = 0; minute < 30; minute += 1) {
    one.of('x').count('unpaid')
    await one.write()
    clock.pass(60_000)
  }
  const kept = await redis.command('ZCARD', KEYS.facts('usage'))
  t.ok(typeof kept === 'number' && kept <= 2, `${String(kept)} pages of one day`)
})

t.test('writes what is counted during a write with the next one', async (t) => {
  const ledger = await openTemporaryLedger(t)
  let during = (): void => undefined
  const slow: Ledger = {
    ...ledger,
    addExpiring: async (...fact) => {
      during()
      return ledger.addExpiring(...fact)
    },
  }
  const clock = openClock(slow)
  const one = clock.start('one')
  one.of('x').count('unpaid')
  during = () => {
    during = () => undefined
    one.of('x').count('unpaid')
    one.own()
  }
  await one.write()
  await one.write()
  t.equal((await unpaid(clock.start('reader'))).at(-1), 2)
})

t.test('keeps every count while the store is away, even when it had stored them', async (t) => {
  const ledger = await openTemporaryLedger(t)
  let mood: 'well' | 'deaf' | 'mute' = 'deaf'
  const moody: Ledger = {
    ...ledger,
    addExpiring: async (...fact) => {
      const kept = mood === 'deaf' ? 0 : await ledger.addExpiring(...fact)
      if (mood !== 'well') throw new LedgerError('away')
      return kept
    },
  }
  const clock = openClock(moody)
  const one = clock.start('one')
  for (mood of ['deaf', 'mute', 'deaf', 'mute'] as const) {
    one.of('x').count('unpaid')
    await t.rejects(one.write(), LedgerError)
    clock.pass(60_000)
  }
  mood = 'well'
  await one.write()
  t.equal((await unpaid(clock.start('reader'))).at(-1), 4)
  t.equal((await clock.facts()).length, 1)
})

t.test('ends a failing state of a route by a success in any process', async (t) => {
  const clock = openClock(await openTemporaryLedger(t))
  const [one, other] = [clock.start('one'), clock.start('other')]
  const inARow = async (): Promise<number | undefined> => {
    await one.write()
    await other.write()
    clock.pass(10_000)
    return (await clock.start('reader').read()).at(-1)?.counts.get('x')?.failedInARow
  }
  for (const _ of [1, 2, 3]) one.of('x').fail(clock.now())
  t.equal(await inARow(), 3)
  other.of('x').succeed(5, clock.now())
  t.equal(await inARow(), 0)
  other.of('x').fail(clock.now())
  t.equal(await inARow(), 1)
})
