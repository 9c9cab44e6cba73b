// From the file to the first answer: how long a catalog takes to compile and a server to start, and what it holds then.
import { median, printTable, show } from './figures.mjs'
import { startOurs } from './servers/ours.mjs'
import { memory } from './usage.mjs'

export async function measureStart({ catalogs, rounds }) {
  const starts = { shipped: [], many: [] }
  for (let round = 0; round < rounds; round += 1) {
    for (const name of Object.keys(starts)) {
      const server = await startOurs(catalogs[name].file)
      starts[name].push({ ms: server.startMs, memory: memory(server.pid) })
      server.stop()
    }
  }
  const row = (label, runs) => [
    label,
    show(median(runs.map(({ ms }) => ms)), 0),
    show(median(runs.map((run) => run.memory)), 0),
  ]
  printTable(
    'Start to "listening", without a payment',
    ['', 'ms', 'MB resident'],
    [
      row('the shipped catalog', starts.shipped),
      row('5,000 generated routes', starts.many),
      ['the catalog of 5,000 routes alone: read, checked, compiled', show(catalogs.many.compileMs, 0), ''],
    ],
  )
}
