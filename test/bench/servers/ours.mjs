// The built server as an operator runs it: production settings. Without `env`, endpoints that are never called and keys
// that own nothing.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { memory } from '../usage.mjs'
import { lagOf } from './event-loop.mjs'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const NOWHERE = 'http://127.0.0.1:9'

/**
 * Starts it with a catalog; resolves when it says that it listens. `dataDir` is kept after `stop` when given. `nodeArgs` are
 * those of Node.js.
 */
export async function startOurs(catalog, { args = [], nodeArgs = [], env = quiet(), dataDir } = {}) {
  const place = dataDir ?? mkdtempSync(join(tmpdir(), 'ratecard-bench-'))
  const begun = performance.now()
  const child = spawn(
    process.execPath,
    [
      ...nodeArgs,
      join(ROOT, 'dist/main.js'),
      'serve',
      '--catalog',
      catalog,
      '--port',
      '0',
      '--data-dir',
      place,
      ...args,
    ],
    {
      cwd: ROOT,
      env: { PATH: process.env.PATH, NODE_ENV: 'production', HOST: '127.0.0.1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const stop = () => {
    process.off('exit', stop)
    child.kill('SIGKILL')
    if (dataDir === undefined) rmSync(place, { recursive: true, force: true })
  }
  process.once('exit', stop)
  const port = await listening(child)
  const start = { ms: performance.now() - begun, memory: memory(child.pid) }
  return {
    port,
    pid: child.pid,
    /** This process and those it has begun. */
    pids: [child.pid, ...childrenOf(child.pid)],
    start,
    /** How late the event loop has come since the last question; only with `LAG_PROBE` among the arguments. */
    lag: () => lagOf(child),
    stop,
    alive: () => child.exitCode === null && child.signalCode === null,
  }
}

function childrenOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

function quiet() {
  return {
    PAY_TO: `0x${randomBytes(20).toString('hex')}`,
    SETTLER_PRIVATE_KEY: `0x${randomBytes(32).toString('hex')}`,
    ...Object.fromEntries([8453, 137, 42161, 43114, 4217].map((chain) => [`RPC_URL_${chain}`, NOWHERE])),
    MPP_RECIPIENT: `0x${randomBytes(20).toString('hex')}`,
    MPP_SECRET_KEY: randomBytes(32).toString('hex'),
  }
}

function listening(child) {
  let output = ''
  return new Promise((resolve, reject) => {
    const take = (chunk) => {
      output += chunk
      const port = /^listening on \S+:(\d+)$/m.exec(output)?.[1]
      if (port !== undefined) resolve(Number(port))
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    child.once('exit', (code, signal) =>
      reject(new Error(`the server has exited with ${code ?? signal}:\n${output}`)),
    )
  })
}
