import t from 'tap'
import { type Fetched, createMemoryCache } from '../../../../src/engine/cache/cache.ts'
import { testCache } from '../../../contract/cache.ts'

const MEGABYTE = 1024 * 1024
const ofSize = (size: number): Fetched<unknown> => ({ value: { text: 'a'.repeat(size) }, at: 1 })

testCache('in-process', async () => createMemoryCache())

t.test('in-process: bounds its memory and keeps what was used last', async (t) => {
  const store = createMemoryCache()
  for (let number = 0; number < 60; number += 1) await store.set(`${number}`, ofSize(MEGABYTE), 60_000)
  t.not(await store.get('0'), undefined, '60 MB fit')
  for (let number = 60; number < 80; number += 1) await store.set(`${number}`, ofSize(MEGABYTE), 60_000)
  const kept = []
  for (let number = 0; number < 80; number += 1) if (await store.get(`${number}`)) kept.push(number)
  t.equal(kept.length, 63)
  t.equal(kept[0], 0, 'asked for in between')
  t.strictSame(
    kept.slice(1),
    Array.from({ length: 62 }, (_, at) => at + 18),
    'the others by age',
  )
})

t.test('in-process: leaves out an answer that is too large, and keeps the others', async (t) => {
  const store = createMemoryCache()
  for (let number = 0; number < 10; number += 1) await store.set(`${number}`, ofSize(1_000), 60_000)
  for (const size of [5, 63, 100]) await store.set('large', ofSize(size * MEGABYTE), 60_000)
  t.equal(await store.get('large'), undefined)
  for (let number = 0; number < 10; number += 1) t.not(await store.get(`${number}`), undefined)
})

t.test('in-process: removes the older answer of a key when the new one is too large', async (t) => {
  const store = createMemoryCache()
  await store.set('one', ofSize(1_000), 60_000)
  await store.set('one', ofSize(5 * MEGABYTE), 60_000)
  t.equal(await store.get('one'), undefined)
})

t.test('in-process: drops everything when it is closed', async (t) => {
  const store = createMemoryCache()
  await store.set('one', ofSize(1), 60_000)
  await store.close()
  t.equal(await store.get('one'), undefined)
})
