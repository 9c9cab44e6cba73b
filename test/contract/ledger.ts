import t, { type Test } from 'tap'
import { setTimeout as delay } from 'node:timers/promises'
import type { PaymentRecord } from '../../src/engine/ledger/payment-record.ts'
import { paymentId } from '../../src/engine/ledger/payment-lifecycle.ts'
import type { Lease, Ledger } from '../../src/engine/ledger/ledger.ts'
import { openLedger } from '../fixtures/ledger/open.ts'
import { asStored, makeRecord, nextRecord } from '../support/payment-records.ts'
import { runTogether, startWorker } from '../support/ledger-process.ts'
import { testFinding } from './ledger-finding.ts'
import { testsBetweenProcesses, type Reach } from './reach.ts'
import { testTotals } from './ledger-totals.ts'
import { testStates } from './ledger-states.ts'

const NOW = 1_800_000_000_000

/**
 * What every ledger must do. `name` is its name in `test/fixtures/ledger/open.ts`, which other processes open it by;
 * `newPlace` makes an empty store and says where it is.
 */
export function testLedger(
  name: string,
  newPlace: (t: Test) => string,
  reach: Reach = 'all processes',
): void {
  const between = testsBetweenProcesses(reach)
  const openNew = async (t: Test): Promise<Ledger> => {
    const ledger = await openLedger(name, newPlace(t))
    t.teardown(() => ledger.close())
    return ledger
  }

  t.test(`${name}: reports the name of its store`, async (t) => {
    t.equal((await openNew(t)).name, name)
  })

  t.test(`${name}: returns a record as it was stored, by key and by public id`, async (t) => {
    const ledger = await openNew(t)
    const record = fullEntry('x402:one')
    t.equal(await ledger.get(record.key), undefined)
    t.equal(await ledger.find(record.id), undefined)
    t.equal(await ledger.insert(record), undefined)
    t.strictSame(await ledger.get(record.key), record)
    t.strictSame(await ledger.find(record.id), record)
    t.equal(await ledger.find(record.key), undefined, 'a key is no public id')
    t.equal(await ledger.get(record.id), undefined, 'a public id is no key')
  })

  t.test(`${name}: treats an undefined field as absent, and lets a change remove one`, async (t) => {
    const ledger = await openNew(t)
    const record = { ...fullEntry('x402:one'), redeliveryToken: undefined }
    await ledger.insert(record)
    t.strictSame(await ledger.get(record.key), asStored(record))
    t.notOk('redeliveryToken' in ((await ledger.get(record.key)) ?? record))
    const { receipt: _, ...rest } = record
    t.equal(await ledger.replace(record, nextRecord(rest)), true)
    t.notOk('receipt' in ((await ledger.get(record.key)) ?? record))
  })

  t.test(`${name}: returns a signed transaction until it is redacted or its record is removed`, async (t) => {
    const ledger = await openNew(t)
    const hash = `0x${'ab'.repeat(32)}`
    const own = { kind: 'own', hash, signer: `0x${'cd'.repeat(20)}`, nonce: 7 } as const
    const request = '~{"x402Version":2}'
    for (const dispatch of [
      { ...own, raw: `0x${'ef'.repeat(300)}` },
      { kind: 'payer', hash, raw: '0x76' },
      { kind: 'facilitator', url: 'https://facilitator.example', request },
    ] as const) {
      const record = { ...fullEntry(`x402:${dispatch.kind}`), dispatch }
      await ledger.insert(record)
      t.strictSame(await ledger.get(record.key), record)
      const erased = nextRecord(record, { dispatch: own })
      await ledger.replace(record, erased)
      t.strictSame(await ledger.get(record.key), erased)
      const again = nextRecord(erased, { dispatch })
      await ledger.replace(erased, again)
      t.strictSame(await ledger.find(record.id), again)
      await ledger.remove(again)
      await ledger.insert({ ...record, dispatch: own })
      t.strictSame(await ledger.get(record.key), { ...record, dispatch: own })
    }
  })

  t.test(`${name}: returns fields of any spelling as they were stored`, async (t) => {
    const ledger = await openNew(t)
    const asset = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
    const hex = `0x${'0a'.repeat(32)}`
    for (const text of [hex, '0xABCDEF', `~${hex}`, `~~${hex}`, '~', '', `${hex}0`, '0x']) {
      const payer = `p${text}`
      for (const key of [`x402:exact:eip155:1:${asset}:${payer}:${text}`, `mpp:${text}`]) {
        const names = {
          key,
          id: paymentId(key),
          network: 'eip155:1',
          asset,
          payer,
          payee: text,
          redeliveryToken: text,
        }
        const changes = { owner: text, revision: text, identifier: `${key}~` }
        const record = { ...fullEntry(key), ...names, ...changes }
        t.equal(await ledger.insert(record), undefined)
        t.strictSame(await ledger.get(key), record, key)
      }
    }
  })

  t.test(`${name}: returns copies`, async (t) => {
    const ledger = await openNew(t)
    const record = fullEntry('x402:one')
    await ledger.insert(record)
    const mine = await ledger.get(record.key)
    if (mine !== undefined) Object.assign(mine, { state: 'sent', answer: undefined })
    t.strictSame(await ledger.get(record.key), record)
  })

  t.test(`${name}: accepts a payment once, however many try`, async (t) => {
    const ledger = await openNew(t)
    const tries = Array.from({ length: 100 }, (_, number) =>
      ledger.insert(makeRecord('x402:one', NOW, `owner ${number}`)),
    )
    const outcomes = await Promise.all(tries)
    t.equal(outcomes.filter((standing) => standing === undefined).length, 1)
    const winner = await ledger.get('x402:one')
    t.equal(winner?.owner, `owner ${outcomes.indexOf(undefined)}`, 'the one who was told so')
    for (const standing of outcomes) if (standing !== undefined) t.strictSame(standing, winner)
    t.strictSame(await ledger.insert(makeRecord('x402:one')), winner, 'later neither')
    t.equal(await ledger.insert(makeRecord('x402:two')), undefined, 'another one is free')
  })

  t.test(
    `${name}: makes a change of the current version once, and refuses changes of older ones`,
    async (t) => {
      const ledger = await openNew(t)
      const record = makeRecord('x402:one')
      t.equal(await ledger.replace(record, nextRecord(record)), false, 'there is nothing to change yet')
      t.equal(await ledger.get(record.key), undefined, 'and nothing was stored')
      await ledger.insert(record)
      const tries = Array.from({ length: 100 }, (_, number) =>
        ledger.replace(record, nextRecord(record, { owner: `owner ${number}` })),
      )
      const won = await Promise.all(tries)
      t.equal(won.filter((each) => each).length, 1)
      const stored = await ledger.get(record.key)
      t.equal(stored?.owner, `owner ${won.indexOf(true)}`, 'the one who was told so')
      t.equal(stored?.version, 2)
      t.equal(
        await ledger.replace(record, nextRecord(record, { state: 'voided' })),
        false,
        'the first version is gone',
      )
      const future = { ...record, version: 7 }
      t.equal(await ledger.replace(future, nextRecord(future)), false, 'a version that never was')
      t.strictSame(await ledger.get(record.key), stored, 'and nothing has changed')
      t.strictSame(await ledger.find(record.id), stored, 'under neither name')
    },
  )

  t.test(`${name}: makes a change that nobody waits for soon, and before the next one`, async (t) => {
    const ledger = await openNew(t)
    const record = makeRecord('x402:one')
    await ledger.insert(record)
    const soon = nextRecord(record, { state: 'fulfilled' })
    const late = nextRecord(record, { state: 'voided' })
    const next = nextRecord(soon, { state: 'settling' })
    const made = await Promise.all([
      ledger.replaceSoon(record, soon),
      ledger.replaceSoon(record, late),
      ledger.replace(soon, next),
    ])
    t.strictSame(made, [true, false, true])
    t.strictSame(await ledger.get(record.key), next)
    const alone = nextRecord(next, { state: 'unknown' })
    t.equal(await ledger.replaceSoon(next, alone), true, 'and when no other change comes')
    t.strictSame(await ledger.get(record.key), alone)
  })

  t.test(`${name}: deletes a record only in the version that was read`, async (t) => {
    const ledger = await openNew(t)
    const record = fullEntry('x402:one')
    await ledger.insert(record)
    const next = nextRecord(record)
    await ledger.replace(record, next)
    t.equal(await ledger.remove(record), false, 'somebody has changed it')
    t.strictSame(await ledger.get(record.key), next)
    t.equal(await ledger.remove(next), true)
    t.equal(await ledger.get(record.key), undefined)
    t.equal(await ledger.find(record.id), undefined)
    t.equal(await ledger.remove(next), false, 'it is gone')
    t.equal(await ledger.insert(record), undefined, 'its key is free')
  })

  t.test(`${name}: refuses writes by the former owner of a payment after it was created again`, async (t) => {
    const ledger = await openNew(t)
    const late = makeRecord('x402:one', NOW, 'late')
    await ledger.insert(late)
    t.equal(await ledger.remove(late), true)
    const record = makeRecord('x402:one', NOW + 1, 'other')
    t.equal(record.version, late.version)
    await ledger.insert(record)
    t.equal(await ledger.replace(late, nextRecord(late, { state: 'fulfilled' })), false)
    t.equal(await ledger.remove(late), false)
    t.strictSame(await ledger.get('x402:one'), record)
    t.equal((await ledger.due('cleanup', NOW + 99_999, 10)).length, 1)
  })

  t.test(`${name}: keeps keys of any characters and length apart`, async (t) => {
    const ledger = await openNew(t)
    const keys = [
      '',
      ' ',
      'a:b:c',
      'a',
      'A',
      'x402:eip155:8453:0xé',
      'x402:eip155:8453:0xe\u0301',
      '🪙\u0000end',
      '🪙',
      '\u0000',
      '{"key":1}',
      '__proto__',
      '../../etc/passwd',
      'line\nbreak\r\n',
      '*',
      '[a-z]?',
      'k'.repeat(4_000),
      `${'k'.repeat(4_000)}!`,
    ]
    for (const key of keys)
      t.equal(await ledger.insert(makeRecord(key)), undefined, JSON.stringify(key.slice(0, 30)))
    for (const key of keys) {
      t.equal((await ledger.get(key))?.key, key)
      t.equal((await ledger.find(paymentId(key)))?.key, key)
    }
    t.equal((await all(ledger)).length, keys.length)
  })

  t.test(`${name}: returns records of a megabyte whole, and many of them`, async (t) => {
    const ledger = await openNew(t)
    const seal = 'é🪙"\\\n'.repeat(125_000)
    const records = Array.from({ length: 8 }, (_, number) => makeRecord(`x402:${number}`))
    await Promise.all(records.map((record) => ledger.insert(record)))
    const sealed = records.map((record) => nextRecord(record, { authorizationHash: seal }))
    t.strictSame(
      await Promise.all(records.map((record, at) => ledger.replace(record, sealed[at] ?? record))),
      records.map(() => true),
    )
    for (const record of sealed) t.strictSame(await ledger.get(record.key), record)
  })

  t.test(`${name}: makes changes of several records together or leaves all as they are`, async (t) => {
    const ledger = await openNew(t)
    const records = Array.from({ length: 5 }, (_, number) => makeRecord(`x402:${number}`, NOW + number))
    for (const record of records) await ledger.insert(record)
    const settling = records.map((previous) => ({
      previous,
      next: nextRecord(previous, { state: 'settling', due: 9 }),
    }))
    const [first, ...others] = settling
    if (first === undefined) throw new Error('there are five')
    const changed = nextRecord(first.previous, { state: 'fulfilled' })
    t.equal(await ledger.replace(first.previous, changed), true)
    t.equal(await ledger.commit([...others, first]), false, 'somebody has changed one of them')
    t.strictSame(await all(ledger), [changed, ...records.slice(1)], 'so nothing was made of the others')
    t.strictSame(await ledger.due('money', 9, 10), [])
    t.equal(await ledger.commit([...others, { previous: changed, next: undefined }]), true)
    const left = others.map(({ next }) => next)
    t.strictSame(await all(ledger), left)
    t.strictSame(new Set(await ledger.due('money', 9, 10)), new Set(left), 'and all lists know it')
    t.equal(await ledger.insert(first.previous), undefined, 'the key and the identifier are free')
    t.equal(await ledger.commit([]), true, 'nothing is done at once')
  })

  t.test(
    `${name}: stores a new record in one commit with other changes, unless it is there already`,
    async (t) => {
      const ledger = await openNew(t)
      const standing = makeRecord('x402:standing', NOW)
      await ledger.insert(standing)
      const added = { ...makeRecord('x402:added', NOW + 1, 'one'), due: 9, state: 'fulfilled' } as const
      const changed = nextRecord(standing, { state: 'voided' })
      const change = { previous: standing, next: changed }
      const state = { previous: { name: 'channel', version: 0 }, next: 'one' }
      t.equal(await ledger.commit([{ previous: undefined, next: added }, change], [state]), true)
      t.strictSame(await all(ledger), [changed, added])
      t.strictSame(await ledger.due('money', 9, 10), [added])
      t.strictSame(await ledger.undelivered(added.buyerKey, 0, 10), [added], 'all lists know it')
      const other = { ...makeRecord('x402:other'), identifier: added.identifier }
      for (const next of [added, other]) {
        const again = nextRecord(changed, { state: 'reserved' })
        const changes = [
          { previous: changed, next: again },
          { previous: undefined, next },
        ] as const
        t.equal(await ledger.commit(changes), false, next.key)
      }
      t.strictSame(await all(ledger), [changed, added])
      t.equal((await ledger.states.get('channel')).text, 'one')
      const late = { previous: undefined, next: makeRecord('x402:late') }
      t.equal(await ledger.commit([late], [state]), false, 'another has changed the state')
      t.equal(await ledger.get(late.next.key), undefined)
    },
  )

  t.test(`${name}: makes one of several commits that share a record`, async (t) => {
    const ledger = await openNew(t)
    const records = Array.from({ length: 8 }, (_, number) => makeRecord(`x402:${number}`))
    for (const record of records) await ledger.insert(record)
    const tries = records.map((_, start) =>
      ledger.commit(
        records.map((_, place) => {
          const previous = records[(start + place) % records.length] ?? makeRecord('none')
          return { previous, next: nextRecord(previous, { owner: `owner ${start}` }) }
        }),
      ),
    )
    const made = await Promise.all(tries)
    t.equal(made.filter((each) => each).length, 1)
    t.strictSame(
      new Set((await all(ledger)).map(({ owner }) => owner)),
      new Set([`owner ${made.indexOf(true)}`]),
    )
  })

  between.test(`${name}: keeps all changes of a commit or none when its process is killed`, async (t) => {
    const place = newPlace(t)
    const worker = startWorker([name, place, 'commit', 'x402'])
    t.equal(await worker.line(), 'ready')
    worker.begin()
    for (let line = 0; line < 20; line += 1) await worker.line()
    await worker.kill()
    const ledger = await openLedger(name, place)
    t.teardown(() => ledger.close())
    const records = await all(ledger)
    t.equal(records.length, 50)
    t.equal(new Set(records.map(({ version }) => version)).size, 1, 'they are all of one commit')
    t.ok(records.every(({ version }) => version > 20))
  })

  t.test(`${name}: lists every record, oldest first`, async (t) => {
    const ledger = await openNew(t)
    t.strictSame(await all(ledger), [])
    const ages = [5, 1, 9, 3, 7, 2, 8, 4, 6, 0]
    for (const age of ages) await ledger.insert(makeRecord(`x402:${age}`, NOW - age))
    const changed = makeRecord('x402:9', NOW - 9)
    await ledger.replace(changed, nextRecord(changed, { updatedAt: NOW + 1 }))
    t.strictSame(
      (await all(ledger)).map(({ createdAt }) => NOW - createdAt),
      [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
    )
  })

  t.test(`${name}: lists each record of one moment once, however many`, async (t) => {
    const ledger = await openNew(t)
    const keys = Array.from({ length: 230 }, (_, number) => `x402:${number}`)
    await Promise.all(keys.map((key) => ledger.insert(makeRecord(key))))
    const listed = (await all(ledger)).map(({ key }) => key)
    t.equal(listed.length, keys.length)
    t.strictSame(new Set(listed), new Set(keys))
    t.strictSame(
      (await all(ledger)).map(({ key }) => key),
      listed,
      'in the same order every time',
    )
  })

  t.test(`${name}: lists records while they change and go`, async (t) => {
    const ledger = await openNew(t)
    const keys = Array.from({ length: 230 }, (_, number) => `x402:${number}`)
    await Promise.all(keys.map((key, number) => ledger.insert(makeRecord(key, NOW + number))))
    const seen = []
    for await (const record of ledger.records()) {
      seen.push(record.key)
      if (seen.length % 2 === 0) await ledger.remove(record)
      else await ledger.replace(record, nextRecord(record, { state: 'voided' }))
    }
    t.strictSame(seen, keys, 'none is left out and none comes twice')
    const left = await all(ledger)
    t.equal(left.length, 115)
    t.ok(left.every(({ state }) => state === 'voided'))
  })

  t.test(`${name}: gives a lease to one holder`, async (t) => {
    const ledger = await openNew(t)
    const tries = Array.from({ length: 50 }, (_, number) => take(ledger, 'signer', `owner ${number}`))
    t.equal((await Promise.all(tries)).filter((lease) => lease !== undefined).length, 1)
    t.not(await take(ledger, 'another', 'somebody'), undefined, 'another thing is free')
  })

  t.test(`${name}: renews a lease with the same fencing token`, async (t) => {
    const ledger = await openNew(t)
    const first = await take(ledger, 'signer', 'a', 50)
    t.strictSame(first, { name: 'signer', owner: 'a', fencingToken: 1, leaseState: undefined })
    t.strictSame(await take(ledger, 'signer', 'a'), first)
    await delay(60)
    t.equal(await take(ledger, 'signer', 'b'), undefined, 'the renewal counts')
    await take(ledger, 'signer', 'a', 1)
    await delay(5)
    t.strictSame(await take(ledger, 'signer', 'a'), first, 'expired, and nobody else was there')
  })

  t.test(`${name}: passes an expired lease on, and refuses its late holder`, async (t) => {
    const ledger = await openNew(t)
    const first = await take(ledger, 'signer', 'a', 1)
    await delay(5)
    const second = await take(ledger, 'signer', 'b')
    t.equal(second?.fencingToken, 2)
    t.equal(await take(ledger, 'signer', 'a'), undefined)
    if (first !== undefined) await ledger.release(first, { value: 99, at: NOW })
    t.equal(await take(ledger, 'signer', 'c'), undefined, 'the late release ends nothing')
    if (second !== undefined) await ledger.release(second, undefined)
    t.strictSame(
      await take(ledger, 'signer', 'c'),
      { name: 'signer', owner: 'c', fencingToken: 3, leaseState: undefined },
      'nor does it leave anything',
    )
  })

  t.test(`${name}: frees a released lease at once, with the state that was left`, async (t) => {
    const ledger = await openNew(t)
    const left = { value: 7, at: NOW }
    const first = await take(ledger, 'signer', 'a')
    t.not(first, undefined)
    if (first !== undefined) await ledger.release(first, left)
    const second = await take(ledger, 'signer', 'b')
    t.strictSame(second, { name: 'signer', owner: 'b', fencingToken: 2, leaseState: left })
    t.strictSame(await take(ledger, 'signer', 'b', 1), second, 'a renewal keeps it')
    await delay(5)
    const third = await take(ledger, 'signer', 'a')
    t.strictSame(third?.leaseState, left, 'and so does who dies without leaving anything')
    if (third !== undefined) await ledger.release(third, undefined)
    t.equal((await take(ledger, 'signer', 'a'))?.leaseState, undefined)
    t.equal((await take(ledger, 'signer', 'a'))?.fencingToken, 4, 'a new turn of the same owner')
  })

  t.test(`${name}: returns what was stored after closing, which may be repeated`, async (t) => {
    const place = newPlace(t)
    const before = await openLedger(name, place)
    const record = fullEntry('x402:one')
    await before.insert(record)
    const lease = await take(before, 'signer', 'a')
    if (lease !== undefined) await before.release(lease, { value: 7, at: NOW })
    await before.close()
    await before.close()
    const after = await openLedger(name, place)
    t.teardown(() => after.close())
    t.strictSame(await after.get(record.key), record)
    t.strictSame(await after.find(record.id), record)
    t.strictSame((await take(after, 'signer', 'b'))?.leaseState, { value: 7, at: NOW })
  })

  for (const processes of [2, 4]) {
    between.test(`${name}: ${processes} processes keep all of each other’s changes`, async (t) => {
      const place = newPlace(t)
      const ledger = await openLedger(name, place)
      t.teardown(() => ledger.close())
      await ledger.insert({ ...makeRecord('x402:one'), attempts: 0 })
      const said = await runTogether(processes, [name, place, 'count', 'x402:one'])
      t.strictSame(
        said,
        Array.from({ length: processes }, () => 'counted'),
      )
      const stored = await ledger.get('x402:one')
      t.equal(stored?.attempts, processes * 500)
      t.equal(stored?.version, processes * 500 + 1)
      t.strictSame(
        await ledger.due('cleanup', processes * 500 - 1, 10),
        [],
        'nor do they leave it where it was due before',
      )
      t.strictSame(await ledger.due('cleanup', processes * 500, 10), [stored])
    })
  }

  between.test(`${name}: accepts a payment once over all processes`, async (t) => {
    const place = newPlace(t)
    const ledger = await openLedger(name, place)
    t.teardown(() => ledger.close())
    t.equal(await ledger.get('x402:one'), undefined)
    const said = await runTogether(2, [name, place, 'insert', 'x402:one'])
    t.strictSame(new Set(said), new Set(['0', '1']))
    t.not(await ledger.get('x402:one'), undefined, 'and this one sees it')
    t.equal((await ledger.insert(makeRecord('x402:one')))?.key, 'x402:one')
  })

  between.test(
    `${name}: gives a lease to one holder over all processes, until it expires after a kill`,
    async (t) => {
      const place = newPlace(t)
      const ledger = await openLedger(name, place)
      t.teardown(() => ledger.close())
      const worker = startWorker([name, place, 'lease', 'signer'])
      await worker.line()
      worker.begin()
      t.match(JSON.parse((await worker.line()) ?? ''), { name: 'signer', fencingToken: 1 })
      await worker.kill()
      t.equal(await take(ledger, 'signer', 'me'), undefined)
      await delay(1_000)
      t.equal((await take(ledger, 'signer', 'me'))?.fencingToken, 2)
    },
  )

  between.test(`${name}: keeps every acknowledged write of a killed process`, async (t) => {
    const place = newPlace(t)
    const worker = startWorker([name, place, 'write', 'x402'])
    t.equal(await worker.line(), 'ready')
    worker.begin()
    const told = new Map<number, number>()
    const hear = (line: string): void => {
      const [number = '', version = ''] = line.split(' ')
      told.set(Number(number), Number(version))
    }
    for (let line = await worker.line(); line !== undefined; line = await worker.line()) {
      hear(line)
      // What has been said and not been read yet is still heard.
      if (told.size === 100) void worker.kill()
    }
    await worker.kill()
    const ledger = await openLedger(name, place)
    t.teardown(() => ledger.close())
    t.ok(told.size >= 100)
    const lost = []
    for (const [number, version] of told) {
      const record = await ledger.get(`x402:${number}`)
      if (record === undefined || record.version < version) lost.push(number)
    }
    t.strictSame(lost, [])
    t.equal(await ledger.insert(makeRecord('x402:next')), undefined, 'and the store is usable')
  })

  testFinding(name, newPlace, reach)
  testStates(name, newPlace, reach)
  testTotals(name, newPlace)
}

/** One with everything a record can have. */
function fullEntry(key: string): PaymentRecord {
  return {
    ...makeRecord(key),
    state: 'settled',
    answer: { kind: 'json', mediaType: 'application/json', size: 9, digest: 'digest', attempt: 1 },
    dispatch: { kind: 'own', hash: '0x01', raw: '0x02', signer: '0x03', nonce: 0 },
    receipt: { transaction: '0x01', network: 'eip155:84532', payer: '0xb0', amount: '5000' },
    settledAt: NOW,
    pendingWrite: true,
  }
}

/** By the time of this machine, for a minute unless given. */
function take(ledger: Ledger, name: string, owner: string, ms = 60_000): Promise<Lease | undefined> {
  return ledger.lease(name, owner, Date.now(), Date.now() + ms)
}

async function all(ledger: Ledger): Promise<PaymentRecord[]> {
  const records: PaymentRecord[] = []
  for await (const record of ledger.records()) records.push(record)
  return records
}
