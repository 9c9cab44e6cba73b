/** Runs `work` every `ms` milliseconds until the returned function is called. */
export type Every = (ms: number, work: () => void) => () => void

/** By timers of this process, which do not keep it alive. */
export const systemEvery: Every = (ms, work) => {
  const timer = setInterval(work, ms)
  timer.unref()
  return () => clearInterval(timer)
}
