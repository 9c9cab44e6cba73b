import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Catalog, isAddress, Failure, type HandlerMap } from '../engine/index.ts'
import type { Env } from '../env.ts'
import { type Call, type Command, type MemoryPlace, type OpenMemories, UsageError } from './command.ts'

/** Whether a catalog serves the tools of the memory; nothing is opened for one that does not. */
export function keepsMemories({ operations }: Catalog): boolean {
  return operations.some(({ handler, planned }) => handler.startsWith('memory/') && !planned)
}

/** The tools of the memory answer 503 `not_configured`: its store belongs to another process. */
export function withoutMemories(handlers: HandlerMap): HandlerMap {
  const run = (): Promise<never> =>
    Promise.reject(new Failure('not_configured', 'the memory is served by another process'))
  return Object.fromEntries(
    Object.entries(handlers).map(([name, handler]) => [
      name,
      name.startsWith('memory/') ? { run, configured: false } : handler,
    ]),
  )
}

/** What play money has paid for stays with it. */
export function memoryPlace(
  { databaseUrl }: Pick<Env, 'databaseUrl'>,
  dataDir: string,
  payments: 'sandbox' | 'real',
): MemoryPlace {
  if (payments === 'sandbox') return { kind: 'embedded', directory: join(dataDir, 'sandbox', 'memory') }
  if (databaseUrl !== undefined) return { kind: 'postgres', url: databaseUrl }
  return { kind: 'embedded', directory: join(dataDir, 'memory') }
}

/** Flags that say whose memories are meant. */
const MEMORIES = { 'data-dir': { type: 'string' }, sandbox: { type: 'boolean' } } as const

/** Opens what a server of this environment keeps. Throws when there is none: a mistyped directory is not an empty one. */
async function openMemories(call: Call): Promise<OpenMemories> {
  const { flags, env, shop } = call
  const payments = flags.given('sandbox') ? 'sandbox' : 'real'
  const place = memoryPlace(env, flags.text('data-dir') ?? env.dataDir, payments)
  if (place.kind === 'embedded' && !existsSync(place.directory))
    throw new Error(
      `there are no memories in ${place.directory}; name the server's directory with --data-dir`,
    )
  return shop.openMemories(place, 'in use')
}

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
