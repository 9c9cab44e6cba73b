import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describeExit } from '../../../support/exit.ts'
import { MAIN, nodeCommand } from '../../../support/server.ts'
import { openRedisProxy, type KillPoint } from './redis-proxy.ts'

const KILL = fileURLToPath(new URL('kill-lmdb.mjs', import.meta.url))

/** A server that can be killed at one of the writes to its ledger. */
export interface KillableServer {
  readonly url: string
  /** Counts the writes from now on and kills the server at the n-th (0: never). Returns how many there were since the last call. */
  readonly arm: (n: number, point: KillPoint) => Promise<number>
  /** Resolves when the process has ended. */
  readonly dead: Promise<void>
  readonly kill: () => Promise<void>
}

export type StoreName = 'lmdb' | 'redis'

/** Where the processes keep their ledger. */
export type Store =
  | { readonly name: 'lmdb'; readonly dataDir: string }
  | { readonly name: 'redis'; readonly dataDir: string; readonly port: number; readonly database: number }

export function redisUrl(port: number, database: number): string {
  return `redis://127.0.0.1:${port}/${database}`
}

export async function startKillableServer(
  store: Store,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<KillableServer> {
  const proxy = store.name === 'redis' ? await openRedisProxy(store.port) : undefined
  const preload = store.name === 'lmdb' ? ['--import', KILL] : []
  const child = spawn(
    ...nodeCommand([...preload, MAIN, 'serve', '--port', '0', '--data-dir', store.dataDir, ...args]),
    {
      env: {
        PATH: process.env['PATH'] ?? '',
        ...env,
        ...(store.name === 'redis' ? { REDIS_URL: redisUrl(proxy?.port ?? 0, store.database) } : {}),
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    },
  )
  const end = (): void => {
    child.kill('SIGKILL')
  }
  process.once('exit', end)
  let ended = ''
  const dead = once(child, 'exit').then(async () => {
    ended = describeExit(child.exitCode, child.signalCode)
    process.off('exit', end)
    await proxy?.close()
  })
  let output = ''
  const url = await new Promise<string>((resolve, reject) => {
    const take = (chunk: Buffer): void => {
      output += chunk.toString('utf8')
      const [, found] = /^listening on (\S+)$/m.exec(output) ?? []
      if (found !== undefined) resolve(found)
    }
    child.stdout?.on('data', take)
    child.stderr?.on('data', take)
    void dead.then(() => reject(new Error(`the server ${ended}:\n${output}`)))
  })
  return {
    url,
    arm: async (n, point) => {
      if (proxy !== undefined) return proxy.arm(n, point, end)
      const confirmed = once(child, 'message')
      child.send({ arm: n, point })
      const [{ armed }] = (await confirmed) as [{ readonly armed: number }]
      return armed
    },
    dead,
    kill: async () => {
      end()
      await dead
    },
  }
}
