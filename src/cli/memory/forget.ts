import { isAddress } from '../../engine/index.ts'
import { UsageError, type Command } from '../command.ts'
import { MEMORIES, openMemories } from './place.ts'

/** What a person may ask an operator for; it cannot be undone. */
export const forgetWallet: Command = {
  name: 'memory forget',
  summary: 'delete everything a wallet has stored, for good',
  usage: 'memory forget --wallet 0x… [--data-dir D] [--sandbox]',
  takes: 0,
  examples: ['ratecard memory forget --wallet 0x1111111111111111111111111111111111111111'],
  options: { wallet: { type: 'string' }, ...MEMORIES },
  run: async (call) => {
    const wallet = call.flags.text('wallet')
    if (wallet === undefined || !isAddress(wallet)) throw new UsageError('--wallet takes an address, 0x…')
    const memories = await openMemories(call)
    try {
      const upkeep = await memories.upkeep()
      call.terminal.out(`forgot ${await upkeep.forget(wallet)} memories of ${wallet}`)
      return 0
    } finally {
      await memories.close()
    }
  },
}
