import t from 'tap'
import { beforeDeadline } from '../../../../src/service/sources/deadline.ts'

const never = () => new Promise<never>(() => {})

t.test('returns at the deadline although the work ignores its signal', async (t) => {
  await t.rejects(beforeDeadline(new AbortController().signal, 10, never), { name: 'DeadlinePassed' })
})

t.test('ends the work when its caller gives up', async (t) => {
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

t.test('starts nothing for a disconnected caller', async (t) => {
  let begun = false
  const work = beforeDeadline(AbortSignal.abort(), 1000, async () => (begun = true))
  await t.rejects(work, { name: 'DeadlinePassed' })
  t.notOk(begun)
})

t.test('passes on the result and the error of the work', async (t) => {
  const { signal } = new AbortController()
  t.equal(await beforeDeadline(signal, 1000, async () => 7), 7)
  await t.rejects(
    beforeDeadline(signal, 1000, async () => {
      throw new RangeError('mine')
    }),
    { message: 'mine' },
  )
})
