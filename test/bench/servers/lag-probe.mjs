// Loaded into a server: watches how late its event loop comes, and tells on SIGUSR2, counting anew from then.
import { monitorEventLoopDelay } from 'node:perf_hooks'

const RESOLUTION = 5
const delay = monitorEventLoopDelay({ resolution: RESOLUTION })
delay.enable()
process.on('SIGUSR2', () => {
  // Every sample holds the wait that was asked for.
  const late = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION)
  const figures = { p50: late(delay.percentile(50)), p99: late(delay.percentile(99)), max: late(delay.max) }
  delay.reset()
  process.stderr.write(`lag ${JSON.stringify(figures)}\n`)
})
