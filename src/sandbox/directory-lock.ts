import { type Release, tryLock } from '../engine/base/file-lock.ts'

/** Locks a directory for this process by a file that names the process; throws when a living process holds it. */
export function lock(file: string): Release {
  const locked = tryLock(file)
  if (typeof locked === 'string') throw new Error(refusal(file, locked))
  return locked
}

function refusal(file: string, found: string): string {
  const holder = /^\d+/.exec(found)?.[0] ?? 'unknown'
  return (
    `Another sandbox uses this directory (process ${holder}). Stop it, or start with another --data-dir. ` +
    `If no sandbox is running, delete ${file}.`
  )
}
