import t, { type Test } from 'tap'
import { setTimeout as delay } from 'node:timers/promises'
import { Cache, type CacheStore } from '../../../../src/engine/cache/cache.ts'
import { openRedisCache } from '../../../../src/engine/cache/redis.ts'
import { readRedisAddress } from '../../../../src/engine/base/redis-address.ts'
import { testCache } from '../../../contract/cache.ts'
import { redisAbsence, startRedis, type RunningRedis } from '../../../support/redis.ts'
import { randomBytes } from '../../../support/random.ts'

const POLICY = { ttl: 60_000, staleIfError: 600_000 }

function openAt(url: string, report: (line: string) => void = () => undefined): Promise<CacheStore> {
  const address = readRedisAddress(url, 'CACHE_REDIS_URL')
  if ('fault' in address) throw new Error(address.fault)
  return openRedisCache({ address, random: randomBytes, report })
}

const isNumber = (value: unknown): value is number => typeof value === 'number'

/** What one process is: a cache of its own over the shared store. */
interface Process {
  readonly store: CacheStore
  readonly ask: (key: string, produce: () => Promise<number>) => ReturnType<Cache['through']>
}

async function openProcess(t: Test, url: string): Promise<Process> {
  const store = await openAt(url)
  t.teardown(() => store.close())
  const cache = new Cache(store, () => Date.now())
  const ask: Process['ask'] = (key, produce) =>
    cache.through(key, POLICY, isNumber, async () => ({ value: await produce(), at: Date.now() }))
  return { store, ask }
}

