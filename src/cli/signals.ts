export interface Signals {
  /** Resolves at the first SIGINT or SIGTERM. */
  readonly stopped: Promise<void>
  /** From now on SIGHUP asks for a reload; before, it is ignored. */
  onReload(reload: () => void): void
}

/**
 * A minute for requests in flight, as long as a signed payment is valid, and half of one for what follows. What is not
 * finished by then lies in the ledger, as after a power cut, and the next process goes on with it.
 */
const DEADLINE_MS = 90_000

/**
 * Listens from the first moment on, so that a start that is broken off still ends what it has begun.
 * A second SIGINT or SIGTERM ends the process without waiting for anybody.
 */
export function listenToSignals(): Signals {
  let hangUp = (): void => undefined
  process.on('SIGHUP', () => hangUp())
  return {
    stopped: new Promise((resolve) => {
      let asked = false
      const stop = (): void => {
        // Handlers of "exit" still run: they end the sandbox's chain.
        if (asked) process.exit(1)
        asked = true
        setTimeout(() => process.exit(1), DEADLINE_MS).unref()
        resolve()
      }
      process.on('SIGINT', stop)
      process.on('SIGTERM', stop)
    }),
    onReload: (reload) => {
      hangUp = reload
    },
  }
}
