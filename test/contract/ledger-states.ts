import t, { type Test } from 'tap'
import type { Ledger } from '../../src/engine/ledger/ledger.ts'
import type { SchemeState } from '../../src/engine/ledger/scheme-state.ts'
import { openLedger } from '../fixtures/ledger/open.ts'
import { makeRecord, nextRecord } from '../support/payment-records.ts'
import { testsBetweenProcesses, type Reach } from './reach.ts'
import { runTogether } from '../support/ledger-process.ts'

/** What schemes keep between payments: a part of `testLedger`. */
export function testStates(name: string, newPlace: (t: Test) => string, reach: Reach): void {
  const between = testsBetweenProcesses(reach)
  const openNew = async (t: Test, place = newPlace(t)): Promise<Ledger> => {
    const ledger = await openLedger(name, place)
    t.teardown(() => ledger.close())
    return ledger
  }
  const write = async (ledger: Ledger, previous: SchemeState, next: string | undefined): Promise<boolean> =>
    ledger.commit([], [{ previous, next }])
  const namesOf = async (ledger: Ledger, prefix: string): Promise<string[]> => {
    const names: string[] = []
    for await (const each of ledger.states.list(prefix)) names.push(each.name)
    return names.sort()
  }

  t.test(`${name}: keeps the state of a scheme, and counts its changes`, async (t) => {
    const place = newPlace(t)
    const ledger = await openNew(t, place)
    const none = await ledger.states.get('tab:one')
    t.strictSame(none, { name: 'tab:one', text: '', version: 0 })
    t.equal(await write(ledger, none, '{"charged":"5\\n🪙"}'), true)
    const first = await ledger.states.get('tab:one')
    t.strictSame(first, { name: 'tab:one', text: '{"charged":"5\\n🪙"}', version: 1 })
    t.equal(await write(ledger, first, 'line\nbreak'), true)
    const long = `tab:${'n'.repeat(496)}`
    t.equal(await write(ledger, await ledger.states.get(long), 'x'.repeat(100_000)), true)
    await ledger.close()
    const again = await openNew(t, place)
    t.strictSame(await again.states.get('tab:one'), { name: 'tab:one', text: 'line\nbreak', version: 2 })
    t.equal((await again.states.get(long)).text.length, 100_000)
  })

  t.test(`${name}: changes a state only from the version that was read`, async (t) => {
    const ledger = await openNew(t)
    const none = await ledger.states.get('tab:one')
    t.equal(await write(ledger, none, 'a'), true)
    t.equal(await write(ledger, none, 'b'), false)
    t.equal(await write(ledger, { ...none, version: 2 }, 'b'), false, 'a version that never was')
    t.match(await ledger.states.get('tab:one'), { text: 'a', version: 1 })
  })

  t.test(`${name}: removes a state only in the version that was read`, async (t) => {
    const ledger = await openNew(t)
    const none = await ledger.states.get('tab:one')
    await write(ledger, none, 'a')
    t.equal(await write(ledger, none, undefined), false)
    const first = await ledger.states.get('tab:one')
    t.equal(first.text, 'a')
    t.equal(await write(ledger, first, undefined), true)
    t.strictSame(await ledger.states.get('tab:one'), none)
    t.strictSame(await namesOf(ledger, 'tab:'), [])
    t.equal(await write(ledger, none, 'b'), true, 'its name is free')
  })

  t.test(`${name}: stores changes of records and states together or none of them`, async (t) => {
    const ledger = await openNew(t)
    const record = makeRecord('x402:one')
    await ledger.insert(record)
    const [one, two] = [await ledger.states.get('tab:one'), await ledger.states.get('tab:two')]
    const next = nextRecord(record, { state: 'fulfilled' })
    const both = [
      { previous: one, next: 'a' },
      { previous: two, next: 'b' },
    ]
    t.equal(await ledger.commit([{ previous: record, next }], both), true)
    t.strictSame(await ledger.get(record.key), next)

    const [first, second] = [await ledger.states.get('tab:one'), await ledger.states.get('tab:two')]
    const later = { previous: next, next: nextRecord(next) }
    const stale = [
      { previous: first, next: 'c' },
      { previous: two, next: 'd' },
    ]
    t.equal(await ledger.commit([later], stale), false, 'one state has changed')
    t.equal(
      await ledger.commit([{ previous: record, next }], [{ previous: first, next: undefined }]),
      false,
      'the record has changed',
    )
    t.strictSame(await ledger.get(record.key), next)
    t.strictSame(await ledger.states.get('tab:one'), first)
    t.strictSame(await ledger.states.get('tab:two'), second)
  })

  t.test(`${name}: lists the states whose names begin with a prefix, once each`, async (t) => {
    const ledger = await openNew(t)
    const many = Array.from({ length: 1_500 }, (_, number) => `tab:${number}`).sort()
    const others = ['tab', 'ta', 'tb:1', 'TAB:1', 'tab*1', 'tab[0]', 'a?b', 'a\\b']
    for (const each of [...many, ...others]) await write(ledger, await ledger.states.get(each), each)
    t.strictSame(await namesOf(ledger, 'tab:'), many)
    t.strictSame(await namesOf(ledger, 'tab*'), ['tab*1'])
    t.strictSame(await namesOf(ledger, 'tab['), ['tab[0]'])
    t.strictSame(await namesOf(ledger, 'a?'), ['a?b'])
    t.strictSame(await namesOf(ledger, 'a\\'), ['a\\b'])
    t.strictSame(await namesOf(ledger, 'none'), [])
    t.equal((await namesOf(ledger, '')).length, many.length + others.length)
  })

  between.test(`${name}: processes keep all of each other’s changes of one state`, async (t) => {
    const place = newPlace(t)
    const ledger = await openNew(t, place)
    await runTogether(3, [name, place, 'count-state', 'tab:one'])
    t.match(await ledger.states.get('tab:one'), { text: '300', version: 300 })
  })
}
