import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'

/*
 * `npm test`. Loading the program costs a process one to three seconds of CPU, more than most test files need to run. So
 * neighbouring files share a process, in groups that are written to .tap/groups, where a failing one can be run again.
 * `npx tap test/x.ts` runs one file.
 */

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const GROUPS = '.tap/groups'
/** Files that start servers and chains wait for them, so their groups are smaller. */
const FILES_OF_A_GROUP = { inProcess: 20, withProcesses: 6 }
/** Folders without tests of this suite: `test/front/**` and others in the settings of tap in package.json. */
const WITHOUT = (
  JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly tap: { readonly exclude: readonly string[] }
  }
).tap.exclude.map((pattern) => pattern.replace('**', ''))
/** Folders whose tests start servers, chains, Redis or threads. */
const STARTS_PROCESSES = ['test/system/', 'test/fuzz/']
/** What a file would change for others in its process. */
const CHANGES_ITS_PROCESS = /process\.env\[[^\]]*\] = |setGlobalDispatcher|t\.jobs =/

const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
  .map((file) => `test/${file.replaceAll('\\', '/')}`)
  .filter((file) => file.endsWith('.ts') && !WITHOUT.some((folder) => file.startsWith(folder)))
  .sort()
const alone = files.filter((file) => CHANGES_ITS_PROCESS.test(readFileSync(join(ROOT, file), 'utf8')))
const shared = files.filter((file) => !alone.includes(file))
const withProcesses = shared.filter((file) => STARTS_PROCESSES.some((folder) => file.startsWith(folder)))
const inProcess = shared.filter((file) => !withProcesses.includes(file))

// tap starts groups by their names: those that take longest come first, so that none is left to run alone in the end.
rmSync(join(ROOT, GROUPS), { recursive: true, force: true })
mkdirSync(join(ROOT, GROUPS), { recursive: true })
const groups = [
  ...alone.map((file) => [file]),
  ...divide(withProcesses, FILES_OF_A_GROUP.withProcesses),
  ...divide(inProcess, FILES_OF_A_GROUP.inProcess),
].map((members, index) => {
  const path = `${GROUPS}/${String(index + 1).padStart(2, '0')}.ts`
  writeFileSync(join(ROOT, path), groupOf(members))
  return path
})

const tap = join(ROOT, 'node_modules/.bin/tap')
const tests = spawn(tap, [...process.argv.slice(2), ...groups], {
  cwd: ROOT,
  stdio: ['inherit', process.stdout.isTTY ? 'inherit' : 'pipe', 'inherit'],
})
const failures = tests.stdout === null ? [] : readFailures(tests.stdout)
// Ctrl-C reaches tap by itself; this process waits for what it says about it.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => tests.kill('SIGTERM'))
tests.once('close', (code) => {
  process.exitCode = code ?? 1
  if (failures.length > 0) process.stdout.write(`\n# what has failed\n${failures.join('\n')}\n`)
})

/** Passes TAP on, and collects failures with their diagnostics, so that a truncated log still ends with them. */
function readFailures(output: Readable): readonly string[] {
  const failed: string[] = []
  let isFailure = false
  createInterface(output).on('line', (line) => {
    process.stdout.write(`${line}\n`)
    // Diagnostics are indented and follow the line that they belong to.
    if (/^\s*(?:not )?ok\b|^\s*#|^\s*$/.test(line))
      isFailure = /^\s*not ok\b(?!.*# (?:TODO|SKIP)\b)/.test(line)
    if (isFailure) failed.push(line)
  })
  return failed
}

function divide(members: readonly string[], size: number): (readonly string[])[] {
  return Array.from({ length: Math.ceil(members.length / size) }, (_, index) =>
    members.slice(index * size, (index + 1) * size),
  )
}

function groupOf(members: readonly string[]): string {
  const urls = members.map((member) => `  new URL('../../${member}', import.meta.url).href,\n`)
  return `import { runGroup } from '../../test/support/file-group.ts'\n\nawait runGroup([\n${urls.join('')}])\n`
}
