import t, { type Test } from 'tap'
import type { Ledger } from '../../src/engine/ledger/ledger.ts'
import type { PaymentRecord } from '../../src/engine/ledger/payment-record.ts'
import { type DailyTotal, type TotalKind, TOTALS_AT_ONCE } from '../../src/engine/ledger/sales-totals.ts'
import type { SearchTerm } from '../../src/engine/ledger/search-term.ts'
import { openLedger } from '../fixtures/ledger/open.ts'
import { makeRecord, nextRecord } from '../support/payment-records.ts'

const NOW = 1_800_000_000_000
const TODAY = '2027-01-15'
const TOMORROW = '2027-01-16'
const DAY_MS = 86_400_000

/** What payments have brought by day, and how they are found by what an operator knows of them: a part of `testLedger`. */
export function testTotals(name: string, newPlace: (t: Test) => string): void {
  const openNew = async (t: Test): Promise<Ledger> => {
    const ledger = await openLedger(name, newPlace(t))
    t.teardown(() => ledger.close())
    return ledger
  }

  t.test(`${name}: keeps totals with the records that they are of`, async (t) => {
    const ledger = await openNew(t)
    const [one, two] = [makeRecord('x402:one'), { ...makeRecord('x402:two'), payer: '0xb1' }]
    await ledger.insert(one)
    await ledger.insert(two)
    t.strictSame(await totalsOf(ledger, 'sale'), [], 'nothing is charged yet')
    const charged = settled(one, NOW)
    await ledger.commit([
      { previous: one, next: charged },
      { previous: two, next: settled(two, NOW + DAY_MS, '7000') },
    ])
    const sale = {
      kind: 'sale',
      operation: '/paid/ping',
      protocol: 'x402',
      scheme: 'exact',
      network: one.network,
      asset: one.asset,
    }
    t.strictSame(await totalsOf(ledger, 'sale'), [
      { date: TODAY, of: sale, payments: 1, amount: 5_000n },
      { date: TOMORROW, of: sale, payments: 1, amount: 7_000n },
    ])
    t.strictSame(await totalsOf(ledger, 'gas'), [
      { date: TODAY, of: { kind: 'gas', network: one.network }, payments: 1, amount: 812_345_678_901n },
      { date: TOMORROW, of: { kind: 'gas', network: one.network }, payments: 1, amount: 812_345_678_901n },
    ])
    t.strictSame(
      (await totalsOf(ledger, 'buyer')).map(({ of }) => (of.kind === 'buyer' ? of.payer : '')).sort(),
      [one.payer, '0xb1'].sort(),
    )
    const sent = nextRecord(charged, { state: 'sent' })
    t.equal(await ledger.replace(charged, sent), true)
    t.equal(await ledger.replace(charged, nextRecord(charged)), false, 'a change that is not made')
    t.equal((await totalsOf(ledger, 'sale')).length, 2)
    t.match(await totalsOf(ledger, 'sale'), [{ payments: 1, amount: 5_000n }])

    const refund = { kind: 'sent', hash: '0xfe', sentAt: NOW + DAY_MS } as const
    const refunded = nextRecord(sent, { refund })
    await ledger.replace(sent, refunded)
    t.match(await totalsOf(ledger, 'refund'), [{ date: TOMORROW, payments: 1, amount: 5_000n }])
    await ledger.remove(refunded)
    t.match(await totalsOf(ledger, 'sale'), [{ date: TOMORROW, payments: 1, amount: 7_000n }])
    t.strictSame(await totalsOf(ledger, 'refund'), [])
  })

  t.test(`${name}: takes a sale back that a reorganization has undone`, async (t) => {
    const ledger = await openNew(t)
    const one = makeRecord('x402:one')
    await ledger.insert(one)
    const charged = settled(one, NOW)
    await ledger.replace(one, charged)
    const { receipt: _, settledAt: _at, ...rest } = charged
    const undone = nextRecord(rest, { state: 'unknown' })
    await ledger.replace(charged, undone)
    t.strictSame(await totalsOf(ledger, 'sale'), [])
    await ledger.replace(undone, settled(undone, NOW + DAY_MS))
    t.match(await totalsOf(ledger, 'sale'), [{ date: TOMORROW, payments: 1, amount: 5_000n }])
  })

  t.test(`${name}: adds amounts exactly, whatever their size`, async (t) => {
    const ledger = await openNew(t)
    const amounts = ['999999999', '1', '123456789012345678901234567', '9007199254740993']
    for (const [place, amount] of amounts.entries())
      await ledger.insert(settled(makeRecord(`x402:${place}`), NOW, amount))
    const [total] = await totalsOf(ledger, 'sale')
    t.equal(
      total?.amount,
      amounts.reduce((sum, amount) => sum + BigInt(amount), 0n),
    )
    t.equal(total?.payments, 4)
  })

  t.test(`${name}: works totals out again from the records, while sales go on`, async (t) => {
    const ledger = await openNew(t)
    const before = Array.from({ length: 500 }, (_, place) =>
      settled({ ...makeRecord(`x402:${place}`, NOW + (place % 90)) }, NOW + (place % 3) * DAY_MS),
    )
    await Promise.all(before.map((record) => ledger.insert(record)))
    const expected = await totalsOf(ledger, 'sale')
    t.equal(await ledger.totals.rebuild(), 500)
    t.strictSame(await totalsOf(ledger, 'sale'), expected)
    const late = Array.from({ length: 200 }, (_, place) =>
      settled(makeRecord(`x402:late ${place}`, NOW + place), NOW),
    )
    await Promise.all([
      ledger.totals.rebuild(),
      ledger.totals.rebuild(),
      ...late.map((record) => ledger.insert(record)),
      ...before.slice(0, 100).map((record) => ledger.remove(record)),
    ])
    t.equal(
      (await totalsOf(ledger, 'sale')).reduce((sum, { payments }) => sum + payments, 0),
      600,
    )
    const once = await totalsOf(ledger, 'buyer')
    await ledger.totals.rebuild()
    t.strictSame(await totalsOf(ledger, 'buyer'), once)
  })

  t.test(`${name}: lets other work go on while it reads the totals of many buyers`, async (t) => {
    const ledger = await openNew(t)
    const count = 3 * TOTALS_AT_ONCE
    const paid = Array.from({ length: count }, (_, place) =>
      settled(
        { ...makeRecord(`x402:${place}`, NOW), payer: `0x${place.toString(16).padStart(40, '0')}` },
        NOW,
      ),
    )
    await Promise.all(paid.map((record) => ledger.insert(record)))
    let [turns, last, found] = [0, -1, 0]
    let turning = setImmediate(function turn() {
      turns += 1
      turning = setImmediate(turn)
    })
    t.teardown(() => clearImmediate(turning))
    for await (const page of ledger.totals.read('buyer', TODAY, TODAY)) {
      t.ok(page.length <= TOTALS_AT_ONCE, `${page.length} at once`)
      t.ok(turns > last, 'a turn of the event loop since the last page')
      last = turns
      found += page.length
    }
    t.equal(found, count)
  })

  t.test(`${name}: finds payments by payer and by transaction, newest first`, async (t) => {
    const ledger = await openNew(t)
    const records = Array.from({ length: 5 }, (_, place) =>
      settled({ ...makeRecord(`x402:${place}`, NOW + place), payer: place < 3 ? '0xb0' : '0xb1' }, NOW),
    )
    for (const record of records) await ledger.insert(record)
    const keys = async (
      term: SearchTerm | undefined,
      limit: number,
      before?: PaymentRecord,
    ): Promise<string[]> => (await ledger.search(term, limit, before)).map(({ key }) => key)
    t.strictSame(await keys(undefined, 2), ['x402:4', 'x402:3'])
    t.strictSame(await keys(undefined, 9, records[2]), ['x402:1', 'x402:0'])
    t.strictSame(await keys({ kind: 'payer', payer: '0xb0' }, 9), ['x402:2', 'x402:1', 'x402:0'])
    t.strictSame(await keys({ kind: 'payer', payer: '0xb0' }, 9, records[1]), ['x402:0'])
    t.strictSame(await keys({ kind: 'payer', payer: '0xB0' }, 9), [])
    t.equal((await keys({ kind: 'transaction', transaction: '0xaa' }, 9)).length, 5, 'a batch')
    const [first] = records
    if (first === undefined) throw new Error('there is a record')
    const refunded = nextRecord(first, { refund: { kind: 'sent', hash: '0xfe' } })
    await ledger.replace(first, refunded)
    t.strictSame(await keys({ kind: 'transaction', transaction: '0xfe' }, 9), ['x402:0'])
    await ledger.remove(refunded)
    t.strictSame(await keys({ kind: 'transaction', transaction: '0xfe' }, 9), [])
    t.strictSame(await keys({ kind: 'payer', payer: '0xb0' }, 9), ['x402:2', 'x402:1'])
  })

  t.test(`${name}: adds numbers up by day and name`, async (t) => {
    const ledger = await openNew(t)
    const [day, next] = [new Date().toISOString().slice(0, 10), '2099-01-01']
    await Promise.all([
      ledger.counts.add(day, new Map([['unpaid /a', 2]])),
      ledger.counts.add(
        day,
        new Map([
          ['unpaid /a', 3],
          ['unpaid /b', 1],
        ]),
      ),
    ])
    const [found] = (await ledger.counts.read(day, day)).filter(({ date }) => date === day)
    t.strictSame(
      found?.counts,
      new Map([
        ['unpaid /a', 5],
        ['unpaid /b', 1],
      ]),
    )
    t.strictSame(
      (await ledger.counts.read(next, next)).flatMap(({ counts }) => [...counts]),
      [],
    )
  })
}

function settled(record: PaymentRecord, settledAt: number, amount = record.amount): PaymentRecord {
  const { network, payer } = record
  const receipt = { transaction: '0xaa', network, payer, amount, gasCost: '812345678901' }
  return nextRecord(record, { state: 'settled', receipt, settledAt, amount })
}

async function totalsOf(ledger: Ledger, kind: TotalKind): Promise<DailyTotal[]> {
  const totals: DailyTotal[] = []
  for await (const page of ledger.totals.read(kind, '2000-01-01', '2027-03-01')) totals.push(...page)
  return totals.toSorted((a, b) =>
    `${a.date} ${JSON.stringify(a.of)}` < `${b.date} ${JSON.stringify(b.of)}` ? -1 : 1,
  )
}
