import { spawnSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Frames of this program say nothing about the module that it loads. */
const OWN = new URL('.', import.meta.url).href

/** Where a module of this folder failed to load, as `FILE:LINE`; undefined: not known. */
export function placeOfFault(fault: Error, folder: string): string | undefined {
  const places = [...(fault.stack ?? '').matchAll(/(file:\/\/[^\s()]+?):(\d+)/g)]
  const [, url, line] = places.find(([, each = '']) => !each.startsWith(OWN)) ?? []
  if (url !== undefined && line !== undefined) return `${fileURLToPath(url)}:${line}`
  return fault instanceof SyntaxError ? placeOfSyntaxError(folder) : undefined
}

/**
 * Node.js shows in a terminal which file it could not parse, and does not tell a program. `--check` parses a file and
 * runs nothing. The file that was changed last comes first, since it is most likely the one.
 */
function placeOfSyntaxError(folder: string): string | undefined {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.[cm]?js$/.test(name) && !name.includes('node_modules'))
    .map((name) => join(folder, name))
    .map((file) => ({ file, changedAt: statSync(file).mtimeMs }))
    .toSorted((one, other) => other.changedAt - one.changedAt)
  for (const { file } of files) {
    const { status, stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8' })
    if (status !== 0) return stderr.split('\n')[0]
  }
  return undefined
}
