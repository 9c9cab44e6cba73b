// From the file to the first answer: how long a catalog takes to compile and a server to start, and what it holds then.
import { median, printTable, show } from './figures.mjs'
import { startOurs } from './servers/ours.mjs'

/** `starts`: those that other measurements have seen; `rounds` more are made. */
export async function measureStart({ catalogs, starts, rounds }) {
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, seen] of Object.entries(starts)) {
      const server = await startOurs(catalogs[name].file)
      seen.push(server.start)
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
