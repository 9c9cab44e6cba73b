import t from 'tap'
import { setTimeout as delay } from 'node:timers/promises'
import { Cache, createMemoryCache } from '../../../../src/engine/cache/cache.ts'
import type { Operation } from '../../../../src/engine/catalog/catalog.ts'
import { Failure } from '../../../../src/engine/base/errors.ts'
import type { Answer, Context, UntypedHandler } from '../../../../src/engine/handler.ts'
import {
  digestArguments,
  execute,
  runInBackground,
  ANONYMOUS,
  type HandlerRun,
  type ExecutionDeps,
  type ServedOperation,
} from '../../../../src/engine/purchase/execution.ts'
import { compileRoutes, routeAt } from '../../../support/catalogs.ts'

const CATALOG =
  compileRoutes(`  /paid/cached: { price: 1, summary: X, cache: { ttl: 1m, stale_if_error: 10m }, timeout: 5s }
  /paid/plain: { price: 1, summary: X, timeout: 5s }
  /paid/hasty: { price: 1, summary: X, timeout: 30ms }
  /paid/hasty_cached: { price: 1, summary: X, cache: { ttl: 1m, stale_if_error: 10m }, timeout: 30ms }
`)
const CACHED = routeAt(CATALOG, '/paid/cached').operation
const PLAIN = routeAt(CATALOG, '/paid/plain').operation
const HASTY = routeAt(CATALOG, '/paid/hasty').operation
const HASTY_CACHED = routeAt(CATALOG, '/paid/hasty_cached').operation

/** Dependencies whose clock the test advances. */
function createDeps(): ExecutionDeps & { advance(ms: number): void } {
  let now = Date.parse('2026-11-20T20:00:00Z')
  return {
    cache: new Cache(createMemoryCache(), () => now),
    now: () => now,
    random: (bytes) => new Uint8Array(bytes).fill(7),
    advance: (ms) => {
      now += ms
    },
  }
}

function answer(value: number): Answer {
  return { source: [], body: { value } }
}

function work(operation: Operation, handler: UntypedHandler, more: Partial<HandlerRun> = {}): HandlerRun {
  return {
    operation,
    handler,
    args: {},
    caller: ANONYMOUS,
    timeLeft: 4_000,
    reuse: 'cached',
    operations: new Map(),
    ...more,
  }
}

const PAYMENT = {
  id: 'pay_1',
  protocol: 'x402',
  network: 'eip155:8453',
  payer: '0xabc',
  account: 'key',
} as const

t.test('answers a hundred callers with one call of the source', async (t) => {
  let runs = 0
  let open = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const handler: UntypedHandler = async () => {
    runs += 1
    await gate
    return answer(runs)
  }
  const deps = createDeps()
  const callers = Array.from({ length: 100 }, () => execute(deps, work(CACHED, handler)))
  open()
  const served = await Promise.all(callers)
  t.equal(runs, 1)
  t.ok(served.every((each) => JSON.stringify(each.value) === JSON.stringify(answer(1))))
  t.equal((await execute(deps, work(CACHED, handler))).cached, true)
  t.equal(runs, 1)
})

t.test('runs work again for other arguments, and shares it for another order of the same', async (t) => {
  let runs = 0
  const handler: UntypedHandler = async () => answer((runs += 1))
  const deps = createDeps()
  for (const args of [
    { a: 1, b: 2 },
    { b: 2, a: 1 },
    { a: 1, b: 2, c: undefined },
  ]) {
    t.match(await execute(deps, work(CACHED, handler, { args })), { value: answer(1) })
  }
  for (const args of [{ a: 1 }, { a: '1', b: 2 }, { a: [1], b: 2 }, {}])
    await execute(deps, work(CACHED, handler, { args }))
  t.equal(runs, 5)
  t.not(digestArguments(CACHED, {}), digestArguments(PLAIN, {}), 'another operation')
})

t.test('runs work for every caller, with their payment, when the route has no cache', async (t) => {
  const payers: (string | undefined)[] = []
  const handler: UntypedHandler = async (_, { payment }) => {
    payers.push(payment?.payer)
    return answer(payers.length)
  }
  const deps = createDeps()
  await execute(deps, work(PLAIN, handler, { caller: { ...ANONYMOUS, payment: PAYMENT } }))
  await execute(deps, work(PLAIN, handler))
  t.strictSame(payers, ['0xabc', undefined])
})

t.test('hides the payer from the handler of a cached answer', async (t) => {
  let seen: Context['payment'] | 'never' = 'never'
  const handler: UntypedHandler = async (_, { payment }) => {
    seen = payment
    return answer(1)
  }
  await execute(createDeps(), work(CACHED, handler, { caller: { ...ANONYMOUS, payment: PAYMENT } }))
  t.equal(seen, undefined)
})

t.test('answers from the last result while the source fails, as long as the catalog allows', async (t) => {
  let up = true
  const handler: UntypedHandler = async () => {
    if (up) return answer(1)
    throw new Failure('source_error', 'the source is down')
  }
  const deps = createDeps()
  const first = await execute(deps, work(CACHED, handler))
  up = false
  deps.advance(61_000)
  const second = await execute(deps, work(CACHED, handler))
  t.match(second, { value: answer(1), at: first.at, cached: true, stale: true })
  deps.advance(600_000)
  await t.rejects(execute(deps, work(CACHED, handler)), { code: 'source_error' })
})

