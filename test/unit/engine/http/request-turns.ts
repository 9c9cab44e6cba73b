import Koa from 'koa'
import t from 'tap'
import { requestTurns } from '../../../../src/engine/http/request-turns.ts'

/** Longer than requests are begun in one turn. */
const LONG_MS = 15

function work(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

function burst(amount: number, ms: number) {
  const seen: string[] = []
  const turns = requestTurns()
  const app = new Koa()
  const ctx = Object.create(app.context) as Koa.ParameterizedContext
  const requests = Array.from({ length: amount }, (_, place) =>
    turns(ctx, async () => {
      seen.push(`request ${place + 1}`)
      work(ms)
    }),
  )
  return { seen, ended: Promise.all(requests) }
}

t.test('begins a request at once when nothing else is at work', async (t) => {
  const { seen, ended } = burst(1, 0)
  t.strictSame(seen, ['request 1'])
  await ended
})

t.test('begins short requests of the same moment in one turn', async (t) => {
  const { seen, ended } = burst(3, 0)
  t.strictSame(seen, ['request 1', 'request 2', 'request 3'])
  await ended
})

t.test('lets timers run between long requests of the same moment, which keep their order', async (t) => {
  const { seen, ended } = burst(3, LONG_MS)
  setTimeout(() => seen.push('timer'), 0)
  t.strictSame(seen, ['request 1'])
  await ended
  t.strictSame(
    seen.filter((each) => each !== 'timer'),
    ['request 1', 'request 2', 'request 3'],
  )
  t.not(seen.at(-1), 'timer')
  t.ok(seen.includes('timer'))
})

t.test('passes on what a request has thrown, and begins the others', async (t) => {
  const turns = requestTurns()
  const ctx = Object.create(new Koa().context) as Koa.ParameterizedContext
  const first = turns(ctx, async () => work(LONG_MS))
  const second = turns(ctx, async () => Promise.reject(new Error('broken')))
  const third = turns(ctx, async () => undefined)
  await t.rejects(second, /broken/)
  await Promise.all([first, third])
})
