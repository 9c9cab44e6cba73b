import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { type Release, tryLock } from '../engine/base/file-lock.ts'
import type { BuyerRuntime } from './buyer-runtime.ts'

/** Waits for the lock of a file that several processes share; rejects after `patience` milliseconds. */
export async function lockFile(
  file: string,
  patience: number,
  { now, sleep }: Pick<BuyerRuntime, 'now' | 'sleep'>,
): Promise<Release> {
  const lock = `${file}.lock`
  const deadline = now() + patience
  for (;;) {
    const locked = tryLock(lock)
    if (typeof locked !== 'string') return locked
    if (now() > deadline) throw new Error(`another process holds ${lock}: if none runs, delete it`)
    await sleep(10)
  }
}

/** The text of a file; undefined when there is none. */
export function readState(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (fault) {
    if (!(fault instanceof Error && 'code' in fault && fault.code === 'ENOENT')) throw fault
    return undefined
  }
}

/** Writes a file whole or not at all, and on disk when it returns. */
export function writeState(file: string, value: object): void {
  const draft = `${file}.draft`
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flush: true })
  renameSync(draft, file)
}