t.test('shares a failure with the waiting callers only', async (t) => {
  let runs = 0
  const handler: UntypedHandler = async () => {
    runs += 1
    await delay(5)
    if (runs === 1) throw new Failure('source_error', 'once')
    return answer(runs)
  }
  const deps = createDeps()
  const both = await Promise.allSettled([1, 2].map(() => execute(deps, work(CACHED, handler))))
  t.strictSame(
    both.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  t.match(await execute(deps, work(CACHED, handler)), { value: answer(2) })
})

t.test('aborts and reports work that takes too long', async (t) => {
  for (const operation of [HASTY, HASTY_CACHED]) {
    let signal: AbortSignal | undefined
    const handler: UntypedHandler = (_, context) => {
      signal = context.signal
      return new Promise(() => undefined)
    }
    await t.rejects(execute(createDeps(), work(operation, handler)), { code: 'handler_timeout' })
    t.equal(signal?.aborted, true)
  }
})

t.test('answers from the last result while the source hangs', async (t) => {
  let hangs = false
  const handler: UntypedHandler = async () => {
    if (hangs) return new Promise(() => undefined)
    return answer(1)
  }
  const deps = createDeps()
  await execute(deps, work(HASTY_CACHED, handler))
  hangs = true
  deps.advance(61_000)
  t.match(await execute(deps, work(HASTY_CACHED, handler)), { value: answer(1), stale: true })
})

t.test('keeps the answer for the others when the time of one caller is over', async (t) => {
  let open = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  let aborted = false
  const handler: UntypedHandler = async (_, { signal }) => {
    signal.addEventListener('abort', () => {
      aborted = true
    })
    await gate
    if (aborted) throw new Error('broken off')
    return answer(1)
  }
  const deps = createDeps()
  const hasty = execute(deps, work(CACHED, handler, { timeLeft: 10 }))
  const patient = execute(deps, work(CACHED, handler))
  await t.rejects(hasty, { code: 'handler_timeout' })
  t.equal(aborted, false)
  open()
  t.match(await patient, { value: answer(1) })
})

t.test('ends the work at its caller’s deadline when the route has no cache', async (t) => {
  let aborted = false
  const handler: UntypedHandler = (_, { signal }) => {
    signal.addEventListener('abort', () => {
      aborted = true
    })
    return new Promise(() => undefined)
  }
  await t.rejects(execute(createDeps(), work(PLAIN, handler, { timeLeft: 10 })), { code: 'handler_timeout' })
  t.equal(aborted, true)
})

t.test('caps a deadline that lies years ahead', async (t) => {
  const handler: UntypedHandler = async () => {
    await delay(20)
    return answer(1)
  }
  for (const operation of [CACHED, PLAIN]) {
    t.match(await execute(createDeps(), work(operation, handler, { timeLeft: 2 ** 45 })), {
      value: answer(1),
    })
  }
})

t.test('reports a handler that throws at once like any other failure', async (t) => {
  const handler: UntypedHandler = () => {
    throw new Failure('not_found', 'nothing here')
  }
  for (const operation of [CACHED, PLAIN]) {
    await t.rejects(execute(createDeps(), work(operation, handler)), { code: 'not_found' })
  }
})

t.test('aborts whatever still waits when the work is over', async (t) => {
  let signal: AbortSignal | undefined
  const handler: UntypedHandler = async (_, context) => {
    signal = context.signal
    return answer(1)
  }
  await execute(createDeps(), work(PLAIN, handler))
  t.equal(signal?.aborted, true)
})

t.test(
  'runs what handlers do besides calls, where they are ready, and reports faults that are none of a source',
  async (t) => {
    const isNumber = (value: unknown): value is number => typeof value === 'number'
    const keeping = { ttl: 60_000, staleIfError: 600_000 }
    const served = (more: Partial<ServedOperation>): ServedOperation => ({
      operation: PLAIN,
      handler: async () => answer(1),
      preview: undefined,
      check: undefined,
      background: undefined,
      store: undefined,
      readiness: 'ready',
      exemptCallerOf: undefined,
      ...more,
    })
    let samples = 0
    const background = async ({ keep }: Context): Promise<void> => {
      await keep('samples', keeping, isNumber, async () => (samples += 1))
    }
    const bug = new TypeError('a bug')
    const operations = new Map([
      ['sampling', served({ background })],
      ['plain', served({})],
      [
        'unready',
        served({ readiness: 'not_configured', background: () => Promise.reject(new Error('asked')) }),
      ],
      ['down', served({ background: () => Promise.reject(new Failure('source_error', 'down')) })],
      ['slow', served({ operation: HASTY, background: () => new Promise(() => undefined) })],
      ['broken', served({ background: () => Promise.reject(bug) })],
    ])
    const deps = createDeps()
    const reported: unknown[] = []
    for (const minutes of [0, 0, 1]) {
      deps.advance(minutes * 60_000)
      await runInBackground(deps, operations, (fault) => reported.push(fault))
    }
    t.equal(samples, 2, 'as rarely as it keeps them')
    t.strictSame(reported, [bug, bug, bug])
  },
)
