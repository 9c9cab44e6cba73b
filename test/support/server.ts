import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { describeExit } from './exit.ts'

/** The built program that users run. */
export const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url))

/** The program of `ratecard-buyer`, with everything it needs in its bundle. */
export const BUYER = fileURLToPath(new URL('../../src/buyer/dist/main.js', import.meta.url))

/**
 * What a test starts ends within seconds, and a fifth of its CPU went into code that was optimized for longer. So this
 * waits until a function has run seven times as long as by default. Later versions of Node.js do not know the option.
 */
const OPTIMIZE_LATER = process.version.startsWith('v20.') ? ['--interrupt-budget=500000'] : []

/**
 * The command that runs Node.js as users do. The test runner puts a module loader into `NODE_OPTIONS` of every child
 * process, which doubles the CPU of a start and reports modules differently; only coverage needs it.
 */
export function nodeCommand(args: readonly string[], nodeOptions = ''): [string, string[]] {
  const measured = process.env['_TAPJS_PROCESSINFO_COVERAGE_'] === '1'
  return measured
    ? [process.execPath, [...OPTIMIZE_LATER, ...args]]
    : ['env', [`NODE_OPTIONS=${nodeOptions}`, process.execPath, ...OPTIMIZE_LATER, ...args]]
}

export interface RunningServer {
  readonly url: string
  readonly dataDir: string
  readonly process: ChildProcess
  /** Everything the server has written so far: requests as JSON, events by their message. */
  readonly output: () => string
  /** The lines of its log, which are one JSON object each. */
  readonly log: () => readonly LogLine[]
  /** Resolves when the output matches. */
  readonly said: (pattern: RegExp) => Promise<void>
  /** Resolves to its exit code once it has ended; null after a signal. */
  readonly ended: Promise<number | null>
  /** SIGKILL, unless it has ended already. */
  kill(): Promise<void>
  /** SIGTERM, and SIGKILL if that takes longer than ten seconds; removes the data directory. */
  stop(): Promise<number | null>
}

export type LogLine = Readonly<Record<string, unknown>>

interface ServerOptions {
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Kept after `stop` when given. */
  readonly dataDir?: string
  /** Another program that prints its address as the built one does. */
  readonly program?: string
  readonly cwd?: string
}

/** Starts the built server as a child process on a free port, and waits until it prints its address. */
export async function startServer({
  args = [],
  env = {},
  dataDir,
  program = MAIN,
  cwd,
}: ServerOptions = {}): Promise<RunningServer> {
  const directory = dataDir ?? mkdtempSync(join(tmpdir(), 'ratecard-'))
  const child = spawn(
    ...nodeCommand([program, 'serve', '--port', '0', '--data-dir', directory, ...args], env['NODE_OPTIONS']),
    {
      cwd,
      env: { PATH: process.env['PATH'] ?? '', DRAIN_SECONDS: '0', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  let output = ''
  let part = ''
  const lines: LogLine[] = []
  const listeners = new Set<() => void>()
  const take = (chunk: Buffer): void => {
    output += chunk.toString('utf8')
    for (const listener of listeners) listener()
  }
  child.stdout.on('data', take)
  child.stderr.on('data', (chunk: Buffer) => {
    const whole = (part + chunk.toString('utf8')).split('\n')
    part = whole.pop() ?? ''
    for (const line of whole) {
      const read = readLogLine(line)
      if (read !== undefined) lines.push(read)
      const { message = line } = read ?? {}
      take(Buffer.from(`${String(message)}\n`))
    }
  })
  const said = (pattern: RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (!pattern.test(output)) return
        listeners.delete(look)
        resolve()
      }
      listeners.add(look)
      void ended.then((code) =>
        reject(new Error(`the server ${describeExit(code, child.signalCode)}:\n${output}`)),
      )
      look()
    })
  const end = (): void => {
    child.kill('SIGKILL')
  }
  process.once('exit', end)
  void ended.then(() => process.off('exit', end))
  await said(/^listening on (\S+)$/m)
  // Its log comes by another pipe than its standard output.
  if (program === MAIN && !('LOG_LEVEL' in env || 'FORCE_COLOR' in env))
    await said(/^listening on (\S+)$[^]*^listening on (\S+)$/m)
  const [, listening = ''] = /^listening on (\S+)$/m.exec(output) ?? []
  return {
    url: listening.replace('127.0.0.1', 'localhost').replace('0.0.0.0', 'localhost'),
    dataDir: directory,
    process: child,
    output: () => output,
    log: () => lines,
    said,
    ended,
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
    stop: async () => {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await ended
      clearTimeout(timer)
      if (dataDir === undefined) rmSync(directory, { recursive: true, force: true })
      return child.exitCode
    },
  }
}

/** Undefined for text that is no line of the log, such as a warning of Node.js. */
export function readLogLine(line: string): LogLine | undefined {
  return line.startsWith('{') ? (JSON.parse(line) as LogLine) : undefined
}

/** Everything that taking real payments needs, for a server that settles none: its endpoint is never asked. */
const UNASKED = {
  HOST: '127.0.0.1',
  PAY_TO: `0x${'1'.repeat(40)}`,
  SETTLER_PRIVATE_KEY: 'b'.repeat(64),
  RPC_URL_8453: 'http://127.0.0.1:1',
}

/** Serves a catalog without payments until the test ends. */
export async function serveUnpaid(
  t: Test,
  catalog: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<RunningServer> {
  const server = await startServer({ args: ['--catalog', catalog, ...args], env: { ...UNASKED, ...env } })
  t.teardown(() => server.stop())
  return server
}

interface SandboxFile {
  readonly baseUrl: string
  readonly evm: {
    readonly rpcUrl: string
    readonly chainId: number
    readonly asset: `0x${string}`
    readonly payerKey: `0x${string}`
    readonly payTo: `0x${string}`
  }
  readonly tempo: {
    readonly rpcUrl: string
    readonly chainId: number
    readonly currency: `0x${string}`
    readonly payerKey: `0x${string}`
    readonly recipient: `0x${string}`
  }
}

/** What `serve --sandbox` has written for clients. */
export function readSandboxFile(server: RunningServer): SandboxFile {
  return JSON.parse(readFileSync(join(server.dataDir, 'sandbox.json'), 'utf8')) as SandboxFile
}

/** Runs the built program, or another one, to its end. */
export async function runProgram(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  program = MAIN,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const child = spawn(...nodeCommand([program, ...args]), {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString('utf8')
  })
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString('utf8')
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout, stderr }
}
