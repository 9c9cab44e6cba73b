// Loaded before the program: at each SIGUSR2, prints the files whose functions were called since the one before.
import { Session } from 'node:inspector'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  process.on('SIGUSR2', () => {
    session.post('Profiler.takePreciseCoverage', (_, { result }) => {
      const called = result.filter(({ functions }) => functions.some(isCalled)).map(({ url }) => url)
      process.stdout.write(`called ${JSON.stringify(called)}\n`)
    })
  })
}

/** The function without a name is the module itself, or an arrow function. */
function isCalled({ ranges: [range] }) {
  return range.count > 0
}
