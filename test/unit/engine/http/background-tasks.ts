import t from 'tap'
import { BackgroundTasks } from '../../../../src/engine/http/background-tasks.ts'

t.test('closes the ledger after purchases whose buyers have hung up', async (t) => {
  const tasks = new BackgroundTasks()
  let finish = (): void => undefined
  const work = new Promise<void>((resolve) => {
    finish = resolve
  })
  t.equal(tasks.add(work), work, 'the work is given back as it is')
  let ended = false
  const end = tasks.end().then(() => {
    ended = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(ended, false)
  finish()
  await end
  t.equal(ended, true)
})

t.test('passes a failure to the caller and ends', async (t) => {
  const tasks = new BackgroundTasks()
  await t.rejects(tasks.add(Promise.reject(new Error('failed'))), /failed/)
  await tasks.end()
})

t.test('records late deliveries before the ledger closes', async (t) => {
  const tasks = new BackgroundTasks()
  let begun = 0
  tasks.later(1, async () => {
    begun += 1
  })
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.equal(begun, 1)
  tasks.later(5, async () => {
    begun += 1
  })
  await tasks.end()
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.equal(begun, 1, 'what has not begun is given up')
})

t.test('waits for work that a look has found while the service stops', async (t) => {
  const tasks = new BackgroundTasks()
  let isDone = false
  const carryOut = async (): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    isDone = true
  }
  const look = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve))
    void tasks.add(carryOut())
  }
  void tasks.add(look())
  await tasks.end()
  t.equal(isDone, true)
})

t.test('starts a task at once and again after it, one at a time, until the service stops', async (t) => {
  const tasks = new BackgroundTasks()
  // The timers of tasks do not keep the process running.
  const running = setInterval(() => undefined, 1_000)
  t.teardown(() => clearInterval(running))
  let [atWork, most, begun] = [0, 0, 0]
  await new Promise<void>((resolve) => {
    tasks.nowAndEvery(1, async () => {
      begun += 1
      atWork += 1
      most = Math.max(most, atWork)
      await new Promise((done) => setTimeout(done, 5))
      atWork -= 1
      if (begun === 3) resolve()
    })
    t.equal(begun, 1)
  })
  t.equal(most, 1)
  await tasks.end()
  const last = begun
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.equal(begun, last)
})
