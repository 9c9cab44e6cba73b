/** Resolves at the first SIGINT or SIGTERM; SIGHUP meanwhile asks for a reload. */
export function untilStopped(reload: () => void): Promise<void> {
  return new Promise((resolve) => {
    process.on('SIGHUP', reload)
    const stop = (): void => {
      process.off('SIGHUP', reload)
      process.off('SIGINT', stop)
      process.off('SIGTERM', stop)
      resolve()
    }
    process.on('SIGINT', stop)
    process.on('SIGTERM', stop)
  })
}
