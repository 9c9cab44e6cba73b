import { once } from 'node:events'
import t from 'tap'
import { setTimeout as delay } from 'node:timers/promises'
import { Cache, createMemoryCache } from '../../../../src/engine/cache/cache.ts'
import { Failure } from '../../../../src/engine/base/errors.ts'
import type {
  Answer,
  Arguments,
  Context,
  EnvelopedAnswer,
  UntypedHandler,
} from '../../../../src/engine/handler.ts'
import { execute, ANONYMOUS, type ExecutionDeps } from '../../../../src/engine/purchase/execution.ts'
import { createRevision, type Revision } from '../../../../src/engine/http/revision.ts'
import { compileRoutes, routeAt } from '../../../support/catalogs.ts'

const CATALOG = compileRoutes(`  /paid/part:
    price: 1
    summary: X
    cache: { ttl: 10m, stale_if_error: 1h }
    parameters:
      country: { type: string, default: US }
      codes: { type: string, default: "1,2", list: { items: integer, max_items: 3 } }
    sample: { parameters: {}, with: { country: US, codes: "1,2" } }
  /paid/whole: { price: 1, summary: X, cache: { ttl: 2m, stale_if_error: 1h }, timeout: 5s }
  /paid/hasty: { price: 1, summary: X, timeout: 30ms }
  /paid/planned: { price: 1, summary: X, planned: true }
  /paid/locked: { price: 1, summary: X, handler: proxy, upstream: "https://locked.example", credential: LOCKED_KEY }
  /paid/text: { price: 1, summary: X }
`)

interface Kitchen extends ExecutionDeps {
  readonly pass: (ms: number) => void
  /** The answer of one operation, as its route would give it. */
  readonly serve: (path: string, args?: Arguments) => ReturnType<typeof execute>
}

function kitchen(handlers: Readonly<Record<string, UntypedHandler>>): Kitchen {
  let now = Date.parse('2026-11-20T20:00:00Z')
  const { operations }: Revision = createRevision({
    catalog: CATALOG,
    handlers,
    protocols: [],
    baseUrl: 'https://api.example.com',
    mcpUrls: {},
    sandbox: false,
    proxy: { fetcher: fetch, secret: () => undefined, report: () => undefined },
  })
  const deps: ExecutionDeps = {
    cache: new Cache(createMemoryCache(), () => now),
    now: () => now,
    random: (bytes) => new Uint8Array(bytes),
  }
  return {
    ...deps,
    pass: (ms) => {
      now += ms
    },
    serve: (path, args = {}) => {
      const { operation } = routeAt(CATALOG, path)
      const handler = handlers[operation.handler] ?? (() => Promise.reject(new Error('no such handler')))
      const work = { operation, handler, args, caller: ANONYMOUS, timeLeft: 5_000, operations }
      return execute(deps, { ...work, reuse: 'cached' })
    },
  }
}

const ofBody = (body: EnvelopedAnswer['body']): Answer => ({ source: [], body })

t.test(
  'answers a bundle, its part, the sample and any order of parameters with one call of the source',
  async (t) => {
    const seen: Arguments[] = []
    const { serve } = kitchen({
      part: async (args) => {
        seen.push(args)
        return ofBody({ country: 'US' })
      },
      whole: async (_, { ask }) => {
        const parts = await Promise.all([
          ask('part', {}),
          ask('part', { country: 'US' }),
          ask('part', { codes: [1, 2], country: 'US' }),
        ])
        return ofBody({ parts: parts.map(({ answer }) => answer.body) })
      },
    })
    const whole = await serve('/paid/whole')
    t.strictSame(whole.value, ofBody({ parts: [{ country: 'US' }, { country: 'US' }, { country: 'US' }] }))
    t.match(await serve('/paid/part', { country: 'US', codes: [1, 2] }), { cached: true })
    t.strictSame(seen, [{ country: 'US', codes: [1, 2] }])
  },
)

t.test('states in each part when its source answered, and whether the part is stale', async (t) => {
  let up = true
  const parts: unknown[] = []
  const { serve, pass } = kitchen({
    part: async () => {
      if (up) return ofBody({ n: 1 })
      throw new Failure('source_error', 'the source is down')
    },
    whole: async (_, { ask }) => {
      const { at, cached, stale } = await ask('part', {})
      parts.push({ at: at.toISOString(), cached, stale })
      return ofBody({})
    },
  })
  await serve('/paid/whole')
  pass(3 * 60_000)
  await serve('/paid/whole')
  up = false
  pass(9 * 60_000)
  await serve('/paid/whole')
  const at = '2026-11-20T20:00:00.000Z'
  t.strictSame(parts, [
    { at, cached: false, stale: false },
    { at, cached: true, stale: false },
    { at, cached: true, stale: true },
  ])
})

