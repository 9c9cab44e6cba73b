import { defineService } from 'ratecard/service'
import { COMMANDS } from './commands.ts'
import { readSettings } from './settings.ts'
import { MetricsBySource } from './sources/source-metrics.ts'

const records = new MetricsBySource(
  () => new Date(),
  (line) => process.stderr.write(`${line}\n`),
)

/** The service that ships. The handlers and their sources take a second to load, so they are loaded on demand. */
export const service = defineService({
  env: readSettings,
  mcpUrls: { game: 'MCP_URL', memory: 'MEM_URL', tools: 'TOOLS_URL' },
  commands: COMMANDS,
  handlers: async (context) => (await import('./shop.ts')).openHandlers(context, records),
  standIns: async (context) => (await import('./shop.ts')).openStandIns(context, records),
  sources: () => records.figures(),
  // Works of DataCite and of JaLC: the example of the catalog is one of Crossref.
  probes: {
    'util/citation': [
      { doi: '10.5281/zenodo.3509134', q: '' },
      { doi: '10.1241/johokanri.39.979', q: '' },
    ],
  },
  stores: async (context, serving) => (await import('./shop.ts')).openStores(context, serving, records),
})
