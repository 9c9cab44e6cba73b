import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of this repository. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Links this package and the types of Node.js into a new project, as npm would. */
export function install(folder: string): void {
  mkdirSync(join(folder, 'node_modules/@types'), { recursive: true })
  symlinkSync(ROOT, join(folder, 'node_modules/ratecard'))
  symlinkSync(join(ROOT, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'))
}

/** Throws with the output of the compiler. */
export function compile(folder: string): void {
  runIn(folder, join(ROOT, 'node_modules/.bin/tsc'))
}

/** Runs the tests of a project; throws when one fails. Returns the report. */
export function runTests(folder: string, ...files: readonly string[]): string {
  return runIn(folder, process.execPath, '--test', ...files)
}

/** Runs a command in a folder; throws when it fails. Returns its output. */
export function runIn(folder: string, command: string, ...args: readonly string[]): string {
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder }
  return execFileSync(command, args, { cwd: folder, stdio: 'pipe', encoding: 'utf8', env })
}
