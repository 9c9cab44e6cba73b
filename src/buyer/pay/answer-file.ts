import { accessSync, constants, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Why a file cannot be written, found out without touching it; undefined when it probably can. */
export function writeFault(file: string): string | undefined {
  try {
    const found = statSync(file, { throwIfNoEntry: false })
    if (found?.isDirectory() === true) return 'it is a folder'
    // With `/.` at its end, the parent must be a folder.
    accessSync(found === undefined ? `${dirname(file)}/.` : file, constants.W_OK)
    return undefined
  } catch (error) {
    return codeOf(error)
  }
}

/** Writes an answer; resolves to why it could not. */
export function saveAnswer(file: string, bytes: Buffer): string | undefined {
  try {
    writeFileSync(file, bytes)
    return undefined
  } catch (error) {
    return codeOf(error)
  }
}

/** Such as ENOENT, EACCES or ENOSPC. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
