import t from 'tap'
import { beforeDeadline } from '../../../src/service/sources/deadline.ts'

const never = () => new Promise<never>(() => {})

t.test('work that ignores its signal does not hold the caller beyond the deadline', async (t) => {
  await t.rejects(beforeDeadline(new AbortController().signal, 10, never), { name: 'DeadlinePassed' })
})

t.test('the caller giving up ends the work, which is told so', async (t) => {
  const caller = new AbortController()
  let told = false
  const work = beforeDeadline(caller.signal, 60_000, (limit) => {
    limit.addEventListener('abort', () => (told = true))
    return never()
  })
  caller.abort()
  await t.rejects(work, { name: 'DeadlinePassed' })
  t.ok(told)
})

t.test('nothing is begun for a caller who is gone', async (t) => {
  let begun = false
  const work = beforeDeadline(AbortSignal.abort(), 1000, async () => (begun = true))
  await t.rejects(work, { name: 'DeadlinePassed' })
  t.notOk(begun)
})

t.test("the work's own result and error come through", async (t) => {
  const { signal } = new AbortController()
  t.equal(await beforeDeadline(signal, 1000, async () => 7), 7)
  await t.rejects(
    beforeDeadline(signal, 1000, async () => {
      throw new RangeError('mine')
    }),
    { message: 'mine' },
  )
})
