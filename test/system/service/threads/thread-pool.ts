import { spawn } from 'node:child_process'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import t from 'tap'
import { ThreadPool } from '../../../../src/service/threads/thread-pool.ts'
import { LIMIT_EXCEEDED } from '../../../../src/service/threads/thread.ts'

const NEVER = new AbortController().signal
const ENTRY = new URL('../../../fixtures/threads/worker.ts', import.meta.url)

function poolOf(threads: number): ThreadPool<string, string> {
  return new ThreadPool(ENTRY, { threads, milliseconds: 500, megabytes: 160 })
}

t.test('keeps serving others during a hostile input', async (t) => {
  const pool = poolOf(1)
  for (const task of ['spin', 'regex', 'hoard', 'never', 'recurse', 'exit']) {
    t.equal(await pool.perform(task, NEVER), LIMIT_EXCEEDED, task)
    t.equal(await pool.perform('next', NEVER), 'NEXT')
  }
})

t.test('gives a task its time when the process gets none', async (t) => {
  const pool = poolOf(1)
  await pool.perform('warm', NEVER)
  const working = pool.perform('work', NEVER)
  // As a machine with too much to do: the clock goes on, the process does not.
  spawn('sh', ['-c', `kill -STOP ${process.pid}; sleep 1; kill -CONT ${process.pid}`])
  t.equal(await working, 'done')
})

t.test('keeps the event loop free during a hostile input', async (t) => {
  const pool = poolOf(2)
  await Promise.all([pool.perform('warm', NEVER), pool.perform('warm', NEVER)])
  const lag = monitorEventLoopDelay({ resolution: 5 })
  lag.enable()
  await Promise.all([pool.perform('spin', NEVER), pool.perform('regex', NEVER)])
  lag.disable()
  t.comment(`event loop p99 ${(lag.percentile(99) / 1e6).toFixed(1)} ms`)
  t.ok(lag.count > 20, 'the loop went round all the time')
})

t.test('gives a task a free thread while hostile ones run', async (t) => {
  const pool = poolOf(2)
  let hostile = 'running'
  const spinning = pool.perform('spin', NEVER).then(() => {
    hostile = 'over'
  })
  for (const task of ['a', 'b', 'c']) t.equal(await pool.perform(task, NEVER), task.toUpperCase())
  t.equal(hostile, 'running')
  await spinning
})

t.test('answers every task with its own result', async (t) => {
  const pool = poolOf(2)
  const tasks = Array.from({ length: 100 }, (_, place) => `task ${place}`)
  const results = await Promise.all(tasks.map((task) => pool.perform(task, NEVER)))
  t.same(
    results,
    tasks.map((task) => task.toUpperCase()),
  )
})

t.test('frees the queue place of a caller that gives up', async (t) => {
  const pool = poolOf(1)
  const spinning = pool.perform('spin', NEVER)
  await t.rejects(pool.perform('late', AbortSignal.timeout(50)), { code: 'handler_timeout' })
  await t.rejects(pool.perform('late', AbortSignal.abort()), { code: 'handler_timeout' })
  const next = pool.perform('next', NEVER)
  t.equal(await spinning, LIMIT_EXCEEDED)
  t.equal(await next, 'NEXT')
})

t.test('reports errors without internals', async (t) => {
  const pool = poolOf(1)
  t.match(await pool.perform('invalid', NEVER).catch((fault: unknown) => fault), {
    parameter: 'data',
    sentence: 'data is wrong',
    ctx: { why: 'test' },
  })
  await t.rejects(pool.perform('failed', NEVER), { code: 'not_found', detail: 'Nothing here' })
  await t.rejects(pool.perform('broken', NEVER), {
    code: 'internal',
    detail: 'The operation failed unexpectedly',
  })
  t.equal(await pool.perform('next', NEVER), 'NEXT')
})
