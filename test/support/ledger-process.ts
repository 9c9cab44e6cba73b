import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('../fixtures/ledger/worker.ts', import.meta.url))

interface Worker {
  /** The next line of its output; undefined when it has ended. */
  line(): Promise<string | undefined>
  /** Lets it begin. */
  begin(): void
  /** Lets it end. */
  finish(): Promise<void>
  /** SIGKILL. */
  kill(): Promise<void>
}

interface WorkerOptions {
  /** The user it runs as. */
  readonly uid?: number
  /** Size limit of files it writes, in KB. */
  readonly largestFile?: number
}

/** Starts another process on a store (see `test/fixtures/ledger/worker.ts`), which waits for `begin`. */
export function startWorker(args: readonly string[], { uid, largestFile }: WorkerOptions = {}): Worker {
  const command = [process.execPath, '--import', 'tsx', PROGRAM, ...args]
  const limit = `ulimit -f ${largestFile === undefined ? 'unlimited' : largestFile * 2}`
  // Without the loader of the test runner (see `nodeCommand`), whose files another user may not write.
  const child = spawn('sh', ['-c', `${limit}; unset NODE_OPTIONS; exec "$@"`, 'sh', ...command], {
    stdio: ['pipe', 'pipe', 'inherit'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  const exited = once(child, 'exit')
  const end = (): void => {
    child.kill('SIGKILL')
  }
  process.once('exit', end)
  void exited.then(() => process.off('exit', end))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    line: async () => (await lines.next()).value,
    begin: () => {
      child.stdin.write('begin\n')
    },
    finish: async () => {
      child.stdin.end()
      await exited
    },
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** Starts one task in several workers at the same time; resolves to the first line of each. */
export async function runTogether(count: number, args: readonly string[]): Promise<(string | undefined)[]> {
  const workers = Array.from({ length: count }, () => startWorker(args))
  await Promise.all(workers.map((worker) => worker.line()))
  for (const worker of workers) worker.begin()
  const said = await Promise.all(workers.map((worker) => worker.line()))
  await Promise.all(workers.map((worker) => worker.finish()))
  return said
}
