import t, { type Test } from 'tap'
import { join } from 'node:path'
import { catalogText } from '../../support/catalogs.ts'
import { redisAbsence, startRedis } from '../../support/redis.ts'
import { startServer, type RunningServer } from '../../support/server.ts'
import { openCountingUpstream, type CountingUpstream } from '../../support/upstream.ts'

const ROUTES = `  /tide:
    price: free
    handler: tide
    summary: X
    cache: 10m
    parameters: { port: { type: string, default: Brest } }
`
const HANDLERS = `export const handlers = {
  tide: async ({ port }) => {
    const response = await fetch(process.env.UPSTREAM_URL)
    return { source: [{ name: 'Tide tables' }], body: { port, run: await response.json() } }
  },
}
`

interface Tides {
  readonly start: () => Promise<RunningServer>
  readonly source: CountingUpstream
}

async function openTides(t: Test, env: Readonly<Record<string, string>>): Promise<Tides> {
  const source = await openCountingUpstream()
  t.teardown(() => source.close())
  const directory = t.testdir({
    'catalog.yaml': catalogText(ROUTES),
    handlers: { 'package.json': '{"type":"module"}', 'index.js': HANDLERS },
  })
  const start = async (): Promise<RunningServer> => {
    const server = await startServer({
      args: ['--catalog', join(directory, 'catalog.yaml'), '--handlers', join(directory, 'handlers')],
      env: { HOST: '127.0.0.1', UPSTREAM_URL: source.url, ...env },
    })
    t.teardown(() => server.stop())
    return server
  }
  return { start, source }
}

async function tide(server: RunningServer, query = ''): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(`${server.url}/tide${query}`)
  const body: unknown = await response.json()
  if (typeof body !== 'object' || body === null) throw new Error(`answered ${response.status}`)
  return { status: response.status, ...body }
}

t.test('warns at start that each process has a cache of its own when no Redis is configured', async (t) => {
  const { start } = await openTides(t, {})
  const server = await start()
  t.match(server.output(), /^cache: in-process \(set REDIS_URL to share\)$/m)
})

const absence = redisAbsence()
if (absence !== undefined) t.comment(absence)
else {
  t.test(
    'answers a hundred callers of two processes with one call of the source, and later ones from the cache',
    async (t) => {
      const redis = await startRedis({ appendonly: 'no', password: 'tricky-word' })
      t.teardown(() => redis.stop())
      const { start, source } = await openTides(t, { CACHE_REDIS_URL: `${redis.url}/2` })
      const [one, two] = await Promise.all([start(), start()])
      t.match(one.output(), new RegExp(`^cache: redis at 127\\.0\\.0\\.1:${redis.port}$`, 'm'))
      t.notMatch(one.output(), 'tricky-word')
      source.during(() => new Promise((resolve) => setTimeout(resolve, 300)))
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, at) =>
          tide(at % 2 === 0 ? one : two, at % 4 < 2 ? '' : '?port=Brest'),
        ),
      )
      t.equal(source.runs(), 1)
      t.ok(answers.every(({ status, run }) => status === 200 && run === 1))
      t.equal(new Set(answers.map((answer) => answer['fetched_at'])).size, 1)
      t.match(await tide(two, '?port=Cork'), { cached: false, run: 2 })
      t.match(await tide(one, '?port=Cork'), { cached: true, run: 2 })
      const third = await start()
      t.match(await tide(third), { cached: true, run: 1 }, 'a process that comes later')
    },
  )

  t.test('answers the waiting callers when the process that fetches is killed', async (t) => {
    const redis = await startRedis({ appendonly: 'no' })
    t.teardown(() => redis.stop())
    const { start, source } = await openTides(t, { CACHE_REDIS_URL: redis.url })
    const [one, two] = await Promise.all([start(), start()])
    const begun = new Promise<void>((resolve) =>
      source.during(() => {
        source.during(async () => undefined)
        resolve()
        return new Promise(() => undefined)
      }),
    )
    const lost = tide(one).catch(() => 'lost')
    await begun
    const waiting = tide(two)
    one.process.kill('SIGKILL')
    t.equal(await lost, 'lost')
    t.match(await waiting, { status: 200, cached: false, run: 2 })
  })

  t.test('keeps answering when the Redis of the cache dies, and reports it to the operator', async (t) => {
    const redis = await startRedis({ appendonly: 'no' })
    t.teardown(() => redis.stop())
    const { start, source } = await openTides(t, { CACHE_REDIS_URL: redis.url })
    const server = await start()
    t.match(await tide(server), { status: 200, run: 1 })
    await redis.kill()
    t.match(await tide(server), { status: 200, cached: false, run: 2 })
    t.equal(source.runs(), 2)
    await server.said(/^cache: Redis at \S+ .*: answers are fetched instead$/m)
  })
}