const absence = redisAbsence()
if (absence !== undefined) t.plan(0, absence)
else {
  const redis = await startRedis({ appendonly: 'no' })
  t.teardown(() => redis.stop())
  let places = 0
  const place = (): string => `${redis.url}/${(places += 1)}`
  testCache('redis', () => openAt(place()))

  t.test(
    'answers a hundred simultaneous callers of several processes with one call of the source',
    async (t) => {
      const url = place()
      const processes = await Promise.all([1, 2, 3].map(() => openProcess(t, url)))
      let fetches = 0
      const produce = async (): Promise<number> => {
        fetches += 1
        await delay(200)
        return fetches
      }
      const served = await Promise.all(
        Array.from({ length: 100 }, async (_, at) => processes[at % 3]?.ask('one', produce)),
      )
      t.equal(fetches, 1)
      t.ok(served.every((each) => each?.value === 1))
      t.ok(
        [33, 34].includes(served.filter((each) => each?.cached === false).length),
        'one process has fetched',
      )
      await Promise.all(processes.map(({ ask }) => ask('two', produce)))
      t.equal(fetches, 2, 'another key is another turn')
      t.strictSame(await turns(redis, places), [], 'every turn has ended')
    },
  )

  t.test('keeps a fetch the only one when it takes longer than a lease', async (t) => {
    const url = place()
    const [one, other] = await Promise.all([openProcess(t, url), openProcess(t, url)])
    let fetches = 0
    const produce = async (): Promise<number> => {
      fetches += 1
      await delay(4_500)
      return fetches
    }
    const first = one.ask('slow', produce)
    await delay(100)
    t.match(await Promise.all([first, other.ask('slow', produce)]), [
      { value: 1 },
      { value: 1, cached: true },
    ])
  })

  t.test('fetches in another process when the one that fetches dies', async (t) => {
    const url = place()
    const [dying, other] = await Promise.all([openProcess(t, url), openProcess(t, url)])
    let begun = (): void => undefined
    const working = new Promise<void>((resolve) => (begun = resolve))
    void dying.ask('one', () => {
      begun()
      return new Promise(() => undefined)
    })
    await working
    await dying.store.close()
    t.match(await other.ask('one', async () => 2), { value: 2, cached: false })
  })

  t.test('asks the source from all other processes at once when the fetch of one fails', async (t) => {
    const url = place()
    const [one, two, three] = await Promise.all([
      openProcess(t, url),
      openProcess(t, url),
      openProcess(t, url),
    ])
    let fetches = 0
    let waiting = 0
    let together = (): void => undefined
    const others = new Promise<void>((resolve) => (together = resolve))
    const fail = async (): Promise<number> => {
      fetches += 1
      await delay(200)
      if (fetches === 1) throw new Error('down')
      waiting += 1
      if (waiting === 2) together()
      // Would never come if one of them waited for the other.
      await others
      return 7
    }
    const failing = t.rejects(one.ask('one', fail), { message: 'down' })
    await delay(50)
    t.match(await Promise.all([two.ask('one', fail), three.ask('one', fail)]), [{ value: 7 }, { value: 7 }])
    await failing
    t.equal(fetches, 3)
  })

  t.test('answers through a fetch while Redis fails, and uses it again afterwards', async (t) => {
    const redis = await startRedis({ appendonly: 'no' })
    t.teardown(() => redis.stop())
    const lines: string[] = []
    const store = await openAt(redis.url, (line) => lines.push(line))
    t.teardown(() => store.close())
    const cache = new Cache(store, () => Date.now())
    let fetches = 0
    const ask = (): ReturnType<typeof cache.through<number>> =>
      cache.through('one', POLICY, isNumber, async () => ({ value: (fetches += 1), at: Date.now() }))
    const isBack = async (): Promise<void> => {
      const start = fetches
      for (let tries = 0; tries < 100; tries += 1) {
        if ((await ask()).cached) return
        await delay(100)
      }
      t.fail(`not used again after ${fetches - start} fetches`)
    }
    await ask()
    t.match(await ask(), { value: 1, cached: true })

    await redis.kill()
    t.match(await ask(), { value: 2, cached: false })
    t.match(await ask(), { value: 3, cached: false })
    await redis.restart()
    await isBack()

    const before = fetches
    redis.freeze()
    const frozen = await Promise.all(Array.from({ length: 20 }, ask))
    t.ok(frozen.every(({ value }) => value === before + 1))
    t.match(await ask(), { value: before + 2, cached: false })
    redis.thaw()
    await isBack()
    t.match(lines[0], /^cache: Redis at 127\.0\.0\.1:\d+ .*: answers are fetched instead$/)
    t.match(lines.at(-1), /^cache: Redis at 127\.0\.0\.1:\d+ is back$/)
    t.ok(lines.length < 20, 'said once, not for every request')
  })

  t.test('answers while Redis is missing or refuses the credentials', async (t) => {
    const locked = await startRedis({ appendonly: 'no', password: 'word' })
    t.teardown(() => locked.stop())
    const gone = await startRedis({ appendonly: 'no' })
    await gone.stop()
    for (const [url, words] of [
      [gone.url, 'cannot be reached (ECONNREFUSED)'],
      [locked.url.replace(':word@', ''), 'refuses what it is asked (NOAUTH)'],
      [locked.url.replace('word', 'another'), 'refuses what it is asked (WRONGPASS)'],
      [`${locked.url}/9999`, 'refuses what it is asked (ERR)'],
    ] as const) {
      const lines: string[] = []
      const store = await openAt(url, (line) => lines.push(line))
      const cache = new Cache(store, () => Date.now())
      const ask = (): Promise<unknown> =>
        cache.through('one', POLICY, isNumber, async () => ({ value: 1, at: Date.now() }))
      t.match(await ask(), { value: 1, cached: false })
      t.match(await ask(), { value: 1, cached: false })
      t.match(lines.join('\n'), `: answers are fetched instead`)
      t.ok(lines.join('\n').includes(words), lines.join('\n'))
      t.notMatch(lines.join('\n'), /word|another/)
      await store.close()
    }
  })

  t.test('fetches when another program has written under a key', async (t) => {
    const url = place()
    const { store, ask } = await openProcess(t, url)
    for (const text of [
      '',
      'no JSON',
      '[]',
      '{"value":1}',
      '{"at":"1","value":1}',
      '{"at":9e15,"value":"1"}',
    ]) {
      await redis.command('SELECT', places)
      await redis.command('SET', '{ratecard}:cache:one', text)
      t.match(await ask('one', async () => 5), { value: 5, cached: false }, text)
    }
    await store.set('one', { value: 'x'.repeat(5_000_000), at: Date.now() }, 60_000)
    t.equal(await store.get('one'), undefined, 'too large to be kept, and the older one is gone')
  })
}

async function turns(redis: RunningRedis, place: number): Promise<unknown> {
  await redis.command('SELECT', place)
  return redis.command('KEYS', '{ratecard}:lock:*')
}
