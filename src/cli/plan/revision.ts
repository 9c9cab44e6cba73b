import { execFileSync } from 'node:child_process'
import { basename, dirname } from 'node:path'

/** Longer than any file beside a catalog. */
const LARGEST_BYTES = 64_000_000

/** Reads what stood beside a catalog at a commit, branch or tag of Git; undefined: it was not there. */
export type ReadRevision = (path: string) => Buffer | undefined

export type Opened =
  | { readonly kind: 'open'; readonly text: string; readonly read: ReadRevision }
  /** In words that make a sentence. */
  | { readonly kind: 'fault'; readonly sentence: string }

export function openRevision(file: string, ref: string): Opened {
  const fault = (sentence: string): Opened => ({ kind: 'fault', sentence })
  // Git would take it for an option.
  if (ref.startsWith('-')) return fault(`${ref} is no name of a commit`)
  const folder = dirname(file)
  if (git(folder, ['rev-parse', '--git-dir']) === undefined)
    return fault(`${file} is in no Git repository: name a file or a URL with --against`)
  if (git(folder, ['rev-parse', '--verify', '--quiet', `${ref}^{commit}`]) === undefined)
    return fault(`${ref} is neither a file, a URL nor a commit, branch or tag here`)
  const read = (path: string): Buffer | undefined => git(folder, ['show', `${ref}:./${path}`])
  const text = read(basename(file))
  return text === undefined
    ? fault(`${ref} has no ${file}`)
    : { kind: 'open', text: text.toString('utf8'), read }
}

function git(folder: string, args: readonly string[]): Buffer | undefined {
  try {
    const options = { stdio: 'pipe', maxBuffer: LARGEST_BYTES } as const
    return execFileSync('git', ['-C', folder, ...args], options)
  } catch {
    return undefined
  }
}
