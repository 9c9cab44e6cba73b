import { spawn, type ChildProcess } from 'node:child_process'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'

/** A local Ethereum node, started here or left running by a server that was killed. */
export interface Anvil {
  readonly rpcUrl: string
  readonly pid: number
  /** Ends the node and resolves once its port is closed. */
  stop(): Promise<void>
}

const STARTED_WITHIN_MS = 30_000
const STOPPED_WITHIN_MS = 5_000
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

/**
 * Starts anvil on a free port of 127.0.0.1; it ends with this process, except when this process is killed.
 *
 * Throws when the binary package is not installed or the node does not come up.
 *
 * @example const anvil = await startAnvil(84532, ['--block-time', '2'])
 */
export async function startAnvil(chainId: number, flags: readonly string[] = []): Promise<Anvil> {
  const file = anvilBinary(process.platform, process.arch)
  const node = spawn(file, ['--host', '127.0.0.1', '--port', '0', '--chain-id', String(chainId), ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: Ctrl-C in a terminal must reach the server alone, which still has payments to settle.
    detached: true,
    windowsHide: true,
  })
  try {
    const rpcUrl = await listening(node)
    const { pid } = node
    if (pid === undefined) throw new Error('anvil has no process id.')
    letGo(node)
    return control(rpcUrl, pid, (signal) => node.kill(signal))
  } catch (error) {
    node.kill('SIGKILL')
    throw error
  }
}

/** Takes charge of a node that runs already: from here on it ends with this process, or by `stop`. */
export function adoptAnvil(rpcUrl: string, pid: number): Anvil {
  return control(rpcUrl, pid, (signal) => {
    try {
      process.kill(pid, signal)
    } catch {
      // It has ended already, which is what was asked for.
    }
  })
}

function control(rpcUrl: string, pid: number, kill: (signal: 'SIGTERM' | 'SIGKILL') => void): Anvil {
  const end = () => kill('SIGTERM')
  process.once('exit', end)
  return {
    rpcUrl,
    pid,
    async stop() {
      process.off('exit', end)
      end()
      // The port tells more than the process table, where an orphan may remain as a zombie for good.
      for (let waited = 0; await accepts(rpcUrl); waited += 20) {
        if (waited >= STOPPED_WITHIN_MS) return kill('SIGKILL')
        await sleep(20)
      }
    },
  }
}

/** Path of the anvil binary for a platform and architecture as Node names them; throws what to install when absent. */
export function anvilBinary(platform: string, architecture: string): string {
  const name = `@foundry-rs/anvil-${platform}-${ARCHITECTURES[architecture] ?? architecture}`
  const suffix = platform === 'win32' ? '.exe' : ''
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/anvil${suffix}`)
  } catch {
    throw new Error(
      `The sandbox needs anvil, whose package ${name} is not installed. Run: npm install --include=optional ` +
        `(anvil is published for Linux and macOS on x64 and arm64, and for Windows on x64).`,
    )
  }
}

function listening(node: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = ''
    const late = setTimeout(
      () => reject(new Error(`anvil was not ready after ${STARTED_WITHIN_MS / 1000} s.`)),
      STARTED_WITHIN_MS,
    )
    const read = (chunk: Buffer) => {
      output += chunk.toString()
      const address = /Listening on (\S+:\d+)/.exec(output)?.[1]
      if (address === undefined) return
      clearTimeout(late)
      resolve(`http://${address}`)
    }
    node.stdout?.on('data', read)
    node.stderr?.on('data', read)
    node.once('error', (error) => {
      clearTimeout(late)
      reject(new Error(`anvil could not be started: ${error.message}`))
    })
    node.once('exit', (code, signal) => {
      clearTimeout(late)
      const end = signal === null ? `code ${code}` : signal
      reject(new Error(`anvil ended with ${end} before it was ready: ${output.trim().slice(-500)}`))
    })
  })
}

/** Neither the node nor its output may keep this process alive; the output is still read, or the node would block. */
function letGo(node: ChildProcess) {
  node.unref()
  for (const stream of [node.stdout, node.stderr]) {
    stream?.removeAllListeners('data').resume()
    if (stream && 'unref' in stream && typeof stream.unref === 'function') stream.unref()
  }
}

async function accepts(rpcUrl: string): Promise<boolean> {
  try {
    await fetch(rpcUrl, { method: 'POST', signal: AbortSignal.timeout(1_000) })
    return true
  } catch (error) {
    return error instanceof DOMException
  }
}
