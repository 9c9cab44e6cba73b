import { CatalogError } from '../engine/index.ts'
import type { Command } from './command.ts'
import { examineProduction } from './doctor/production.ts'
import { examineService, originOf } from './doctor/service.ts'
import { trySources } from './doctor/sources.ts'

export const doctor: Command = {
  name: 'doctor',
  summary:
    'hold a running service’s documents and 402s against each other; without a URL: try every route here; --production: what real money depends on',
  usage: 'doctor [url] [--production] [--catalog FILE] [--handlers DIR] [--json]',
  takes: 1,
  examples: [
    'ratecard doctor https://api.example.com --catalog catalog.yaml',
    'ratecard doctor http://localhost:4021 --json',
    'ratecard doctor --production',
    'TWITCH_CLIENT_ID=… TWITCH_CLIENT_SECRET=… ratecard doctor',
  ],
  options: {
    production: { type: 'boolean' },
    catalog: { type: 'string' },
    handlers: { type: 'string' },
    json: { type: 'boolean' },
  },
  run: async (call) => {
    const [target] = call.positionals
    try {
      if (call.flags.given('production'))
        return await examineProduction(call, target === undefined ? undefined : originOf(target))
      return await (target === undefined ? trySources(call) : examineService(call, target))
    } catch (fault) {
      if (!(fault instanceof CatalogError)) throw fault
      call.terminal.err(fault.message)
      return 1
    }
  },
}
