import t, { type Test } from 'tap'
import { Cache, type CacheStore, type Fetched, type Served } from '../../src/engine/cache/cache.ts'
import { Failure, InvalidParameter } from '../../src/engine/base/errors.ts'
import { isJsonObject, type JsonObject } from '../../src/engine/base/json.ts'

const NOW = 1_800_000_000_000
const POLICY = { ttl: 60_000, staleIfError: 600_000 }

const answerOf = (value: number): JsonObject => ({ body: { value, list: [value] } })
const fetchedOf = (value: number): Fetched<JsonObject> => ({ value: answerOf(value), at: NOW })
const down = new Failure('source_error', 'the source answered badly')

/** What every cache store must do, and `Cache` over it; `open` makes an empty one. */
export function testCache(name: string, open: (t: Test) => Promise<CacheStore>): void {
  const openNew = async (t: Test): Promise<CacheStore> => {
    const store = await open(t)
    t.teardown(() => store.close())
    return store
  }

  t.test(`${name}: reports the name of its store`, async (t) => {
    t.equal((await openNew(t)).name, name)
  })

  t.test(`${name}: returns an answer as it was set, the newest of its key`, async (t) => {
    const store = await openNew(t)
    t.equal(await store.get('one'), undefined)
    await store.set('one', fetchedOf(1), 60_000)
    await store.set('two', fetchedOf(2), 60_000)
    t.strictSame(await store.get('one'), fetchedOf(1))
    await store.set('one', fetchedOf(3), 60_000)
    t.strictSame(await store.get('one'), fetchedOf(3))
    t.strictSame(await store.get('two'), fetchedOf(2))
    const short = { ...fetchedOf(4), freshFor: 1_000 }
    await store.set('two', short, 60_000)
    t.strictSame(await store.get('two'), short)
    const text = { value: { content: { type: 'text/plain', text: 'é🪙\u0000"' } }, at: NOW }
    await store.set('two', text, 60_000)
    t.strictSame(await store.get('two'), text)
  })

  t.test(`${name}: keeps keys of any characters and length apart`, async (t) => {
    const store = await openNew(t)
    const keys = [
      '',
      ' ',
      'a',
      'A',
      'a:b',
      'é',
      'e\u0301',
      '🪙\u0000',
      '🪙',
      '__proto__',
      '*',
      'k'.repeat(5_000),
    ]
    for (const [at, key] of keys.entries()) await store.set(key, fetchedOf(at), 60_000)
    for (const [at, key] of keys.entries()) t.strictSame(await store.get(key), fetchedOf(at))
  })

  t.test(`${name}: gives each caller a copy of its own`, async (t) => {
    const store = await openNew(t)
    const mine = { value: { body: { list: [1] } }, at: NOW }
    await store.set('one', mine, 60_000)
    mine.value.body.list.push(2)
    const got = await store.get('one')
    t.strictSame(got?.value, { body: { list: [1] } })
    damage(got)
    t.strictSame((await store.get('one'))?.value, { body: { list: [1] } })
  })

  t.test(`${name}: drops an answer when its time is over`, async (t) => {
    const store = await openNew(t)
    await store.set('short', fetchedOf(1), 30)
    await store.set('long', fetchedOf(2), 60_000)
    await new Promise((resolve) => setTimeout(resolve, 100))
    t.equal(await store.get('short'), undefined)
    t.strictSame(await store.get('long'), fetchedOf(2))
  })

  t.test(`${name}: returns an answer of a megabyte whole`, async (t) => {
    const store = await openNew(t)
    const large = { value: { text: 'é"\\'.repeat(330_000) }, at: NOW }
    await store.set('one', large, 60_000)
    t.strictSame(await store.get('one'), large)
  })

  t.test(
    `${name}: gives a fresh answer from the cache, and asks the source for an expired one`,
    async (t) => {
      const { cache, clock } = await openCache(t, await openNew(t))
      const first = await cache.through('one', POLICY, async () => answerOf(1))
      t.strictSame(first, { value: answerOf(1), at: NOW, cached: false, stale: false })
      clock.now += POLICY.ttl - 1
      const second = await cache.through('one', POLICY, () => Promise.reject(new Error('asked')))
      t.strictSame(second, { value: answerOf(1), at: NOW, cached: true, stale: false })
      clock.now += 1
      const third = await cache.through('one', POLICY, async () => answerOf(3))
      t.strictSame(third, { value: answerOf(3), at: clock.now, cached: false, stale: false })
      const fourth = await cache.through('one', POLICY, () => Promise.reject(new Error('asked')))
      t.strictSame(fourth, { ...third, cached: true })
    },
  )

  t.test(`${name}: gives an older answer within its limit when the source fails`, async (t) => {
    const { cache, clock } = await openCache(t, await openNew(t))
    await cache.through('one', POLICY, async () => answerOf(1))
    for (const fault of [down, new Failure('source_timeout', 'late'), new TypeError('a bug')]) {
      clock.now = NOW + POLICY.ttl + POLICY.staleIfError - 1
      const stale = await cache.through('one', POLICY, () => Promise.reject(fault))
      t.strictSame(stale, { value: answerOf(1), at: NOW, cached: true, stale: true })
      clock.now += 1
      await t.rejects(
        cache.through('one', POLICY, () => Promise.reject(fault)),
        fault,
      )
    }
    clock.now = NOW + POLICY.ttl
    const fresh = await cache.through('one', POLICY, async () => answerOf(2))
    t.match(fresh, { stale: false, cached: false, at: clock.now }, 'the source is asked each time')
  })

  t.test(`${name}: reports the failure once an answer is older than its limit`, async (t) => {
    const { cache, clock } = await openCache(t, await openNew(t))
    await cache.through('one', POLICY, async () => answerOf(1))
    clock.now = NOW + POLICY.ttl + POLICY.staleIfError - 1
    const late = cache.through('one', POLICY, async () => {
      clock.now += 1
      throw down
    })
    await t.rejects(late, down)
  })

  t.test(`${name}: passes on a definite refusal of the source instead of an older answer`, async (t) => {
    const { cache, clock } = await openCache(t, await openNew(t))
    await cache.through('one', POLICY, async () => answerOf(1))
    clock.now += POLICY.ttl
    for (const fault of [
      new Failure('not_found', 'App 7 not found'),
      new InvalidParameter('appid', 'no app'),
    ])
      await t.rejects(
        cache.through('one', POLICY, () => Promise.reject(fault)),
        fault,
      )
  })

  t.test(`${name}: treats a value in the format of another version as absent`, async (t) => {
    const store = await openNew(t)
    const { cache } = await openCache(t, store)
    for (const value of [null, 'text', [1]]) {
      await store.set('one', { value, at: NOW }, 60_000)
      t.match(await cache.through('one', POLICY, async () => answerOf(2)), { cached: false })
    }
  })

  t.test(`${name}: reports a failure at once without stale_if_error`, async (t) => {
    const { cache, clock } = await openCache(t, await openNew(t))
    const policy = { ttl: 60_000, staleIfError: 0 }
    await cache.through('one', policy, async () => answerOf(1))
    clock.now += policy.ttl
    await t.rejects(
      cache.through('one', policy, () => Promise.reject(down)),
      down,
    )
  })

  t.test(
    `${name}: serves all simultaneous callers with one fetch, each with an answer of its own`,
    async (t) => {
      const { cache } = await openCache(t, await openNew(t))
      let fetches = 0
      const produce = async (): Promise<JsonObject> => {
        fetches += 1
        await new Promise((resolve) => setTimeout(resolve, 20))
        return { body: { list: [fetches] } }
      }
      const served = await Promise.all(
        Array.from({ length: 50 }, () => cache.through('one', POLICY, produce)),
      )
      t.equal(fetches, 1)
      damage(served[7])
      t.ok(served.every(({ value }, at) => at === 7 || JSON.stringify(value) === '{"body":{"list":[1]}}'))
      const later = await cache.through('one', POLICY, produce)
      t.equal(later.cached, true)
      t.strictSame(later.value, { body: { list: [1] } })
      await cache.through('two', POLICY, produce)
      t.equal(fetches, 2, 'another key is another fetch')
    },
  )

  t.test(`${name}: shares a failure with the simultaneous callers only`, async (t) => {
    const { cache } = await openCache(t, await openNew(t))
    let fetches = 0
    const fail = async (): Promise<JsonObject> => {
      fetches += 1
      await new Promise((resolve) => setTimeout(resolve, 20))
      throw down
    }
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, () => cache.through('one', POLICY, fail)),
    )
    t.equal(fetches, 1)
    t.ok(outcomes.every((outcome) => outcome.status === 'rejected' && outcome.reason === down))
    t.match(await cache.through('one', POLICY, async () => answerOf(2)), {
      value: answerOf(2),
      cached: false,
    })
  })

  t.test(`${name}: answers through a fetch when its store fails`, async (t) => {
    const store = await openNew(t)
    const away = (): Promise<never> => Promise.reject(new Error('the store is away'))
    const { cache, clock } = await openCache(t, store)
    await cache.through('one', POLICY, async () => answerOf(1))
    clock.now += POLICY.ttl
    const unset = cacheOver({ ...store, set: away }, clock)
    t.match(await unset.through('one', POLICY, async () => answerOf(2)), {
      value: answerOf(2),
      stale: false,
    })
    const unread = cacheOver({ ...store, get: away, lock: away }, clock)
    t.match(await unread.through('one', POLICY, async () => answerOf(3)), {
      value: answerOf(3),
      cached: false,
    })
    await t.rejects(
      unread.through('one', POLICY, () => Promise.reject(down)),
      down,
    )
  })

  t.test(
    `${name}: makes a caller who has spent a budget wait until it refills, and serves the others`,
    async (t) => {
      const store = await openNew(t)
      const rate = { burst: 3, interval: 400 }
      const waits = await Promise.all([1, 2, 3, 4].map(() => store.spend('one', rate)))
      t.strictSame(waits.slice(0, 3), [0, 0, 0])
      const [wait = 0] = waits.slice(3)
      t.ok(wait > 0 && wait <= 400, `${wait} ms`)
      t.equal(await store.spend('two', rate), 0)
      while ((await store.spend('one', rate)) > 0) await new Promise((resolve) => setTimeout(resolve, 20))
      t.pass('it was given more')
    },
  )
}

interface TestedCache {
  through(key: string, policy: typeof POLICY, produce: () => Promise<JsonObject>): Promise<Served<JsonObject>>
}

/** A cache whose clock the test turns. */
function cacheOver(store: CacheStore, clock: { readonly now: number }): TestedCache {
  const cache = new Cache(store, () => clock.now)
  return {
    through: (key, policy, produce) =>
      cache.through(key, policy, isJsonObject, async () => ({ value: await produce(), at: clock.now })),
  }
}

async function openCache(
  t: Test,
  store: CacheStore,
): Promise<{ cache: TestedCache; clock: { now: number } }> {
  const clock = { now: NOW }
  t.equal(await store.get('one'), undefined, 'the store is empty')
  return { cache: cacheOver(store, clock), clock }
}

/** What a careless handler or preview does to a value. */
function damage(fetched: Fetched<unknown> | undefined): void {
  if (!isJsonObject(fetched?.value)) throw new Error('there is nothing to damage')
  Object.assign(fetched.value['body'] ?? {}, { list: 'damaged', more: true })
}
