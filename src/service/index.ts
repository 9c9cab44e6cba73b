import { defineService } from 'ratecard'
import { COMMANDS } from './commands.ts'
import { readSettings } from './settings.ts'
import { SourceRecords } from './sources/source-record.ts'

const records = new SourceRecords(
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
  stores: async (context, serving) => (await import('./shop.ts')).openStores(context, serving, records),
})
