import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'

/** Releases the lock. */
export type Release = () => void

/**
 * Locks with a file that names this process, or returns what the file of a living process says. A file whose process is
 * gone is taken over.
 */
export function tryLock(file: string): Release | string {
  const holder = `${process.pid} ${performance.timeOrigin}\n`
  for (;;) {
    try {
      writeFileSync(file, holder, { flag: 'wx', mode: 0o600 })
      return () => {
        if (read(file) === holder) rmSync(file, { force: true })
      }
    } catch (error) {
      if (!isCode(error, 'EEXIST')) throw error
    }
    const found = read(file)
    if (found === undefined) continue
    if (isHeld(found, holder)) return found
    removeStale(file, found)
  }
}

/**
 * After a restart in a container, where process ids repeat, the id may be that of this process: the start time decides.
 */
function isHeld(found: string, holder: string): boolean {
  const pid = Number(/^\d+/.exec(found)?.[0])
  if (!Number.isSafeInteger(pid)) return true
  if (pid === process.pid) return found === holder
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return !isCode(error, 'ESRCH')
  }
}

/** Two processes may find the same stale file; the second must not remove the one the first has just made. */
function removeStale(file: string, found: string): void {
  const aside = `${file}.${process.pid}`
  try {
    renameSync(file, aside)
  } catch (error) {
    if (isCode(error, 'ENOENT')) return
    throw error
  }
  if (read(aside) === found) rmSync(aside)
  else renameSync(aside, file)
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
