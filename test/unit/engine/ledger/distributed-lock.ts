import t, { type Test } from 'tap'
import { setImmediate as breathe } from 'node:timers/promises'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import { DistributedLock } from '../../../../src/engine/ledger/distributed-lock.ts'
import { openTemporaryLedger } from '../../../support/temporary-ledger.ts'

const LEASE_MS = 15_000

interface Fixture {
  readonly ledger: Ledger
  readonly clock: { now: number }
  readonly turn: (owner: string, over?: Ledger) => DistributedLock
}

/** Time passes by sleeping only. */
async function openFixture(t: Test): Promise<Fixture> {
  const ledger = await openTemporaryLedger(t)
  const clock = { now: 1_800_000_000_000 }
  const sleep = async (ms: number): Promise<void> => {
    clock.now += ms
    await breathe()
  }
  const turn = (owner: string, over = ledger): DistributedLock =>
    new DistributedLock({ ledger: over, owner, now: () => clock.now, sleep, name: 'signer' })
  return { ledger, clock, turn }
}

t.test('gives the lock to one process, and passes on the state that it leaves', async (t) => {
  const { turn } = await openFixture(t)
  const [one, two] = [turn('one'), turn('two')]
  t.match(await one.acquire(), { owner: 'one', fencingToken: 1, leaseState: undefined })
  t.equal(await one.extend(10_000), true)
  t.equal(await two.extend(10_000), false, 'who has not taken it does not have it')
  await one.release({ value: 7, at: 1 })
  t.equal(await one.extend(10_000), false)
  t.match(await two.acquire(), { owner: 'two', fencingToken: 2, leaseState: { value: 7, at: 1 } })
})

t.test('gives up waiting for a lock after its limit', async (t) => {
  const { turn, clock, ledger } = await openFixture(t)
  await ledger.lease('signer', 'one', clock.now, clock.now + 60_000)
  const began = clock.now
  t.equal(await turn('two').acquire(), undefined)
  t.ok(clock.now - began > LEASE_MS, 'longer than the lease of one that has died')
})

t.test('takes the lock of a dead process when its lease ends', async (t) => {
  const { turn } = await openFixture(t)
  await turn('one').acquire()
  t.match(await turn('two').acquire(), { owner: 'two', fencingToken: 2 })
})

t.test('renews a lease before work that would outlast it', async (t) => {
  const { turn, clock, ledger } = await openFixture(t)
  const one = turn('one')
  await one.acquire()
  clock.now += 5_000
  t.equal(await one.extend(10_500), true)
  clock.now += 12_000
  t.equal(await ledger.lease('signer', 'two', clock.now, clock.now + 1), undefined)
})

t.test('refuses the holder whose turn another process has ended', async (t) => {
  const { turn, clock, ledger } = await openFixture(t)
  const late = turn('late')
  await late.acquire()
  clock.now += LEASE_MS
  const other = await ledger.lease('signer', 'other', clock.now, clock.now + 1_000)
  t.equal(await late.extend(10_500), false, 'while the other one has it')
  await late.release({ value: 1, at: 1 })
  if (other !== undefined) await ledger.release(other, { value: 9, at: 9 })

  t.match(await late.acquire(), { fencingToken: 3, leaseState: { value: 9, at: 9 } })
  clock.now += LEASE_MS
  const again = await ledger.lease('signer', 'other', clock.now, clock.now + 1_000)
  if (again !== undefined) await ledger.release(again, { value: 11, at: 11 })
  t.equal(await late.extend(10_500), false, 'after the other one has had it')
  await late.release({ value: 1, at: 1 })
  t.strictSame((await ledger.lease('signer', 'third', clock.now, clock.now + 1))?.leaseState, {
    value: 11,
    at: 11,
  })
})

t.test('lets a waiting process have a turn, and only then', async (t) => {
  const { turn, clock } = await openFixture(t)
  const [busy, waiting] = [turn('busy'), turn('waiting')]
  await busy.yieldIfContended(undefined)
  await busy.acquire()
  clock.now += 5_000
  await busy.yieldIfContended({ value: 5, at: 5 })
  t.equal(await busy.extend(0), true, 'nobody waits')
  const taken = waiting.acquire()
  const began = clock.now
  await breathe()
  await busy.yieldIfContended({ value: 6, at: 6 })
  t.equal(await busy.extend(0), true, 'its turn has begun a moment ago')
  while (await busy.extend(0)) {
    await breathe()
    await busy.yieldIfContended({ value: 7, at: 7 })
  }
  t.ok(clock.now - began >= 1_000)
  t.match(await taken, { owner: 'waiting', leaseState: { value: 7, at: 7 } })
  t.equal(await busy.extend(0), false)
})

t.test('keeps what was done when the store is away', async (t) => {
  const { turn, ledger, clock } = await openFixture(t)
  let away = false
  const failing: Ledger = {
    ...ledger,
    lease: (...args) => (away ? Promise.reject(new Error('away')) : ledger.lease(...args)),
    release: () => Promise.reject(new Error('away')),
  }
  const one = turn('one', failing)
  await one.acquire()
  away = true
  clock.now += 1_000
  await one.yieldIfContended(undefined)
  t.equal(await one.extend(0), true)
  await one.release(undefined)
  t.equal(await one.extend(0), false)
})
