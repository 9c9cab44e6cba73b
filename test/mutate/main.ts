import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { inChangedCopy, ROOT } from '../simulate/changed-copy.ts'
import { randomOf } from '../simulate/random.ts'
import { sitesOf, type Site } from './sites.ts'

/** What moves money, below `src/engine`. */
const FOLDERS = ['purchase', 'ledger', 'x402', 'chains', 'refunds']
/** Longest time for one test, in milliseconds: a change may loop for ever. */
const LONGEST_MS = 240_000
const TESTS = ['test/unit', 'test/contract', 'test/fixtures', 'test/system/simulate']

const { values } = parseArgs({
  options: {
    changes: { type: 'string', default: '600' },
    seed: { type: 'string' },
    /** Purchases of the simulator for each change and store. */
    purchases: { type: 'string', default: '80' },
  },
})
const seed = values.seed === undefined ? 1 + Math.floor(Math.random() * 1_000_000_000) : Number(values.seed)

interface Change extends Site {
  /** Below `src/engine`. */
  readonly file: string
}

function listFiles(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name))
    .toSorted()
}

/** Each change at most once. */
function draw(count: number): readonly Change[] {
  const left = FOLDERS.flatMap((folder) => listFiles(join('src/engine', folder))).flatMap((path) =>
    sitesOf(path, readFileSync(join(ROOT, path), 'utf8')).map((site) => ({
      ...site,
      file: path.slice('src/engine/'.length),
    })),
  )
  const random = randomOf(seed, 'changes')
  return Array.from({ length: Math.min(count, left.length) }, () =>
    left.splice(random.between(0, left.length), 1),
  ).flat()
}

/** Tests without other processes that import the file. */
function testsOf({ file }: Change): readonly string[] {
  const name = basename(file)
  const importing = listFiles('test/unit').filter((path) =>
    readFileSync(join(ROOT, path), 'utf8').includes(`src/engine/${file}'`),
  )
  const contracts = file.startsWith('ledger/') ? ['test/system/simulate/store.ts'] : []
  return [
    ...new Set([
      ...importing,
      ...contracts,
      ...listFiles('test/unit').filter((path) => basename(path) === name),
    ]),
  ]
}

/** The command that has noticed the change; undefined when none has. */
function noticedBy(change: Change): string | undefined {
  const { file, start, end, changed } = change
  const changeSource = (source: string): string => source.slice(0, start) + changed + source.slice(end)
  return inChangedCopy(
    file,
    changeSource,
    (directory) => {
      const fails = (args: readonly string[]): boolean => {
        const command = ['--import=./test/support/tsx.mjs', ...args]
        const options = { cwd: directory, timeout: LONGEST_MS, env: { ...process.env, CI: '1' } }
        return spawnSync(process.execPath, command, { ...options, stdio: 'ignore' }).status !== 0
      }
      for (const test of testsOf(change)) if (fails([test])) return test
      for (const options of [['--store', 'redis'], ['--store', 'lmdb'], ['--facilitators']]) {
        const args = ['--seed', '1', '--purchases', values.purchases, ...options, '--quick']
        if (fails(['test/simulate/run.ts', ...args])) return `simulator, ${options.join(' ')}`
      }
      return undefined
    },
    TESTS,
  )
}

const changes = draw(Number(values.changes))
console.log(`seed ${seed}, ${changes.length} changes`)
let survivors = 0
for (const change of changes) {
  const noticed = noticedBy(change)
  if (noticed === undefined) survivors += 1
  const what = `${change.file}:${change.line} ${change.text.split('\n')[0]} → ${change.changed.split('\n')[0]}`
  console.log(
    `${noticed === undefined ? 'SURVIVES' : 'noticed '} ${what}${noticed === undefined ? '' : ` (${noticed})`}`,
  )
}
console.log(`${survivors} of ${changes.length} changes survive`)
