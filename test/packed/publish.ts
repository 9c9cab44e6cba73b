import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../support/markdown.ts'

const PLACE = mkdtempSync(join(tmpdir(), 'ratecard-publish-'))
t.teardown(() => spawnSync('rm', ['-rf', PLACE]))

function run(command: string, cwd = ROOT): { readonly code: number | null; readonly output: string } {
  const env = { ...process.env, npm_config_audit: 'false', npm_config_fund: 'false' }
  const { status, stdout, stderr } = spawnSync('bash', ['-euc', command], { cwd, encoding: 'utf8', env })
  return { code: status, output: `${stdout}\n${stderr}` }
}

interface Packed {
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

function pack(folder: string): Packed {
  const { output } = run(`npm pack --json --ignore-scripts --pack-destination ${PLACE}`, folder)
  const [packed] = JSON.parse(output.slice(output.indexOf('['), output.lastIndexOf(']') + 1)) as Packed[]
  if (packed === undefined) throw new Error(output)
  return packed
}

const framework = pack(ROOT)
const creator = pack(join(ROOT, 'create-ratecard'))

t.test('the package contains the framework, without the shop and without sources', async (t) => {
  const paths = framework.files.map(({ path }) => path)
  for (const path of [
    'dist/main.js',
    'dist/engine/index.d.ts',
    'catalog.schema.json',
    'LICENSE',
    'README.md',
  ])
    t.ok(paths.includes(path), path)
  t.same(
    paths.filter((path) => /^(?:src|test|docs|deploy)\/|^dist\/service|^catalog\.yaml$|\.map$/.test(path)),
    [],
  )
})

t.test('a dry run of npm publish has nothing to warn about', async (t) => {
  for (const folder of [ROOT, join(ROOT, 'create-ratecard')]) {
    const { code, output } = run('npm publish --dry-run --ignore-scripts --provenance=false', folder)
    t.equal(code, 0, folder, { output })
    // Nobody is logged in here.
    t.notMatch(output, /npm warn publish (?!This command requires you to be logged in)/, folder)
  }
})

t.test('publint and attw find nothing wrong with the package', async (t) => {
  const tarball = join(PLACE, framework.filename)
  const bin = join(ROOT, 'node_modules/.bin')
  for (const command of [
    `${bin}/publint run ${tarball} --strict`,
    `${bin}/attw ${tarball} --profile esm-only`,
  ]) {
    const { code, output } = run(command)
    t.equal(code, 0, command, { output })
  }
})

t.test('npm create ratecard creates a project in TypeScript that checks, compiles and tests', async (t) => {
  writeFileSync(join(PLACE, 'package.json'), '{ "private": true }')
  const installed = run(`npm install --prefer-offline ./${framework.filename} ./${creator.filename}`, PLACE)
  t.equal(installed.code, 0, 'installed', { output: installed.output })
  const created = run('npx --no-install create-ratecard shop --typescript', PLACE)
  t.equal(created.code, 0, 'created', { output: created.output })
  const shop = join(PLACE, 'shop')
  for (const path of ['Dockerfile', '.github/workflows/ci.yml', 'handlers/catalog.ts', framework.filename])
    t.ok(existsSync(join(shop, path)), path)
  const { dependencies } = JSON.parse(readFileSync(join(shop, 'package.json'), 'utf8'))
  t.same(dependencies, { ratecard: `file:${framework.filename}` })
  for (const command of ['npm install --prefer-offline', 'npm run types', 'npm run check', 'npm test']) {
    const { code, output } = run(command, shop)
    t.equal(code, 0, command, { output })
  }
})
