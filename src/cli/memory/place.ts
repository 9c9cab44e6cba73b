import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Failure, type Catalog, type HandlerMap } from '../../engine/index.ts'
import type { Env } from '../../env.ts'
import type { Call, MemoryPlace, OpenMemories } from '../command.ts'

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
export const MEMORIES = { 'data-dir': { type: 'string' }, sandbox: { type: 'boolean' } } as const

/** Opens what a server of this environment keeps. Throws when there is none: a mistyped directory is not an empty one. */
export async function openMemories(call: Call): Promise<OpenMemories> {
  const { flags, env, shop } = call
  const payments = flags.given('sandbox') ? 'sandbox' : 'real'
  const place = memoryPlace(env, flags.text('data-dir') ?? env.dataDir, payments)
  if (place.kind === 'embedded' && !existsSync(place.directory))
    throw new Error(
      `there are no memories in ${place.directory}; name the server's directory with --data-dir`,
    )
  return shop.openMemories(place, 'in use')
}
