import { createServer } from 'node:net'
import t, { type Test } from 'tap'

/**
 * Runs test files one after the other in this process. What a file registers at its top level is for its own tests alone:
 * it is torn down before the next file is loaded, and only the tests of the file are followed by its `afterEach`.
 */
export async function runGroup(files: readonly string[]): Promise<void> {
  // Of the group; each test has the limit of the runner.
  t.setTimeout(1_200_000)
  let teardowns: (() => unknown)[] = []
  let hooks: ((test: Test) => unknown)[] = []
  t.afterEach(async (test) => {
    for (const hook of hooks) await hook(test)
  })
  t.setTimeout = () => undefined
  t.teardown = (work) => {
    teardowns.push(work)
  }
  t.afterEach = (hook) => {
    hooks.push(hook)
  }
  // A server has a socket that keeps its process alive; without one, a test that waits would end the process instead of failing.
  const socket = createServer().listen(0, '127.0.0.1')
  try {
    for (const file of files) {
      await import(file)
      await t.test(`ends ${file.replace(/^.*\/test\//, 'test/')}`, async () => {
        const works = teardowns.reverse()
        teardowns = []
        hooks = []
        for (const work of works) await work()
      })
    }
  } finally {
    socket.close()
  }
}
