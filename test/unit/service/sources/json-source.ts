import t from 'tap'
import { Failure } from '../../../../src/engine/handler.ts'
import type { Fault } from '../../../../src/service/stand-ins/fault.ts'
import { startStandIns } from '../../../../src/service/stand-ins/stand-ins.ts'
import { SEARCH } from '../../../../src/service/sources/gamestore/shapes.ts'
import { JsonSource, type JsonSourceOptions } from '../../../../src/service/sources/json-source.ts'
import { SourceMetrics } from '../../../../src/service/sources/source-metrics.ts'
import type { Runtime } from '../../../../src/service/sources/source-runtime.ts'
import { standIns, watched, WORLD } from '../../../support/service/sources.ts'

const SEARCH_PATH = '/search/results/'
const QUESTION = { path: SEARCH_PATH, query: { cc: 'DE', count: '3' }, shape: SEARCH }
const { signal } = new AbortController()

function source(
  url: string,
  runtime: Runtime,
  options: Partial<JsonSourceOptions> = {},
  record = new SourceMetrics(runtime.now),
): JsonSource {
  const rate = { perSecond: 100, burst: 100 }
  const baseUrl = `${url}/steam-store`
  return new JsonSource({ name: 'The source', baseUrl, rate, timeoutMs: 5000, ...options }, runtime, record)
}

async function failure(work: Promise<unknown>): Promise<Failure> {
  const error = await work.then(
    () => new Error('It did not fail'),
    (thrown: unknown) => thrown,
  )
  if (error instanceof Failure) return error
  throw error
}

t.test('returns a valid answer from the first attempt', async (t) => {
  const { runtime, asked } = watched(WORLD)
  const { items } = await source(await standIns(t), runtime).get(QUESTION, signal)
  t.equal(items.length, 3)
  t.same(asked, ['/steam-store/search/results/'])
})

const FAULTS: readonly (readonly [Fault, string, number])[] = [
  ['html', 'source_error', 1],
  ['empty', 'source_error', 1],
  ['truncated', 'source_error', 1],
  ['huge', 'source_error', 1],
  ['redirect', 'source_error', 1],
  ['drift', 'source_error', 1],
  ['403', 'source_error', 1],
  ['404', 'source_error', 1],
  ['500', 'source_error', 2],
  ['reset', 'source_error', 2],
  ['null429', 'source_limited', 1],
  ['429', 'source_limited', 1],
  ['hang', 'source_timeout', 1],
  ['drip', 'source_timeout', 1],
]
for (const [fault, code, attempts] of FAULTS) {
  t.test(`answers ${code} after ${attempts === 1 ? 'one request' : 'two requests'}: ${fault}`, async (t) => {
    const { runtime, asked } = watched(WORLD)
    const timeoutMs = code === 'source_timeout' ? 100 : 5000
    const failing = source(await standIns(t, { [SEARCH_PATH]: fault }), runtime, { timeoutMs })
    const { code: actual, detail } = await failure(failing.get(QUESTION, signal))
    t.equal(actual, code)
    t.equal(asked.length, attempts)
    t.match(detail, /^The source [a-zA-Z ]+$/, 'the detail has our words only: no address, no library text')
  })
}

t.test('follows a redirect within the host, as Crossref answers for the DOI of an alias', async (t) => {
  const runtime: Runtime = {
    ...WORLD,
    fetch: async ({ pathname }) =>
      pathname === '/steam-store/search/results/'
        ? new Response(null, { status: 301, headers: { location: '/steam-store/elsewhere' } })
        : Response.json({ items: [{ logo: `https://host.example/apps/7${pathname}` }] }),
  }
  const { runtime: seen, asked } = watched(runtime)
  t.equal((await source('http://store.example', seen).get(QUESTION, signal)).items.length, 1)
  t.strictSame(asked, ['/steam-store/search/results/', '/steam-store/elsewhere'])
})

t.test('asks a missing host twice and reports a source error', async (t) => {
  const { url, stop } = await startStandIns()
  await stop()
  const { runtime, asked } = watched(WORLD)
  const error = await failure(source(url, runtime).get(QUESTION, signal))
  t.match(error, { code: 'source_error', detail: 'The source could not be reached' })
  t.equal(asked.length, 2)
})

t.test('retries once after a short failure, with jitter', async (t) => {
  const waits: number[] = []
  const sleep = async (ms: number) => void waits.push(ms)
  const { runtime, asked } = watched({ ...WORLD, sleep })
  const url = await standIns(t, { [SEARCH_PATH]: '500-once' })
  t.equal((await source(url, runtime).get(QUESTION, signal)).items.length, 3)
  t.equal(asked.length, 2)
  t.same(waits, [225])
})

t.test('returns a 404 as an answer on request', async (t) => {
  const url = await standIns(t, { [SEARCH_PATH]: '404' })
  t.equal(await source(url, WORLD).find(QUESTION, signal), undefined)
})

