import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { inChangedCopy, ROOT } from './changed-copy.ts'
import { PLANTED, type Planted } from './planted.ts'

/** Purchases on one store before it is the turn of the other. */
const PART = 800
for (const { file, find: text, name } of PLANTED)
  if (readFileSync(join(ROOT, 'src/engine', file), 'utf8').split(text).length !== 2)
    console.error(`${name}: not once in ${file}`)

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    purchases: { type: 'string', default: '50000' },
    seed: { type: 'string', default: '10001' },
    from: { type: 'string', default: '0' },
    to: { type: 'string', default: String(PLANTED.length) },
  },
})

/** Runs the simulator on a copy of the source with one fault in it; resolves to the purchases until it was found. */
function find({ file, find: text, replace, options }: Planted): {
  readonly after: number | undefined
  readonly how: string
} {
  const change = (source: string): string => {
    if (source.split(text).length !== 2) throw new Error(`${file} does not contain once: ${text}`)
    return source.replace(text, () => replace)
  }
  return inChangedCopy(file, change, (copy) => {
    let before = 0
    // The two stores in turns.
    for (let part = 0; before < Number(values.purchases); part += 1) {
      const size = Math.min(PART, Number(values.purchases) - before)
      const args = ['--seed', String(Number(values.seed) + part * 10_000), '--purchases', String(size)]
      const store = part % 2 === 0 ? 'redis' : 'lmdb'
      const run = spawnSync(
        process.execPath,
        [
          '--import=./test/support/tsx.mjs',
          'test/simulate/run.ts',
          ...args,
          '--store',
          store,
          ...options,
          '--quick',
        ],
        { cwd: copy, encoding: 'utf8', maxBuffer: 2 ** 28 },
      )
      const found = /found after (\d+) purchases: (.*)/.exec(run.stdout)
      if (found !== null) return { after: before + Number(found[1]), how: `${found[2]} (${store})` }
      if (run.status !== 0) throw new Error(run.stderr || run.stdout)
      before += size
    }
    return { after: undefined, how: '' }
  })
}

let missed = 0
for (const planted of PLANTED.slice(Number(values.from), Number(values.to))) {
  if (values.only !== undefined && !planted.name.includes(values.only)) continue
  const { after, how } = find(planted)
  if (after === undefined) missed += 1
  console.log(
    `| ${planted.name} | ${after === undefined ? 'not found' : after.toLocaleString('en')} | ${how} |`,
  )
}
process.exitCode = missed === 0 ? 0 : 1
