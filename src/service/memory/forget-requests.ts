import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** How often the process that holds a directory looks for requests. */
const LOOK_MS = 500
/** How long a request waits for that process. */
const PATIENCE_MS = 30_000

/**
 * Answers requests of other processes to delete what an address has written: embedded files belong to one process.
 * Returns what stops it.
 */
export function serveForgetRequests(
  directory: string,
  forget: (address: string) => Promise<number>,
): () => void {
  const folder = folderOf(directory)
  let busy = false
  const look = async (): Promise<void> => {
    if (busy || !existsSync(folder)) return
    busy = true
    try {
      for (const name of readdirSync(folder)) {
        const [, address] = /^(0x[0-9a-f]{40})\.request$/.exec(name) ?? []
        if (address === undefined) continue
        const forgotten = await forget(address)
        const done = join(folder, `${address}.done`)
        writeFileSync(`${done}.new`, String(forgotten))
        renameSync(`${done}.new`, done)
        rmSync(join(folder, name), { force: true })
      }
    } catch {
      // The request stays for the next check, and its caller learns that nobody answers.
    } finally {
      busy = false
    }
  }
  const timer = setInterval(() => void look(), LOOK_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/** Asks the process that holds a directory; resolves to how many memories were deleted. Throws when it does not answer. */
export async function requestForget(directory: string, address: string): Promise<number> {
  const folder = folderOf(directory)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const [request, done] = ['request', 'done'].map((ending) =>
    join(folder, `${address.toLowerCase()}.${ending}`),
  )
  if (request === undefined || done === undefined) throw new Error('two files have two names')
  rmSync(done, { force: true })
  writeFileSync(request, '', { mode: 0o600 })
  for (let waited = 0; waited < PATIENCE_MS; waited += LOOK_MS) {
    await delay(LOOK_MS)
    if (!existsSync(done)) continue
    const forgotten = Number(readFileSync(done, 'utf8'))
    rmSync(done, { force: true })
    return forgotten
  }
  rmSync(request, { force: true })
  throw new Error(`the process that has ${directory} open does not answer: stop it, and try again`)
}

function folderOf(directory: string): string {
  return join(directory, 'forget')
}
