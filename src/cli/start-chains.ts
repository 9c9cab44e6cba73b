import { systemRuntime } from '../engine/base/runtime.ts'
import type { Log } from './log.ts'
import type { Plan } from './server-process.ts'

/** Starts the chains of the sandbox in this process; resolves to what ends them. */
export async function startChains({ sandbox, dataDir }: Plan, log: Log): Promise<() => Promise<void>> {
  if (!sandbox) return async () => undefined
  const { startSandbox } = await import('../sandbox/sandbox.ts')
  return startSandbox({
    directory: dataDir,
    random: systemRuntime.random,
    log: (message) => log.write({ level: 'info', event: 'start', message }),
  })
}
