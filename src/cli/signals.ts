import type { Log } from './log.ts'

/**
 * Ends the process at once, as a power cut does. `process.exit` waits for the threads of Node.js, and never returns
 * while one of them commits to LMDB and waits for this one while it holds the lock of the store.
 */
export function endNow(): void {
  // These end the sandbox's chain and write what remains of the log.
  process.emit('exit', 1)
  process.kill(process.pid, 'SIGKILL')
}

/** How long a process may take to end after an error that nobody has caught. */
const FAULT_MS = 4_000

/**
 * After an error that nobody has caught, a handler's late throw for example, the state of the process is unknown: it says
 * why, runs `end`, which takes no new requests and closes the stores, and exits with 1.
 */
export function endOnUncaughtError({ write }: Pick<Log, 'write'>, end: () => Promise<void>): void {
  let ending = false
  process.on('uncaughtException', (fault: unknown, origin) => {
    const reason = fault instanceof Error ? (fault.stack ?? fault.message) : String(fault)
    const kind = origin === 'unhandledRejection' ? 'unhandled rejection' : 'uncaught error'
    write({ level: 'error', event: 'uncaught', message: `${kind}: ${reason}` })
    if (ending) return
    ending = true
    const message = 'stopping: the process cannot go on after this error'
    write({ level: 'error', event: 'stop', message })
    setTimeout(endNow, FAULT_MS)
    void end().finally(() => process.exit(1))
  })
}

/** What has asked a process to stop. SIGINT comes from a person who waits for it. */
export type StopSignal = 'SIGINT' | 'SIGTERM'

export interface Signals {
  /** Resolves at the first SIGINT or SIGTERM. */
  readonly stopped: Promise<StopSignal>
  /** Calls `reload` at each SIGHUP from now on; before, it is ignored. */
  onReload(reload: () => void): void
}

/**
 * A minute for requests in flight, as long as a signed payment is valid, and half of one for what follows. What is not
 * finished by then lies in the ledger, as after a power cut, and the next process goes on with it.
 */
const DEADLINE_MS = 90_000

/**
 * Listens from the first moment on, so that a start that is broken off still ends what it has begun.
 * A second SIGINT or SIGTERM ends the process without waiting for anybody. `drainMs`: how long requests are still taken.
 */
export function listenToSignals(drainMs = 0): Signals {
  let hangUp = (): void => undefined
  process.on('SIGHUP', () => hangUp())
  return {
    stopped: new Promise((resolve) => {
      let asked = false
      const stop = (signal: StopSignal): void => {
        if (asked) endNow()
        asked = true
        setTimeout(endNow, drainMs + DEADLINE_MS).unref()
        resolve(signal)
      }
      process.on('SIGINT', () => stop('SIGINT'))
      process.on('SIGTERM', () => stop('SIGTERM'))
    }),
    onReload: (reload) => {
      hangUp = reload
    },
  }
}
