import { systemEvery } from '../../../../src/engine/base/every.ts'
import t, { type Test } from 'tap'
import { mkdtempSync, rmSync } from 'node:fs'
import { mock } from 'node:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  LeaseLostError,
  reserve,
  acquireExpired,
  type PaymentLease,
  type LeaseContext,
} from '../../../../src/engine/ledger/lease.ts'
import { CommitAbandonedError, JointCommit } from '../../../../src/engine/ledger/joint-commit.ts'
import { cleanUp } from '../../../../src/engine/ledger/clean-up.ts'
import type { PaymentRecord, Receipt } from '../../../../src/engine/ledger/payment-record.ts'
import { LEASE_MS } from '../../../../src/engine/base/money-times.ts'
import { LedgerError } from '../../../../src/engine/base/errors.ts'
import { dateOf } from '../../../../src/engine/ledger/sales-totals.ts'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import { openLmdbLedger } from '../../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { asStored, makePurchase } from '../../../support/payment-records.ts'
import { runTogether } from '../../../support/ledger-process.ts'
import { until } from '../../../support/until.ts'

mock.timers.enable({ apis: ['setInterval'] })
t.teardown(() => mock.timers.reset())

const PURCHASE = makePurchase()
const RECEIPT: Receipt = { transaction: '0x01', network: 'eip155:84532', payer: '0xb0', amount: '5000' }
const DISPATCH = { kind: 'own', hash: '0x01', raw: '0x02', signer: '0x03', nonce: 4 } as const

/** Two processes on one ledger, and a clock that is moved by hand. */
interface Fixture {
  readonly ledger: Ledger
  readonly clock: { now: number }
  readonly mine: LeaseContext
  readonly theirs: LeaseContext
}

