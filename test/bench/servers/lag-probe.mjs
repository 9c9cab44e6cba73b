// Loaded into a server: watches how late its event loop comes, and tells on SIGUSR2, counting again from then. On Linux the
// kernel says how long the thread was ready and got no processor: what is left of the lag is the work of the loop itself.
import { readFileSync } from 'node:fs'

const EVERY = 5
let lags = []
let own = []
let last = performance.now()
let waited = waitedMs()

setInterval(() => {
  const [now, waiting] = [performance.now(), waitedMs()]
  const lag = Math.max(0, now - last - EVERY)
  lags.push(lag)
  own.push(Math.max(0, lag - (waiting - waited)))
  ;[last, waited] = [now, waiting]
}, EVERY).unref()

process.on('SIGUSR2', () => {
  process.stderr.write(`lag ${JSON.stringify({ lag: figures(lags), own: figures(own) })}\n`)
  ;[lags, own] = [[], []]
  // Telling is no work of the server: after minutes, it takes 50 ms.
  ;[last, waited] = [performance.now(), waitedMs()]
})

function figures(values) {
  const sorted = values.toSorted((one, other) => one - other)
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}

/** Of the main thread, since it began; 0 where nobody counts. */
function waitedMs() {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}