t.test('leaves a host alone that limits us until its time is over', async (t) => {
  for (const [fault, seconds] of [
    ['null429', 30],
    ['429', 7],
  ] as const) {
    let ms = Date.now()
    const { runtime, asked } = watched({ ...WORLD, now: () => new Date(ms) })
    const limited = source(await standIns(t, { [SEARCH_PATH]: fault }), runtime)
    t.equal((await failure(limited.get(QUESTION, signal))).retryAfter, seconds)
    ms += (seconds - 2) * 1000
    t.match(await failure(limited.get(QUESTION, signal)), { code: 'source_limited', retryAfter: 2 })
    t.equal(asked.length, 1, 'the host was not asked in between')
    ms += 2000
    await failure(limited.get(QUESTION, signal))
    t.equal(asked.length, 2)
  }
})

t.test('fails fast when its own rate limit takes too long, and says how long', async (t) => {
  const { runtime, asked } = watched(WORLD)
  const slow = source(await standIns(t), runtime, { rate: { perSecond: 0.1, burst: 1 } })
  await slow.get(QUESTION, signal)
  t.match(await failure(slow.get(QUESTION, signal)), { code: 'source_limited', retryAfter: 10 })
  t.equal(asked.length, 1)
})

t.test('waits for its own rate limit when that fits into the time', async (t) => {
  const waits: number[] = []
  const sleep = async (ms: number) => void waits.push(ms)
  const now = () => new Date(0)
  const paced = source(await standIns(t), { ...WORLD, sleep, now }, { rate: { perSecond: 1, burst: 1 } })
  await Promise.all([paced.get(QUESTION, signal), paced.get(QUESTION, signal)])
  t.same(waits, [1000])
})

t.test('passes the turn of a caller who gives up to the next one', async (t) => {
  const caller = new AbortController()
  const forever = (_: number, limit: AbortSignal) =>
    new Promise<void>((_resolve, reject) => limit.addEventListener('abort', () => reject(new Error('gone'))))
  const runtime = { ...WORLD, sleep: forever, now: () => new Date(0) }
  // Half of the time is the patience: enough for one turn of a second, not for two.
  const paced = source(await standIns(t), runtime, { rate: { perSecond: 1, burst: 1 }, timeoutMs: 2500 })
  await paced.get(QUESTION, signal)
  const waiting = failure(paced.get(QUESTION, caller.signal))
  caller.abort()
  t.equal((await waiting).code, 'source_timeout')
  const next = failure(paced.get(QUESTION, AbortSignal.timeout(20)))
  t.equal((await next).code, 'source_timeout', 'it waits for the same turn instead of being refused')
})

t.test('returns although a fetch ignores its signal', async (t) => {
  const deaf = source(
    'http://127.0.0.1:1',
    { ...WORLD, fetch: () => new Promise(() => {}) },
    { timeoutMs: 20 },
  )
  t.equal((await failure(deaf.get(QUESTION, signal))).code, 'source_timeout')
})

t.test('skips the call for a caller who has gone', async (t) => {
  const { runtime, asked } = watched(WORLD)
  const error = await failure(source(await standIns(t), runtime).get(QUESTION, AbortSignal.abort()))
  t.equal(error.code, 'source_timeout')
  t.same(asked, [])
})

t.test(
  'counts calls, failures and format changes of a source for the operator, with positions',
  async (t) => {
    const reported: string[] = []
    const record = new SourceMetrics(
      () => new Date('2026-11-20T20:00:00Z'),
      (where) => reported.push(where),
    )
    const url = await standIns(t)
    const ask = (fetch: Runtime['fetch'], options: Partial<JsonSourceOptions> = {}) =>
      source(url, { ...WORLD, fetch }, options, record)
        .get(QUESTION, signal)
        .catch(() => undefined)
    await ask(WORLD.fetch)
    const good = { logo: 'https://host.example/apps/7/capsule.jpg' }
    await ask(async () => Response.json({ items: [good, good, { logo: 7 }] }))
    t.match(record.figures, { asked: 2, failed: 0, drifted: 0, skipped: 1 }, 'one odd row is left out')
    await ask(async () => Response.json({ items: [good, { logo: 7 }, { logo: 7 }] }))
    t.strictSame(record.figures, {
      asked: 3,
      failed: 0,
      drifted: 1,
      skipped: 1,
      lastDrift: { at: new Date('2026-11-20T20:00:00Z'), where: 'items/#/logo: type' },
      fields: new Map([['items/#/logo: type', 2]]),
    })
    t.strictSame(reported, ['items/#/logo: type'], 'each field is reported once')
    await ask(async () => Response.json({ items: [{}] }))
    t.equal(record.figures.lastDrift?.where, 'items/#/logo: required')
    await ask(async () => Response.json(null))
    t.equal(record.figures.lastDrift?.where, 'all of it: type')
    await ask(async () => Response.json({}))
    t.equal(record.figures.lastDrift?.where, 'items: required')
    await ask(async () => new Response('Sorry', { headers: { 'content-type': 'text/html' } }))
    await ask(async () => new Response('null', { status: 429 }))
    await ask(() => new Promise(() => {}), { timeoutMs: 20 })
    t.match(record.figures, { asked: 9, failed: 3, drifted: 4 })
  },
)