function newPlace(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-lease-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Renewals come when the test lets time pass. */
async function openFixture(t: Test): Promise<Fixture> {
  const ledger = await openLmdbLedger(newPlace(t))
  t.teardown(() => ledger.close())
  const clock = { now: 1_800_000_000_000 }
  const now = (): number => clock.now
  const context = { ledger, now, every: systemEvery }
  return { ledger, clock, mine: { ...context, owner: 'mine' }, theirs: { ...context, owner: 'theirs' } }
}

/** A reservation that has to succeed; put down with the test. */
async function reservedBy(t: Test, context: LeaseContext): Promise<PaymentLease> {
  const reservation = await reserve(context, PURCHASE)
  if (reservation.kind !== 'reserved') throw new Error(`the payment is ${reservation.record.state}`)
  t.teardown(() => reservation.lease.stopRenewal())
  return reservation.lease
}

async function takenOver(t: Test, context: LeaseContext, record: PaymentRecord): Promise<PaymentLease> {
  const lease = await acquireExpired(context, record)
  if (lease === undefined) throw new Error('the payment was not taken over')
  t.teardown(() => lease.stopRenewal())
  return lease
}

t.test('gives the work to one of many copies of a payment, and tells the others who has it', async (t) => {
  const { mine, ledger, clock } = await openFixture(t)
  const reservations = await Promise.all(Array.from({ length: 50 }, () => reserve(mine, PURCHASE)))
  const winners = reservations.flatMap((each) => (each.kind === 'reserved' ? [each.lease] : []))
  t.teardown(() => winners.forEach((lease) => lease.stopRenewal()))
  t.equal(winners.length, 1)
  const [winner] = winners
  t.match(winner?.record, { ...PURCHASE, state: 'reserved', owner: 'mine', attempts: 1, version: 1 })
  t.equal(winner?.record.leaseUntil, clock.now + LEASE_MS)
  t.strictSame(await ledger.get(PURCHASE.key), winner?.record)
  for (const each of reservations) if (each.kind === 'taken') t.strictSame(each.record, winner?.record)
})

t.test('gives the work to one of many copies over two processes', async (t) => {
  const said = await runTogether(2, ['lmdb', newPlace(t), 'reserve', PURCHASE.key])
  t.strictSame(new Set(said), new Set(['0', '1']))
})

t.test('frees a payment whose work has failed, for another request too', async (t) => {
  const { mine, theirs, clock } = await openFixture(t)
  const first = await reservedBy(t, mine)
  await first.advance('fulfilled', { answer: { kind: 'text', type: 'text/plain', text: 'old' } })
  await first.advance('settling', { dispatch: DISPATCH })
  await first.void()
  first.stopRenewal()
  clock.now += 1
  const reservation = await reserve(theirs, { ...PURCHASE, digest: 'other arguments' })
  t.equal(reservation.kind, 'reserved')
  if (reservation.kind !== 'reserved') return
  reservation.lease.stopRenewal()
  const { record } = reservation.lease
  t.match(record, { state: 'reserved', owner: 'theirs', digest: 'other arguments', attempts: 2 })
  t.equal(record.createdAt, clock.now, 'it is as old as its new use')
  t.notOk(
    'answer' in record || 'dispatch' in record || 'receipt' in record,
    'nothing of the first use is left',
  )
  await t.rejects(first.advance('fulfilled'), LeaseLostError, 'the previous owner has lost it')
})

t.test('frees the reservation of a dead process when its lease ends', async (t) => {
  const { mine, theirs, clock } = await openFixture(t)
  const dead = await reservedBy(t, mine)
  dead.stopRenewal()
  clock.now += LEASE_MS - 1
  t.match(await reserve(theirs, PURCHASE), { kind: 'taken', record: { owner: 'mine' } })
  clock.now += 1
  const lease = await reservedBy(t, theirs)
  t.match(lease.record, { state: 'reserved', owner: 'theirs', attempts: 2 })
})

t.test('treats a payment whose record is deleted at that moment as new', async (t) => {
  const { mine, ledger } = await openFixture(t)
  let tries = 0
  const deleting: Ledger = {
    ...ledger,
    insert: async (record) => {
      tries += 1
      return tries > 1 ? ledger.insert(record) : { ...record, state: 'voided' }
    },
  }
  t.match((await reservedBy(t, { ...mine, ledger: deleting })).record, { state: 'reserved' })
})

t.test('gives the reservation of a dead process to one of many', async (t) => {
  const { mine, theirs, clock } = await openFixture(t)
  ;(await reservedBy(t, mine)).stopRenewal()
  clock.now += LEASE_MS
  const reservations = await Promise.all(Array.from({ length: 50 }, () => reserve(theirs, PURCHASE)))
  for (const each of reservations) if (each.kind === 'reserved') each.lease.stopRenewal()
  t.equal(reservations.filter(({ kind }) => kind === 'reserved').length, 1)
})

t.test('keeps fulfilled and charged payments from being reserved again', async (t) => {
  for (const state of ['fulfilled', 'settling', 'settled', 'sent', 'unknown'] as const) {
    const { mine, theirs, clock } = await openFixture(t)
    const lease = await reservedBy(t, mine)
    await lease.advance(state)
    lease.stopRenewal()
    clock.now += 10 * LEASE_MS
    t.match(await reserve(theirs, PURCHASE), { kind: 'taken', record: { state } })
  }
})

t.test('keeps the payments of a living process, and gives those of a dead one to one of many', async (t) => {
  const { mine, theirs, clock } = await openFixture(t)
  const dead = await reservedBy(t, mine)
  const record = await dead.advance('fulfilled', { answer: { kind: 'json', value: { a: 1 } } })
  dead.stopRenewal()
  clock.now += LEASE_MS - 1
  t.equal(await acquireExpired(theirs, record), undefined)
  clock.now += 1
  const leases = await Promise.all(Array.from({ length: 50 }, () => acquireExpired(theirs, record)))
  const [lease, ...others] = leases.filter((each) => each !== undefined)
  lease?.stopRenewal()
  t.strictSame(others, [])
  t.match(lease?.record, {
    state: 'fulfilled',
    owner: 'theirs',
    attempts: 2,
    leaseUntil: clock.now + LEASE_MS,
  })
  t.strictSame(await lease?.readAnswer(), { kind: 'json', value: { a: 1 } }, 'the work is not lost')
})

t.test('refuses changes of a process that was presumed dead', async (t) => {
  const { mine, theirs, ledger, clock } = await openFixture(t)
  const late = await reservedBy(t, mine)
  const record = await late.advance('fulfilled')
  clock.now += LEASE_MS
  const lease = await takenOver(t, theirs, record)
  const writes: (() => Promise<unknown>)[] = [
    () => late.advance('settling', { dispatch: DISPATCH }),
    () => late.settle(RECEIPT),
    () => late.void(),
    () => late.release(),
    () => late.delete(),
  ]
  for (const write of writes) await t.rejects(write(), LeaseLostError)
  await t.rejects(late.advance('voided'), {
    name: 'LeaseLostError',
    message: `another process has taken over payment ${record.id}`,
  })
  t.strictSame(late.record, record, 'it knows what it knew')
  t.strictSame(await ledger.get(PURCHASE.key), lease.record, 'and nothing was written')
})

t.test(
  'keeps what was sent until the payment expires, for a reorganization may undo it, then erases it',
  async (t) => {
    const url = 'https://facilitator.example'
    for (const [dispatch, erased] of [
      [DISPATCH, { kind: 'own', hash: '0x01', signer: '0x03', nonce: 4 }],
      [
        { kind: 'payer', hash: '0x01', raw: '0x02' },
        { kind: 'payer', hash: '0x01' },
      ],
      [
        { kind: 'facilitator', url, request: '{}' },
        { kind: 'facilitator', url },
      ],
    ] as const) {
      const { mine, ledger, clock } = await openFixture(t)
      const lease = await reservedBy(t, mine)
      await lease.advance('fulfilled', { answer: { kind: 'json', value: {} } })
      await lease.advance('settling', { dispatch })
      const record = await lease.settle(RECEIPT)
      lease.stopRenewal()
      t.match(record, { state: 'settled', receipt: RECEIPT, dispatch })
      clock.now = PURCHASE.validBefore
      t.equal(await cleanUp(mine), 0, 'a block after its end has to be there first')
      t.strictSame((await ledger.get(PURCHASE.key))?.dispatch, dispatch)
      clock.now += 30_000
      t.equal(await cleanUp(mine), 1)
      const stored = await ledger.get(PURCHASE.key)
      t.strictSame(stored?.dispatch, erased)
      t.match(stored, { state: 'settled', receipt: RECEIPT, redeliveryToken: PURCHASE.redeliveryToken })
    }
  },
)

/** Each party that cannot store its change abandons the commit for all, as a signer does. */
function dispatchTogether(
  ledger: Ledger,
  leases: readonly PaymentLease[],
): Promise<PromiseSettledResult<PaymentRecord>[]> {
  const joint = new JointCommit(ledger, leases.length)
  return Promise.allSettled(
    leases.map(async (lease) => {
      try {
        return await lease.dispatch({ dispatch: { ...DISPATCH, members: leases.length } }, joint)
      } catch (fault) {
        joint.abandon()
        throw fault
      }
    }),
  )
}

t.test('stores the changes of several payments in one commit, or none of them', async (t) => {
  const { ledger, clock, mine, theirs } = await openFixture(t)
  const leases: PaymentLease[] = []
  for (const key of ['x402:one', 'x402:two', 'x402:three']) {
    const reservation = await reserve(mine, makePurchase({ key, identifier: undefined }))
    if (reservation.kind !== 'reserved') return t.fail(key)
    t.teardown(() => reservation.lease.stopRenewal())
    leases.push(reservation.lease)
  }
  const states = async (): Promise<unknown[]> => {
    const entries: unknown[] = []
    for await (const { state } of ledger.records()) entries.push(state)
    return entries
  }
  const away = new Error('the store is away')
  const broken = { ...ledger, commit: () => Promise.reject(away) }
  const failed = await dispatchTogether(broken, leases)
  t.strictSame(
    failed.map((each) => each.status === 'rejected' && each.reason),
    [away, away, away],
  )
  t.strictSame(await states(), ['reserved', 'reserved', 'reserved'])
  const stored = await dispatchTogether(ledger, leases)
  t.strictSame(new Set(stored.map(({ status }) => status)), new Set(['fulfilled']))
  t.strictSame(await states(), ['settling', 'settling', 'settling'])
  clock.now += 2 * LEASE_MS
  const [first] = leases
  t.ok(first && (await acquireExpired(theirs, first.record)), 'another process has one of them')
  const abandoned = await dispatchTogether(ledger, leases)
  for (const each of abandoned)
    t.ok(each.status === 'rejected' && each.reason instanceof CommitAbandonedError)
})

t.test('erases the work, the signature and the identifier of a payment that is given up', async (t) => {
  const { mine, ledger } = await openFixture(t)
  const lease = await reservedBy(t, mine)
  await lease.advance('fulfilled', { answer: { kind: 'json', value: {} } })
  await lease.advance('settling', { dispatch: DISPATCH })
  const record = await lease.void()
  t.equal(record.state, 'voided')
  t.notOk('answer' in record || 'dispatch' in record)
  t.strictSame(await ledger.get(PURCHASE.key), asStored(record))
  const other = await reserve(mine, { ...PURCHASE, key: 'x402:another' })
  t.equal(other.kind, 'reserved', 'the identifier is free')
  if (other.kind === 'reserved') other.lease.stopRenewal()
})

t.test('removes a dropped payment completely', async (t) => {
  const { mine, theirs, ledger } = await openFixture(t)
  const lease = await reservedBy(t, mine)
  const renewing = lease.advance('reserved')
  await lease.delete()
  await renewing
  t.equal(await ledger.get(PURCHASE.key), undefined)
  const other = await reservedBy(t, theirs)
  other.stopRenewal()
  t.equal(other.record.attempts, 1)
  await pass(ledger)
  t.strictSame(await ledger.get(PURCHASE.key), other.record, 'and nothing is written any more')
})

t.test('refuses a payment whose identifier belongs to another, and tells which', async (t) => {
  const { mine } = await openFixture(t)
  await reservedBy(t, mine)
  const reservation = await reserve(mine, { ...PURCHASE, key: 'x402:another' })
  t.match(reservation, { kind: 'taken', record: { key: PURCHASE.key } })
})

t.test('frees the identifier with the reservation of a dead process', async (t) => {
  const { mine, theirs, ledger, clock } = await openFixture(t)
  ;(await reservedBy(t, mine)).stopRenewal()
  clock.now += LEASE_MS
  const reservation = await reserve(theirs, { ...PURCHASE, key: 'x402:another' })
  if (reservation.kind !== 'reserved') throw new Error('the identifier is not free')
  reservation.lease.stopRenewal()
  t.equal(reservation.lease.record.attempts, 1)
  t.equal(await ledger.get(PURCHASE.key), undefined)
})

t.test('keeps the pending write of a handler whose process has died', async (t) => {
  const { mine, theirs, ledger, clock } = await openFixture(t)
  const lease = await reservedBy(t, mine)
  lease.stopRenewal()
  const { record } = lease
  await ledger.replace(record, { ...record, pendingWrite: true, version: record.version + 1 })
  clock.now += LEASE_MS
  t.match(await reserve(theirs, PURCHASE), { kind: 'taken', record: { pendingWrite: true } })
})

t.test('records a payment that a transaction of others has settled without one of ours', async (t) => {
  const { mine } = await openFixture(t)
  const lease = await reservedBy(t, mine)
  const record = await lease.settle(RECEIPT)
  t.notOk('dispatch' in record)
  t.strictSame(record.receipt, RECEIPT)
})

t.test('makes simultaneous changes one after the other', async (t) => {
  const { mine, ledger } = await openFixture(t)
  const lease = await reservedBy(t, mine)
  const records = await Promise.all([
    lease.advance('fulfilled', { answer: { kind: 'json', value: 1 } }),
    lease.advance('settling', { dispatch: DISPATCH }),
    lease.advance('unknown'),
  ])
  t.strictSame(
    records.map(({ state, version }) => `${state} ${version}`),
    ['fulfilled 2', 'settling 3', 'unknown 4'],
  )
  t.strictSame(await ledger.get(PURCHASE.key), records[2])
})

t.test('passes a released payment to the next process at once', async (t) => {
  const { mine, theirs } = await openFixture(t)
  const gone = await reservedBy(t, mine)
  await gone.advance('fulfilled')
  await gone.release()
  const second = await takenOver(t, theirs, gone.record)
  t.match(second.record, { state: 'fulfilled', owner: 'theirs', attempts: 2 })
  t.equal(await acquireExpired(mine, gone.record), undefined)
})

t.test('renews its lease during long work, and stops writing once it is released', async (t) => {
  const { mine, theirs, ledger, clock } = await openFixture(t)
  const lease = await reservedBy(t, mine)
  clock.now += LEASE_MS - 1
  await pass(ledger)
  const renewed = await ledger.get(PURCHASE.key)
  t.match(renewed, { state: 'reserved', owner: 'mine', leaseUntil: clock.now + LEASE_MS })
  clock.now += LEASE_MS - 1
  t.equal((await reserve(theirs, PURCHASE)).kind, 'taken')
  const record = await lease.settle(RECEIPT)
  lease.stopRenewal()
  await pass(ledger)
  t.strictSame(await ledger.get(PURCHASE.key), asStored(record))
})

t.test('renews between changes, and stops with the last one', async (t) => {
  const { mine, ledger } = await openFixture(t)
  const slow = slowed(ledger)
  const lease = await reservedBy(t, { ...mine, ledger: slow.ledger })
  const settled = lease.settle(RECEIPT)
  await pass(ledger)
  slow.goOn()
  const record = await settled
  lease.stopRenewal()
  await pass(ledger)
  t.strictSame(await ledger.get(PURCHASE.key), asStored(record), 'what was handed out is what is stored')
  t.equal(slow.replaced(), 1)
})

t.test('stops renewing when the payment is lost, and continues when only the store was away', async (t) => {
  const { mine, theirs, ledger, clock } = await openFixture(t)
  let faults = 1
  const failing: Ledger = {
    ...ledger,
    replace: (previous, next) => {
      faults -= 1
      return faults < 0 ? ledger.replace(previous, next) : Promise.reject(new Error('the store is away'))
    },
  }
  const lease = await reservedBy(t, { ...mine, ledger: failing })
  await pass(ledger)
  t.equal((await ledger.get(PURCHASE.key))?.version, 1)
  await pass(ledger)
  t.equal((await ledger.get(PURCHASE.key))?.version, 2)
  t.equal(faults, -1, 'the second try went through')
  clock.now += LEASE_MS
  const other = await takenOver(t, theirs, lease.record)
  other.stopRenewal()
  await pass(ledger)
  t.equal(faults, -2)
  await pass(ledger)
  t.equal(faults, -2, 'no try after the one that told')
  t.strictSame(await ledger.get(PURCHASE.key), other.record)
})

/** The next renewal is due; resolves when whatever it has written is stored. */
async function pass(ledger: Ledger): Promise<void> {
  mock.timers.tick(LEASE_MS / 3)
  // Changes are stored in the order they were asked for.
  await ledger.lease('a change that comes last', 'nobody', 0, 0)
}

/** A ledger whose changes wait for `goOn`. */
function slowed(ledger: Ledger): { ledger: Ledger; goOn: () => void; replaced: () => number } {
  let goOn = (): void => {}
  let count = 0
  const open = new Promise<void>((resolve) => {
    goOn = resolve
  })
  return {
    goOn,
    replaced: () => count,
    ledger: {
      ...ledger,
      replace: async (previous, next) => {
        count += 1
        await open
        return ledger.replace(previous, next)
      },
    },
  }
}

t.test('recognises its own change when the store’s reply was lost', async (t) => {
  const { mine, ledger } = await openFixture(t)
  const deaf: Ledger = {
    ...ledger,
    replace: async (previous, next) => {
      await ledger.replace(previous, next)
      throw new LedgerError('no answer')
    },
  }
  const lease = await reservedBy(t, { ...mine, ledger: deaf })
  t.match(await lease.advance('fulfilled'), { state: 'fulfilled', version: 2 })
  t.match(await ledger.get(PURCHASE.key), { state: 'fulfilled', version: 2 })
  const broken: Ledger = { ...ledger, replace: () => Promise.reject(new LedgerError('no answer')) }
  const other = await takenOver(t, { ...mine, ledger: broken }, { ...lease.record, leaseUntil: 0 }).catch(
    (fault: unknown) => fault,
  )
  t.type(other, LedgerError, 'and one that was not made is none')
})

t.test('takes no renewal that the store has not confirmed for a receipt, and counts the sale', async (t) => {
  const { mine, ledger } = await openFixture(t)
  let store: 'stores in silence' | 'is away' | 'answers' = 'answers'
  const unsteady: Ledger = {
    ...ledger,
    get: (key) => (store === 'stores in silence' ? Promise.reject(new LedgerError('away')) : ledger.get(key)),
    replace: async (previous, next) => {
      if (store === 'is away') throw new LedgerError('away')
      const isStored = await ledger.replace(previous, next)
      if (store === 'stores in silence') throw new LedgerError('no answer')
      return isStored
    },
  }
  const lease = await reservedBy(t, { ...mine, ledger: unsteady })
  await lease.advance('fulfilled')
  t.match(await ledger.get(PURCHASE.key), { state: 'fulfilled', version: 2 })
  store = 'stores in silence'
  await pass(ledger)
  await until('the renewal is stored', async () => (await ledger.get(PURCHASE.key))?.version === 3)
  store = 'is away'
  await t.rejects(lease.settle(RECEIPT), LedgerError)
  store = 'answers'
  await lease.settle(RECEIPT)
  t.match(await ledger.get(PURCHASE.key), { receipt: RECEIPT, version: 4 })
  const today = dateOf(mine.now())
  const sales: number[] = []
  for await (const page of ledger.totals.read('sale', today, today))
    sales.push(...page.map(({ payments }) => payments))
  t.strictSame(sales, [1])
})
