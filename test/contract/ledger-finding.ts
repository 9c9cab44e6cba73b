import t, { type Test } from 'tap'
import type { PaymentRecord } from '../../src/engine/ledger/payment-record.ts'
import { factOf, type Ledger } from '../../src/engine/ledger/ledger.ts'
import { openLedger } from '../fixtures/ledger/open.ts'
import { makeRecord, nextRecord } from '../support/payment-records.ts'
import { testsBetweenProcesses, type Reach } from './reach.ts'
import { runTogether } from '../support/ledger-process.ts'

const NOW = 1_800_000_000_000
const FAR = Number.MAX_SAFE_INTEGER - 1
const RECEIPT = { transaction: '0x01', network: 'eip155:84532', payer: '0xb0', amount: '5000' }

/** How records are found by anything but their key, and what is kept besides them: a part of `testLedger`. */
export function testFinding(name: string, newPlace: (t: Test) => string, reach: Reach): void {
  const between = testsBetweenProcesses(reach)
  const openNew = async (t: Test, place = newPlace(t)): Promise<Ledger> => {
    const ledger = await openLedger(name, place)
    t.teardown(() => ledger.close())
    return ledger
  }

  t.test(`${name}: assigns an identifier to one payment, and tells which`, async (t) => {
    const ledger = await openNew(t)
    const one = { ...makeRecord('x402:one'), identifier: 'mine' }
    await ledger.insert(one)
    const two = { ...makeRecord('x402:two'), identifier: 'mine' }
    t.strictSame(await ledger.insert(two), one)
    t.equal(await ledger.get('x402:two'), undefined, 'nothing of the second was stored')
    t.strictSame(await ledger.due('cleanup', FAR, 10), [one], 'in no list')
    t.equal(await ledger.insert({ ...two, identifier: 'yours' }), undefined)
    const three = makeRecord('x402:three')
    t.equal(await ledger.insert({ ...three, identifier: undefined }), undefined, 'and many have none')
    t.equal(await ledger.insert({ ...makeRecord('x402:four'), identifier: undefined }), undefined)
    t.strictSame(
      await ledger.insert({ ...makeRecord('x402:one'), identifier: 'yours' }),
      one,
      'the key counts before the identifier',
    )
  })

  t.test(
    `${name}: keeps an identifier while its payment changes, and frees it with the payment`,
    async (t) => {
      const ledger = await openNew(t)
      const one = { ...makeRecord('x402:one'), identifier: 'mine' }
      const two = { ...makeRecord('x402:two'), identifier: 'mine' }
      await ledger.insert(one)
      const kept = nextRecord(one, { state: 'fulfilled' })
      await ledger.replace(one, kept)
      t.strictSame(await ledger.insert(two), kept)
      const freed = nextRecord(kept, { state: 'voided', identifier: undefined })
      t.equal(await ledger.replace(kept, freed), true)
      t.equal(await ledger.insert(two), undefined)
      t.equal(await ledger.remove(freed), true)
      t.strictSame(
        await ledger.insert({ ...makeRecord('x402:three'), identifier: 'mine' }),
        two,
        'the first one’s end does not free what is the second’s',
      )
      t.equal(await ledger.remove(two), true)
      t.equal(await ledger.insert(two), undefined, 'it is free with the payment that is forgotten')
    },
  )

  t.test(`${name}: finds what is due, the longest overdue first, up to a limit`, async (t) => {
    const ledger = await openNew(t)
    t.strictSame(await ledger.due('cleanup', NOW, 10), [])
    for (const due of [5, 1, 4, 2, 3]) await ledger.insert({ ...makeRecord(`x402:${due}`), due: NOW + due })
    await ledger.insert({ ...makeRecord('x402:never'), due: undefined })
    const dues = async (now: number, limit: number): Promise<number[]> =>
      (await ledger.due('cleanup', now, limit)).map(({ due = 0 }) => due - NOW)
    t.strictSame(await dues(NOW, 10), [], 'not before its time')
    t.strictSame(await dues(NOW + 3, 10), [1, 2, 3], 'at its time')
    t.strictSame(await dues(NOW + 3, 2), [1, 2])
    t.strictSame(await dues(NOW + 99, 10), [1, 2, 3, 4, 5], 'and never what is not due at all')
    const many = Array.from({ length: 40 }, (_, at) => ({ ...makeRecord(`x402:many ${at}`), due: NOW + 2 }))
    await Promise.all(many.map((record) => ledger.insert(record)))
    t.equal((await ledger.due('cleanup', NOW + 2, 100)).length, 42, 'any number at one time')
    t.equal((await ledger.due('cleanup', NOW + 2, 33)).length, 33)
  })

  t.test(`${name}: finds a postponed payment at its new time only, and a finished one no more`, async (t) => {
    const ledger = await openNew(t)
    const one = { ...makeRecord('x402:one'), due: 10 }
    await ledger.insert(one)
    const later = nextRecord(one, { due: 20 })
    await ledger.replace(one, later)
    t.strictSame(await ledger.due('cleanup', 19, 10), [])
    t.strictSame(await ledger.due('cleanup', 20, 10), [later])
    const sooner = nextRecord(later, { due: 5 })
    await ledger.replace(later, sooner)
    t.strictSame(await ledger.due('cleanup', 30, 10), [sooner], 'once')
    const { due: _, ...rest } = nextRecord(sooner)
    const done = { ...rest, due: undefined }
    await ledger.replace(sooner, done)
    t.strictSame(await ledger.due('cleanup', FAR, 10), [])
    const other = { ...makeRecord('x402:other'), due: 60 }
    await ledger.insert(other)
    t.strictSame(await ledger.due('cleanup', FAR, 1), [other], 'nor does it stand in the way of others')
    await ledger.remove(other)
    const again = nextRecord(done, { due: 40 })
    await ledger.replace(done, again)
    t.strictSame(await ledger.due('cleanup', 40, 10), [again])
    const [found] = await Promise.all([
      ledger.due('cleanup', 40, 10),
      ledger.replace(again, nextRecord(again, { due: 70 })),
    ])
    t.ok(
      found.every(({ due }) => due === 40),
      'nobody is given what somebody else has looked after meanwhile',
    )
    await ledger.remove(nextRecord(again, { due: 70 }))
    t.strictSame(await ledger.due('cleanup', FAR, 10), [])
    await ledger.insert({ ...one, due: 50 })
    t.strictSame(await ledger.due('cleanup', 49, 10), [], 'nothing is left of what it was before')
  })

  t.test(`${name}: lists payments before clean-up, each in a queue of its own`, async (t) => {
    const ledger = await openNew(t)
    const money = { ...makeRecord('x402:money'), state: 'unknown', due: 30 } as const
    const over = { ...makeRecord('x402:over'), state: 'voided', due: 10 } as const
    for (const record of [over, money]) await ledger.insert(record)
    t.strictSame(await ledger.due('money', 30, 1), [money], 'nothing stands in its way')
    t.strictSame(await ledger.due('cleanup', 30, 10), [over])
    const voided = nextRecord(money, { state: 'voided', due: 20 })
    await ledger.replace(money, voided)
    t.strictSame(await ledger.due('money', FAR, 10), [])
    t.strictSame(await ledger.due('cleanup', FAR, 10), [over, voided])
    const prepared = nextRecord(voided, { pendingWrite: true })
    await ledger.replace(voided, prepared)
    t.strictSame(await ledger.due('money', FAR, 10), [prepared], 'a handler has to be asked')
    t.strictSame(await ledger.due('cleanup', FAR, 10), [over])
  })

  t.test(`${name}: finds undelivered purchases of a buyer since a time, the newest first`, async (t) => {
    const ledger = await openNew(t)
    const buy = (buyer: string, at: number) =>
      ledger.insert({ ...makeRecord(`x402:${buyer} ${at}`, at), state: 'unknown', buyerKey: buyer })
    for (const at of [300, 100, 9, 200, 1_000]) await buy('b', at)
    for (const buyer of ['a', 'ba', 'B', '']) await buy(buyer, 150)
    const times = async (buyer: string, since: number, limit = 10): Promise<number[]> =>
      (await ledger.undelivered(buyer, since, limit)).map(({ createdAt }) => createdAt)
    t.strictSame(await times('b', 0), [1_000, 300, 200, 100, 9])
    t.strictSame(await times('b', 0, 2), [1_000, 300], 'as many as were asked for')
    t.strictSame(await times('b', 200), [1_000, 300, 200], 'that time counts')
    t.strictSame(await times('b', 201), [1_000, 300])
    t.strictSame(await times('b', 1_001), [])
    t.strictSame(await times('nobody', 0), [])
    for (const buyer of ['a', 'ba', 'B']) t.strictSame(await times(buyer, 0), [150], 'one buyer’s only')
    const [newest, second] = await ledger.undelivered('b', 300, 10)
    if (newest === undefined || second === undefined) throw new Error('two are missing')
    const settled = nextRecord(newest, { state: 'settled', receipt: RECEIPT })
    await ledger.replace(newest, settled)
    t.strictSame((await ledger.undelivered('b', 1_000, 1))[0], settled, 'as it is now')
    const sent = nextRecord(settled, { state: 'sent' })
    await ledger.replace(settled, sent)
    t.strictSame(await times('b', 0), [300, 200, 100, 9], 'without what has arrived')
    await ledger.replace(sent, nextRecord(sent, { state: 'fulfilled' }))
    t.strictSame(await times('b', 0), [1_000, 300, 200, 100, 9], 'until it is worked for again')
    await ledger.remove(second)
    t.strictSame(await times('b', 0), [1_000, 200, 100, 9])
    await ledger.insert({ ...makeRecord('x402:new', 500), buyerKey: 'b' })
    t.strictSame(
      await times('b', 0),
      [1_000, 500, 200, 100, 9],
      'and what is only reserved, which may be sent soon',
    )
  })

  t.test(`${name}: keeps a fact under its name until its end`, async (t) => {
    const ledger = await openNew(t)
    t.strictSame(await ledger.listExpiring('offer', NOW), [])
    await ledger.addExpiring('offer', 'one', NOW + 10)
    await ledger.addExpiring('offer', 'two', NOW + 20)
    await ledger.addExpiring('another', 'three', NOW + 20)
    const facts = async (now: number): Promise<string[]> =>
      [...(await ledger.listExpiring('offer', now))].sort()
    t.strictSame(await facts(NOW), ['one', 'two'])
    t.strictSame(await facts(NOW + 9), ['one', 'two'])
    t.strictSame(await facts(NOW + 10), ['two'])
    t.strictSame(await ledger.listExpiring('another', NOW + 19), ['three'])
    t.strictSame(await facts(NOW + 20), [])
    await ledger.addExpiring('offer', 'one', NOW + 40)
    t.strictSame(await facts(NOW + 39), ['one'], 'it can come again')
  })

  t.test(`${name}: moves the end of a fact that is added again, in both directions`, async (t) => {
    const ledger = await openNew(t)
    await ledger.addExpiring('offer', 'one', NOW + 10)
    await ledger.addExpiring('offer', 'one', NOW + 30)
    t.strictSame(await ledger.listExpiring('offer', NOW + 20), ['one'], 'once')
    await ledger.addExpiring('offer', 'one', NOW + 25)
    t.strictSame(await ledger.listExpiring('offer', NOW + 24), ['one'])
    t.strictSame(await ledger.listExpiring('offer', NOW + 25), [])
  })

  t.test(
    `${name}: keeps amounts under a name up to a number of them, and says when the next fits`,
    async (t) => {
      const ledger = await openNew(t)
      const limit = { count: 2, sum: undefined }
      const add = (id: string, until: number, now = NOW): Promise<number | undefined> =>
        ledger.addWithinLimit('payer', { id, value: 5n, until }, limit, now)
      t.equal(await add('one', NOW + 30), undefined)
      t.equal(await add('two', NOW + 20), undefined)
      t.equal(await add('three', NOW + 40), NOW + 20, 'the first that ends')
      t.equal(await add('one', NOW + 90), undefined, 'one that is kept is not counted twice')
      t.equal(
        await ledger.addWithinLimit('another', { id: 'one', value: 5n, until: NOW + 9 }, limit, NOW),
        undefined,
      )
      t.equal(await add('three', NOW + 40, NOW + 19), NOW + 20)
      t.equal(await add('three', NOW + 40, NOW + 20), undefined)
      t.equal(await add('four', NOW + 50, NOW + 20), NOW + 30, 'the end of the first has not been moved')
    },
  )

  t.test(`${name}: keeps amounts under a name up to their sum, exactly`, async (t) => {
    const ledger = await openNew(t)
    const limit = { count: 100, sum: 1_000_000_000_000n }
    const add = (id: string, value: bigint, until: number): Promise<number | undefined> =>
      ledger.addWithinLimit('payer', { id, value, until }, limit, NOW)
    t.equal(await add('one', 999_999_999_990n, NOW + 30), undefined)
    t.equal(await add('two', 10n, NOW + 20), undefined)
    t.equal(await add('three', 1n, NOW + 40), NOW + 20)
    t.equal(await add('three', 11n, NOW + 40), NOW + 30, 'the second end makes room')
    await ledger.addExpiring('payer', factOf({ id: 'one', value: 999_999_999_990n }), NOW)
    t.equal(await add('three', 999_999_999_990n, NOW + 40), undefined, 'what was ended counts no more')
    t.equal(await add('four', 1n, NOW + 40), NOW + 20)
  })

  t.test(`${name}: keeps exactly as many of fifty simultaneous amounts as fit`, async (t) => {
    const ledger = await openNew(t)
    const limit = { count: 50, sum: 35n }
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, number) =>
        ledger.addWithinLimit('payer', { id: `pay_${number}`, value: 5n, until: NOW + 10 }, limit, NOW),
      ),
    )
    t.equal(answers.filter((fits) => fits === undefined).length, 7)
    t.equal((await ledger.listExpiring('payer', NOW)).length, 7)
  })

  between.test(`${name}: keeps one limit over two processes`, async (t) => {
    const place = newPlace(t)
    const ledger = await openNew(t, place)
    const said = await runTogether(2, [name, place, 'limit', 'payer'])
    const counts = said.map(Number)
    t.equal(
      counts.reduce((sum, count) => sum + count, 0),
      60,
      'of 200 that both have tried',
    )
    t.equal((await ledger.listExpiring('payer', 1_999)).length, 60)
  })

  t.test(`${name}: accepts one first of fifty simultaneous facts under a new name`, async (t) => {
    const ledger = await openNew(t)
    const marks = Array.from({ length: 50 }, (_, number) => `mark ${number}`)
    const kept = await Promise.all(marks.map((mark) => ledger.addExpiring('nonce', mark, NOW + 10)))
    t.strictSame(
      kept.toSorted((a, b) => a - b),
      marks.map((_, place) => place + 1),
    )
    t.equal(await ledger.addExpiring('another', 'mark', NOW + 10), 1)
    t.equal(await ledger.addExpiring('another', 'mark', NOW + 20), 1, 'the same fact again is one fact')
  })

  t.test(`${name}: keeps names and facts of any characters and length apart`, async (t) => {
    const ledger = await openNew(t)
    const texts = ['', ' ', '__proto__', 'constructor', 'a:b', 'a', 'é', 'e\u0301', '🪙\u0000', '\u0000', '*']
    const names = [...texts, 'n'.repeat(4_000), `${'n'.repeat(4_000)}!`]
    for (const [at, each] of names.entries()) {
      await ledger.addExpiring(each, each, NOW + 10)
      await ledger.addExpiring(each, `${at}`, NOW + 10)
    }
    for (const [at, each] of names.entries())
      t.strictSame(new Set(await ledger.listExpiring(each, NOW)), new Set([each, `${at}`]), each.slice(0, 20))
    t.strictSame(await ledger.listExpiring('toString', NOW), [])
  })

  between.test(
    `${name}: assigns an identifier that two processes use to one of their payments`,
    async (t) => {
      const place = newPlace(t)
      const ledger = await openNew(t, place)
      const said = await runTogether(2, [name, place, 'identify', 'mine'])
      t.strictSame(new Set(said), new Set(['0', '1']))
      t.equal((await ledger.due('cleanup', FAR, 100)).length, 1)
    },
  )

  between.test(
    `${name}: keeps every list consistent with the payments while two processes write`,
    async (t) => {
      const place = newPlace(t)
      const ledger = await openNew(t, place)
      t.strictSame(await runTogether(2, [name, place, 'churn', 'x402']), ['churned', 'churned'])
      const records: PaymentRecord[] = []
      for await (const record of ledger.records()) records.push(record)
      t.ok(records.length > 0 && records.length <= 10)
      const ids = (list: readonly PaymentRecord[]): string[] => list.map(({ id }) => id).sort()
      t.strictSame(ids(await ledger.due('cleanup', FAR, 100)), ids(records))
      for (const due of [0, 1, 2, 3, 4, 5])
        t.strictSame(
          ids(await ledger.due('cleanup', due, 100)),
          ids(records.filter((record) => (record.due ?? 99) <= due)),
        )
      const undelivered = () => ledger.undelivered(makeRecord('x402').buyerKey, 0, 100)
      t.strictSame(ids(await undelivered()), ids(records))
      for (const record of records) t.equal(await ledger.remove(record), true)
      t.strictSame(await undelivered(), [])
      for (let number = 0; number < 10; number += 1)
        t.equal(await ledger.insert(makeRecord(`x402:${number}`)), undefined, 'and no identifier taken')
    },
  )

  between.test(`${name}: keeps all facts that two processes add`, async (t) => {
    const place = newPlace(t)
    const ledger = await openNew(t, place)
    const said = await runTogether(2, [name, place, 'remember', 'offer'])
    const facts = said.flatMap((pid) => Array.from({ length: 100 }, (_, number) => `${pid}:${number}`))
    t.strictSame(new Set(await ledger.listExpiring('offer', 1_999)), new Set(facts))
    t.equal((await ledger.listExpiring('offer', 2_049)).length, 100)
  })
}