t.test('fails a part as its own route fails', async (t) => {
  const failures: unknown[] = []
  const { serve } = kitchen({
    part: () => Promise.reject(new Failure('not_found', 'App 7 not found')),
    text: async () => ({ content: { type: 'text/plain', text: 'x' } }),
    whole: async (_, { ask }) => {
      for (const name of ['part', 'planned', 'absent', 'text'])
        failures.push(await ask(name, {}).catch((fault: unknown) => fault))
      return ofBody({})
    },
  })
  await serve('/paid/whole')
  t.match(failures, [
    { code: 'not_found', detail: 'App 7 not found' },
    { code: 'not_implemented' },
    { code: 'not_implemented', detail: 'this service has no absent' },
    { message: 'text has no envelope' },
  ])
})

t.test('fetches what several answers share once, until its own expiry', async (t) => {
  let fetches = 0
  const isNumber = (value: unknown): value is number => typeof value === 'number'
  const pool = ({ keep }: Context): ReturnType<typeof keep<number>> =>
    keep('pool', { ttl: 600_000, staleIfError: 600_000 }, isNumber, async () => {
      fetches += 1
      await delay(5)
      if (fetches > 2) throw new Failure('source_error', 'down')
      return fetches
    })
  const kept: unknown[] = []
  const handler: UntypedHandler = async (_, context) => {
    const { value, at, stale } = await pool(context)
    kept.push({ value, stale })
    return { ...ofBody({ value }), fetchedAt: at }
  }
  const { serve, pass } = kitchen({ part: handler, whole: handler })
  const countries = ['US', 'DE', 'JP'].map((country) => serve('/paid/part', { country }))
  await Promise.all([...countries, serve('/paid/whole')])
  t.equal(fetches, 1)
  pass(599_999)
  t.match(await serve('/paid/part', { country: 'FR' }), {
    at: Date.parse('2026-11-20T20:00:00Z'),
    cached: true,
  })
  t.equal(fetches, 1)
  pass(1)
  t.match(
    await serve('/paid/part', { country: 'FR' }),
    { value: { body: { value: 2 } } },
    'not from the old pool',
  )
  pass(600_000)
  await serve('/paid/part', { country: 'FR' })
  t.equal(fetches, 3)
  t.strictSame(kept.at(-1), { value: 2, stale: true })
})

t.test('builds an answer without a part again as soon as it says', async (t) => {
  let runs = 0
  const handler: UntypedHandler = async () => ({ ...ofBody({ run: (runs += 1) }), freshFor: 30_000 })
  const { serve, pass } = kitchen({ whole: handler })
  t.strictSame((await serve('/paid/whole')).value, ofBody({ run: 1 }))
  pass(29_999)
  t.match(await serve('/paid/whole'), { cached: true, value: { body: { run: 1 } } })
  pass(1)
  t.match(await serve('/paid/whole'), { cached: false, value: { body: { run: 2 } } })
})

t.test('extends a history from the stored one until that expires', async (t) => {
  const isList = (value: unknown): value is number[] => Array.isArray(value)
  const handler: UntypedHandler = async (_, { keep, now }) => {
    const hours = { ttl: 3_600_000, staleIfError: 7_200_000 }
    const { value } = await keep('history', hours, isList, async (_signal, previous = []) => [
      ...previous,
      now().getUTCHours(),
    ])
    return ofBody({ value })
  }
  const { serve, pass } = kitchen({ hasty: handler })
  const seen: unknown[] = []
  for (const hours of [0, 0.5, 0.5, 2]) {
    pass(hours * 3_600_000)
    const { value } = await serve('/paid/hasty')
    seen.push('body' in value && value.body['value'])
  }
  t.strictSame(seen, [[20], [20], [20, 21], [20, 21, 23]])
})

t.test('ends a shared fetch by its own deadline, independent of its first caller', async (t) => {
  let signal: AbortSignal | undefined
  const handler: UntypedHandler = async (_, { keep }) => {
    const isText = (value: unknown): value is string => typeof value === 'string'
    await keep('slow', { ttl: 1, staleIfError: 0 }, isText, (given) => {
      signal = given
      return new Promise(() => undefined)
    })
    return ofBody({})
  }
  await t.rejects(kitchen({ hasty: handler }).serve('/paid/hasty'), { code: 'handler_timeout' })
  if (signal?.aborted === false) await once(signal, 'abort')
  t.equal(signal?.aborted, true)
})
