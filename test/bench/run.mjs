// npm run bench [-- --quick] [-- --paid] [-- --nodes] [-- --channels]: figures side by side from one run. It prints and judges nothing; compare ratios only.
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { register } from 'tsx/esm/api'
import { prepareCatalogs } from './catalogs.mjs'
import { measureSignature } from './signature.mjs'
import { measureStart } from './start.mjs'
import { measureUnpaid } from './unpaid.mjs'

// What pays is TypeScript of the tests.
register()
const { measurePaid, reportPaid } = await import('./paid.mjs')
const { measureFacilitated, reportFacilitated } = await import('./facilitated.mjs')
const { measureSlowNode, reportSlowNode } = await import('./slow-node.mjs')
const { measureWorkers, reportWorkers } = await import('./workers.mjs')
const { measureBurst, reportBurst } = await import('./burst.mjs')
const { measureMpp, reportMpp } = await import('./mpp.mjs')
const { measureChannels, measureChannelGas, reportChannels, reportChannelGas } =
  await import('./channels.mjs')

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    paid: { type: 'boolean', default: false },
    nodes: { type: 'boolean', default: false },
    channels: { type: 'boolean', default: false },
  },
})
const scale = values.quick
  ? { rounds: 3, seconds: 0.3, warmUp: 0.3, starts: 0, checks: 50, paidRounds: 2, calls: 100, gasCalls: [20] }
  : {
      rounds: 5,
      seconds: 3,
      warmUp: 3,
      starts: 2,
      checks: 300,
      paidRounds: 5,
      calls: 640,
      gasCalls: [100, 1_000],
    }

// Servers and chains end with this process, which has to end by itself for that.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

const folder = mkdtempSync(join(tmpdir(), 'ratecard-bench-'))
try {
  console.log(`Node.js ${process.version}, ${cpus().length} cores, ${cpus()[0]?.model ?? 'unknown'}`)
  const only = ['paid', 'nodes', 'channels'].filter((part) => values[part])
  const prints = (part) => only.length === 0 || only.includes(part)
  if (prints('unpaid')) {
    const catalogs = prepareCatalogs(folder)
    const starts = await measureUnpaid({ catalogs, ...scale })
    await measureStart({ catalogs, starts, rounds: scale.starts })
    await measureSignature(scale)
  }
  if (prints('paid')) {
    reportPaid(await measurePaid(scale))
    reportFacilitated(await measureFacilitated(scale))
  }
  if (prints('nodes')) {
    reportSlowNode(await measureSlowNode(scale))
    reportBurst(await measureBurst(scale))
    reportWorkers(await measureWorkers(scale))
    reportMpp(await measureMpp(scale))
  }
  if (prints('channels')) {
    reportChannels(await measureChannels(scale))
    reportChannelGas(await measureChannelGas(scale))
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
