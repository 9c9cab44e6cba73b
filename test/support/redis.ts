import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { listening } from './http.ts'

const PROGRAM = 'redis-server'

/** Why tests with Redis are skipped here; undefined when they run. In CI its absence is an error. */
export function redisAbsence(): string | undefined {
  if (spawnSync(PROGRAM, ['--version']).status === 0) return undefined
  const reason = `there is no ${PROGRAM} on this machine (Debian: apt-get install redis-server)`
  if (process.env['CI'] !== undefined) throw new Error(reason)
  return reason
}

export interface RedisOptions {
  /** `yes` unless given. */
  readonly appendonly?: 'yes' | 'no'
  /** `noeviction` unless given. */
  readonly policy?: string
  /** Password of the default user. */
  readonly password?: string
  /** Further settings, as on the command line. */
  readonly settings?: readonly string[]
}

export interface RunningRedis {
  readonly port: number
  /** URL for the default user, without a database. */
  readonly url: string
  /** Runs a command as the default user. */
  command(name: string, ...args: readonly (string | number)[]): Promise<unknown>
  /** SIGKILL. */
  kill(): Promise<void>
  /** Starts it again after `kill`, with the same port, settings and files. */
  restart(): Promise<void>
  /** Suspends it: connections stay open without answers. */
  freeze(): void
  thaw(): void
  stop(): Promise<void>
}

/** Starts a Redis of its own on a free port, with files of its own. */
export async function startRedis(options: RedisOptions = {}): Promise<RunningRedis> {
  const { appendonly = 'yes', policy = 'noeviction', password, settings = [] } = options
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-redis-'))
  const start = async (port: number): Promise<ChildProcess | undefined> => {
    const given = {
      port: `${port}`,
      bind: '127.0.0.1',
      dir: directory,
      databases: '500',
      appendonly,
      // With everysec, the default, a kill may lose what was written since the last fsync.
      appendfsync: 'always',
      save: '',
      'maxmemory-policy': policy,
      ...(password === undefined ? {} : { requirepass: password }),
    }
    const args = Object.entries(given).flatMap(([name, value]) => [`--${name}`, value])
    const child = spawn(PROGRAM, [...args, ...settings], { stdio: ['ignore', 'pipe', 'inherit'] })
    const end = (): void => {
      child.kill('SIGKILL')
    }
    process.once('exit', end)
    child.once('exit', () => process.off('exit', end))
    const ready = await new Promise((resolve) => {
      child.stdout.on('data', (chunk) => /Ready to accept/.test(String(chunk)) && resolve(true))
      child.once('exit', () => resolve(false))
    })
    return ready === true ? child : undefined
  }
  const [port, first] = await startSomewhere(start)
  let child = first
  const client = new Redis({
    port,
    host: '127.0.0.1',
    lazyConnect: true,
    ...(password === undefined ? {} : { password }),
  })
  client.on('error', () => undefined)
  const kill = async (): Promise<void> => {
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  return {
    port,
    url: `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${port}`,
    command: (name, ...args) => client.call(name, ...args),
    kill,
    restart: async () => {
      const again = await start(port)
      if (again === undefined) throw new Error(`Redis does not start again on port ${port}`)
      child = again
    },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    stop: async () => {
      client.disconnect()
      if (child.exitCode === null && child.signalCode === null) await kill()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Another process may take a free port before Redis does. */
async function startSomewhere(
  start: (port: number) => Promise<ChildProcess | undefined>,
): Promise<[number, ChildProcess]> {
  for (let tries = 0; tries < 10; tries += 1) {
    const { url, close } = await listening(createServer())
    await close()
    const port = Number(new URL(url).port)
    const child = await start(port)
    if (child !== undefined) return [port, child]
  }
  throw new Error('Redis does not start')
}
