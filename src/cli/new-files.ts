import { existsSync, linkSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** Texts by their paths below a folder. */
export type Files = ReadonlyMap<string, string>

/** The files that exist already: no file of the operator is ever overwritten. */
export function taken(folder: string, files: Files): string[] {
  return [...files.keys()].filter((path) => existsSync(resolve(folder, path)))
}

/** Each file is complete as soon as it exists. Throws when a file has come into being meanwhile. */
export function writeFiles(folder: string, files: Files): void {
  for (const [path, text] of files) {
    const file = resolve(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    const draft = draftOf(file, text)
    try {
      linkSync(draft, file)
    } finally {
      rmSync(draft)
    }
  }
}

/** Replaces a file in one step: a reader sees the old text or the new one, and a failure leaves the old one. */
export function replaceFile(path: string, text: string): void {
  renameSync(draftOf(resolve(path), text), resolve(path))
}

function draftOf(file: string, text: string): string {
  const draft = join(dirname(file), `.${basename(file)}.${process.pid}.tmp`)
  writeFileSync(draft, text)
  return draft
}
