import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/*
 * `npm test`. Loading the program costs a process one to three seconds of CPU, more than most test files need to run. So files
 * that start no process share one with their neighbours, in groups that are written to .tap/groups, where a failing one can be
 * run again. Every other file has a process of its own. `npx tap test/x.ts` runs one file.
 */

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const GROUPS = '.tap/groups'
const FILES_OF_A_GROUP = 12
/** Folders without tests of this suite: `test/front/**` and others in the settings of tap in package.json. */
const WITHOUT = (
  JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly tap: { readonly exclude: readonly string[] }
  }
).tap.exclude.map((pattern) => pattern.replace('**', ''))
/** What shows that a file, or what it imports, starts processes or changes its own. */
const NEEDS_ITS_OWN =
  /child_process|startAnvil|startEvmChain|worker_threads|process\.env\[[^\]]*\] =|setGlobalDispatcher/
const IMPORT = /(?:from|import\() ?'(\.[^']+\.ts)'/g

const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
  .map((file) => `test/${file.replaceAll('\\', '/')}`)
  .filter((file) => file.endsWith('.ts') && !WITHOUT.some((folder) => file.startsWith(folder)))
  .sort()
const alone = files.filter((file) => needsItsOwn(file, new Set()))
const together = files.filter((file) => !alone.includes(file))

rmSync(join(ROOT, GROUPS), { recursive: true, force: true })
mkdirSync(join(ROOT, GROUPS), { recursive: true })
const groups = Array.from({ length: Math.ceil(together.length / FILES_OF_A_GROUP) }, (_, index) => {
  const members = together.slice(index * FILES_OF_A_GROUP, (index + 1) * FILES_OF_A_GROUP)
  const path = `${GROUPS}/${String(index + 1).padStart(2, '0')}.ts`
  writeFileSync(join(ROOT, path), groupOf(members))
  return path
})

const tap = join(ROOT, 'node_modules/.bin/tap')
spawn(tap, [...process.argv.slice(2), ...groups, ...alone], { cwd: ROOT, stdio: 'inherit' }).once(
  'exit',
  (code) => {
    process.exitCode = code ?? 1
  },
)

/** Whether a file, or a module of the tests that it imports, starts processes. */
function needsItsOwn(file: string, seen: Set<string>): boolean {
  if (seen.has(file) || !file.startsWith('test/') || !existsSync(join(ROOT, file))) return false
  seen.add(file)
  const text = readFileSync(join(ROOT, file), 'utf8')
  if (NEEDS_ITS_OWN.test(text)) return true
  return Array.from(text.matchAll(IMPORT)).some(([, path = '']) =>
    needsItsOwn(join(dirname(file), path).replaceAll('\\', '/'), seen),
  )
}

/** The tests of a file wait in tap's queue until this one has ended, so all files are loaded first. */
function groupOf(members: readonly string[]): string {
  const imports = members.map((member) => `  await import('../../${member}')\n`)
  return `import t from 'tap'\n\nt.test('loads its test files', async () => {\n${imports.join('')}})\n`
}
