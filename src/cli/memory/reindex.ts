import type { Command } from '../command.ts'
import { MEMORIES, openMemories } from './place.ts'

export const reindexMemories: Command = {
  name: 'memory reindex',
  summary: 'embed all memories anew after EMBEDDING_MODEL has changed',
  usage: 'memory reindex [--data-dir D] [--sandbox]',
  takes: 0,
  examples: ['EMBEDDING_MODEL=text-embedding-3-small OPENAI_API_KEY=… ratecard memory reindex'],
  options: { ...MEMORIES },
  run: async (call) => {
    const { terminal } = call
    const memories = await openMemories(call)
    try {
      const upkeep = await memories.upkeep()
      const done = await upkeep.reindex((number) => terminal.progress(`${number} memories`))
      terminal.progress('')
      terminal.out(`reindexed ${done} memories: ${memories.title}`)
      return 0
    } finally {
      await memories.close()
    }
  },
}
