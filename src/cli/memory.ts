import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Catalog, isAddress, Failure, type HandlerMap } from '../engine/index.ts'
import type { Env } from '../env.ts'
import { type Call, type MemoryPlace, type OpenMemories, UsageError } from './command.ts'

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

async function openMemories(call: Call): Promise<OpenMemories> {
  return (await call.services()).openMemories(placeOf(call), 'in use')
}

/** Where a server of this environment keeps memories. Throws when there are none: a mistyped directory is not an empty one. */
function placeOf({ flags, env }: Call): MemoryPlace {
  const payments = flags.given('sandbox') ? 'sandbox' : 'real'
  const place = memoryPlace(env, flags.text('data-dir') ?? env.dataDir, payments)
  if (place.kind === 'embedded' && !existsSync(place.directory))
    throw new Error(
      `there are no memories in ${place.directory}; name the server's directory with --data-dir`,
    )
  return place
}

export async function exportMemories(call: Call): Promise<number> {
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
}

/** What a person may ask an operator for; it cannot be undone. */
export async function forgetWallet(call: Call): Promise<number> {
  const wallet = call.flags.text('wallet')
  if (wallet === undefined || !isAddress(wallet)) throw new UsageError('--wallet takes an address, 0x…')
  const forgotten = await (await call.services()).forgetMemories(placeOf(call), wallet)
  call.terminal.out(`forgot ${forgotten} memories of ${wallet}`)
  return 0
}

export async function reindexMemories(call: Call): Promise<number> {
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
}
