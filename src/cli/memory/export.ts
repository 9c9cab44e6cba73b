import { isAddress } from '../../engine/index.ts'
import { UsageError, type Command } from '../command.ts'
import { MEMORIES, openMemories } from './place.ts'

export const exportMemories: Command = {
  name: 'memory export',
  summary: 'print all memories, or those of a wallet, one JSON object a line',
  usage: 'memory export [--wallet 0x…] [--data-dir D] [--sandbox]',
  takes: 0,
  examples: ['ratecard memory export > memories.jsonl'],
  options: { wallet: { type: 'string' }, ...MEMORIES },
  run: async (call) => {
    const wallet = call.flags.text('wallet')
    if (wallet !== undefined && !isAddress(wallet)) throw new UsageError('--wallet takes an address, 0x…')
    const memories = await openMemories(call)
    try {
      const upkeep = await memories.upkeep()
      for await (const record of upkeep.records(wallet)) call.terminal.out(JSON.stringify(record))
      return 0
    } finally {
      await memories.close()
    }
  },
}
