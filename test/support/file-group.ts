import { createServer } from 'node:net'
import t, { type Test } from 'tap'

interface GroupLimits {
  /** For one file with all its tests. A file may set another for itself: `t.setTimeout` at its top level. */
  readonly fileMs: number
  /** For all files together: one that hangs leaves time for the others. */
  readonly groupMs: number
  /** How long what they have left may still run after the last file. */
  readonly leftMs: number
}

const LIMITS: GroupLimits = { fileMs: 600_000, groupMs: 1_800_000, leftMs: 60_000 }

/**
 * Runs test files one after the other in this process, each as one test with its own name. What a file does with the `t`
 * that it imports happens to that test, so a file that fails, throws or hangs leaves the others as they are.
 */
export async function runGroup(
  files: readonly string[],
  { fileMs, groupMs, leftMs }: GroupLimits = LIMITS,
): Promise<void> {
  t.setTimeout(groupMs)
  const names = files.map((file) => file.replace(/^.*\/test\//, 'test/'))
  let running: string | undefined
  // Those of the group itself, before they are lent.
  const root = { test: t.test.bind(t), fail: t.fail.bind(t) }
  const failAside = (error: unknown): void => {
    const place = running === undefined ? 'after the last file' : `while ${running} ran`
    root.fail(`an error outside of all running tests, ${place}`, { thrown: describe(error), stack: '' })
  }
  // An error that comes when its test has ended, of work that it has left behind, would end the group or the process.
  t.threw = failAside
  process.on('uncaughtExceptionMonitor', (error) => {
    const isHandled =
      process.hasUncaughtExceptionCaptureCallback() || process.listenerCount('uncaughtException') > 0
    if (isHandled) return
    process.setUncaughtExceptionCaptureCallback(() => process.setUncaughtExceptionCaptureCallback(null))
    failAside(error)
  })
  const group = Reflect.getPrototypeOf(t)
  const giveBack = (): void => void Reflect.setPrototypeOf(t, group)
  // Before tap counts what has not been finished.
  process.prependOnceListener('exit', () => {
    giveBack()
    if (running !== undefined)
      console.error(
        `the process ended before these files did: ${names.slice(names.indexOf(running)).join(', ')}`,
      )
  })
  // A server has a socket that keeps its process alive; without one, a test that waits would end the process instead of failing.
  const socket = createServer().listen(0, '127.0.0.1')
  for (const [index, file] of files.entries()) {
    const name = names[index] ?? file
    running = name
    await root.test(name, { timeout: fileMs }, async (own: Test) => {
      Reflect.setPrototypeOf(t, forwardTo(own))
      await import(file)
    })
    giveBack()
  }
  running = undefined
  socket.close()
  // A server that a failed test has left would keep this process for ever, and with it what all files have reported.
  setTimeout(() => {
    console.error(`still running after the last file: ${process.getActiveResourcesInfo().join(', ')}`)
    process.exit(1)
  }, leftMs).unref()
}

/** An object whose methods are those of a test, which accept no other `this`. */
function forwardTo(own: Test): object {
  return new Proxy(own, {
    get: (_, name) => {
      const value: unknown = Reflect.get(own, name)
      return typeof value === 'function' ? value.bind(own) : value
    },
    set: (_, name, value) => Reflect.set(own, name, value),
  })
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error)
}
