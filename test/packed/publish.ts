import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { replay } from './support/dockerfile.ts'
import { ROOT } from '../support/markdown.ts'
import { startServer } from '../support/server.ts'
import { Session } from './support/terminal-session.ts'

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

t.test('passes a dry run of npm publish without warnings', async (t) => {
  for (const folder of [ROOT, join(ROOT, 'create-ratecard'), join(ROOT, 'src/buyer')]) {
    const { code, output } = run('npm publish --dry-run --ignore-scripts --provenance=false', folder)
    t.equal(code, 0, folder, { output })
    // Nobody is logged in here.
    t.notMatch(output, /npm warn publish (?!This command requires you to be logged in)/, folder)
  }
})

t.test('passes publint and attw', async (t) => {
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

t.test(
  'npm create ratecard creates a project in TypeScript that compiles, tests, sells and runs in an image',
  async (t) => {
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
    for (const command of [
      'npm install --prefer-offline',
      'npx ratecard check',
      'npm run types',
      'npm run check',
      'npm test',
    ]) {
      const { code, output } = run(command, shop)
      t.equal(code, 0, command, { output })
    }
    const session = new Session(shop)
    t.teardown(() => session.close())
    const serving = await session.run({ text: 'npm run sandbox' })
    t.equal(serving.code, 0, 'the sandbox', serving)
    const { output } = await session.run({ text: 'npx ratecard pay /paid/moon/2026-12-24' })
    t.match(output, /200, charged: yes[^]*full moon/)

    // "npm ci" wants a lock file of all platforms, which npm writes where it finds the optional packages of all.
    const dockerfile = join(shop, 'Dockerfile')
    writeFileSync(dockerfile, readFileSync(dockerfile, 'utf8').replace('npm ci', 'npm install'))
    const { command } = replay(dockerfile, shop, join(PLACE, 'image'))
    const [program = ''] = command.slice(1)
    const means = {
      PAY_TO: `0x${'1'.repeat(40)}`,
      FACILITATOR_URL: 'http://127.0.0.1:1',
      NODE_ENV: 'production',
    }
    const app = join(PLACE, 'image/app')
    const server = await startServer({ program: join(app, program), cwd: app, env: means })
    t.teardown(() => server.stop())
    t.equal((await fetch(`${server.url}/paid/moon/2026-12-24`)).status, 402, 'the image')
    t.equal((await fetch(`${server.url}/sample/moon/2026-12-24`)).status, 200)
    for (const path of ['node_modules/typescript', '.ratecard']) t.notOk(existsSync(join(app, path)), path)
  },
)
