import { spawn, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

/** A process that is the node of a local chain, started here or left running by a server that was killed. */
export interface LocalNode {
  readonly rpcUrl: string
  readonly pid: number
  /** Ends the node and resolves once its port is closed. */
  stop(): Promise<void>
}

interface NodeCommand {
  /** How messages call it. */
  readonly name: string
  readonly file: string
  /** With them it prints `Listening on ADDRESS:PORT` when it is ready. */
  readonly args: readonly string[]
}

const STARTED_WITHIN_MS = 30_000
const STOPPED_WITHIN_MS = 5_000

/**
 * Starts the node of a chain; it ends with this process, except when this process is killed.
 *
 * Throws when it does not come up.
 */
export async function startNode(command: NodeCommand): Promise<LocalNode> {
  const node = spawn(command.file, command.args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: Ctrl-C in a terminal must reach the server alone, which still has payments to settle.
    detached: true,
    windowsHide: true,
  })
  try {
    const rpcUrl = await listening(node, command.name)
    const { pid } = node
    if (pid === undefined) throw new Error(`${command.name} has no process id.`)
    letGo(node)
    return control(rpcUrl, pid, (signal) => node.kill(signal))
  } catch (error) {
    node.kill('SIGKILL')
    throw error
  }
}

/** Takes charge of a node that runs already: from here on it ends with this process, or by `stop`. */
export function adoptNode(rpcUrl: string, pid: number): LocalNode {
  return control(rpcUrl, pid, (signal) => {
    try {
      process.kill(pid, signal)
    } catch {
      // It has ended already, which is what was asked for.
    }
  })
}

function control(rpcUrl: string, pid: number, kill: (signal: 'SIGTERM' | 'SIGKILL') => void): LocalNode {
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

function listening(node: ChildProcess, name: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = ''
    const late = setTimeout(
      () => reject(new Error(`${name} was not ready after ${STARTED_WITHIN_MS / 1000} s.`)),
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
      reject(new Error(`${name} could not be started: ${error.message}`))
    })
    node.once('exit', (code, signal) => {
      clearTimeout(late)
      const end = signal === null ? `code ${code}` : signal
      reject(new Error(`${name} ended with ${end} before it was ready: ${output.trim().slice(-500)}`))
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
