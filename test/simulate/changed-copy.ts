import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** What the simulator needs besides what is installed. */
const COPIED = [
  'src',
  'test/simulate',
  'test/support',
  'test/chaos/harness',
  'templates',
  'package.json',
  'tsconfig.json',
]

/** Works on a copy of the source in which one file of the engine was changed; `more`: what is copied besides. */
export function inChangedCopy<T>(
  file: string,
  change: (source: string) => string,
  work: (directory: string) => T,
  more: readonly string[] = [],
): T {
  const copy = mkdtempSync(join(tmpdir(), 'ratecard-changed-'))
  try {
    for (const path of [...COPIED, ...more]) cpSync(join(ROOT, path), join(copy, path), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
    const place = join(copy, 'src/engine', file)
    writeFileSync(place, change(readFileSync(place, 'utf8')))
    return work(copy)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}
