import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'

/** Releases the claim on the file. */
export type Release = () => void

/**
 * Claims a file for this process, or says which claim of a living process it holds. A file whose process is gone is taken
 * over.
 */
export function tryLock(file: string): Release | string {
  const claim = `${process.pid} ${performance.timeOrigin}\n`
  for (;;) {
    try {
      writeFileSync(file, claim, { flag: 'wx', mode: 0o600 })
      return () => {
        if (read(file) === claim) rmSync(file, { force: true })
      }
    } catch (error) {
      if (!isCode(error, 'EEXIST')) throw error
    }
    const found = read(file)
    if (found === undefined) continue
    if (isHeld(found, claim)) return found
    removeStale(file, found)
  }
}

/**
 * After a restart in a container, where process ids repeat, the id may be that of this process: the start time decides.
 */
function isHeld(found: string, claim: string): boolean {
  const pid = Number(/^\d+/.exec(found)?.[0])
  if (!Number.isSafeInteger(pid)) return true
  if (pid === process.pid) return found === claim
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return !isCode(error, 'ESRCH')
  }
}

/** Two processes may find the same stale file; the second must not remove the claim the first has just made. */
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
