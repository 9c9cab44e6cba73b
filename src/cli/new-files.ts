import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Texts by their paths below a folder. */
export type Files = ReadonlyMap<string, string>

/** Those that are there already: nothing of the operator's is ever written over. */
export function taken(folder: string, files: Files): string[] {
  return [...files.keys()].filter((path) => existsSync(resolve(folder, path)))
}

/** Throws when a file has come into being meanwhile. */
export function writeFiles(folder: string, files: Files): void {
  for (const [path, text] of files) {
    const file = resolve(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text, { flag: 'wx' })
  }
}
