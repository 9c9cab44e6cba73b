import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import t from 'tap'
import { packageProblems } from '../../release/package-checks.ts'
import { pack, PUBLISHED, ROOT, versionProblems } from '../../release/packages.ts'
import { attempt, run } from '../../release/shell.ts'
import { replay } from './support/dockerfile.ts'
import { startServer } from '../support/server.ts'
import { Session } from './support/terminal-session.ts'

const PLACE = mkdtempSync(join(tmpdir(), 'ratecard-publish-'))
t.teardown(() => spawnSync('rm', ['-rf', PLACE]))

const [framework, buyer, creator] = PUBLISHED.map((folder) => pack(folder, PLACE))
if (framework === undefined || buyer === undefined || creator === undefined)
  throw new Error('three are packed')

t.test('the package contains the framework, without the shop and without sources', async (t) => {
  const paths = framework.files.map(({ path }) => path)
  for (const path of [
    'dist/main.js',
    'dist/engine/index.d.ts',
    'dist/vendor/sbom.json',
    'catalog.schema.json',
    'LICENSE',
    'README.md',
  ])
    t.ok(paths.includes(path), path)
})

for (const packed of [framework, buyer, creator])
  t.test(`${packed.manifest.name} is in order: files, size, licences, publint, attw`, async (t) => {
    t.same(packageProblems(packed), [])
  })

t.test('refuses files that no user needs, missing ones, and a package that has grown', async (t) => {
  const unneeded = [
    'dist/main.js.map',
    'dist/.tsbuildinfo',
    'dist/service/index.js',
    'dist/cli/check.d.ts',
    'test/a.js',
  ]
  const files = [
    ...framework.files.filter(({ path }) => path !== 'LICENSE'),
    ...unneeded.map((path) => ({ path, size: 1 })),
  ]
  t.same(packageProblems({ ...framework, files, bytes: 1e9 }), [
    ...unneeded.map((path) => `${path}: no user needs it`),
    'LICENSE is missing',
    '1000000000 bytes, more than 2200000',
  ])
})

t.test('has one version for all packages', async (t) => {
  t.same(versionProblems(), [])
})

t.test('refuses to publish from a machine of a person', async (t) => {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: _, ...env } = process.env
  const { status, stderr } = spawnSync(process.execPath, ['--import=tsx', 'release/main.ts'], {
    cwd: ROOT,
    env,
    encoding: 'utf8',
  })
  t.equal(status, 1)
  t.match(stderr, /^refused: only .*release\.yml publishes, with provenance$/m)
})

t.test('passes a dry run of npm publish without warnings', async (t) => {
  for (const folder of PUBLISHED) {
    const { code, output } = attempt(
      'npm publish --dry-run --ignore-scripts --provenance=false',
      join(ROOT, folder),
    )
    t.equal(code, 0, folder, { output })
    // Nobody is logged in here.
    t.notMatch(output, /npm warn publish (?!This command requires you to be logged in)/, folder)
  }
})

t.test(
  'npm create ratecard creates a project in TypeScript that compiles, tests, sells and runs in an image',
  async (t) => {
    writeFileSync(join(PLACE, 'package.json'), '{ "private": true }')
    run(`npm install --prefer-offline ${framework.tarball} ${creator.tarball}`, PLACE)
    run('npx --no-install create-ratecard shop --typescript', PLACE)
    const shop = join(PLACE, 'shop')
    const tarball = basename(framework.tarball)
    for (const path of ['Dockerfile', '.github/workflows/ci.yml', 'handlers/catalog.ts', tarball])
      t.ok(existsSync(join(shop, path)), path)
    const { dependencies } = JSON.parse(readFileSync(join(shop, 'package.json'), 'utf8'))
    t.same(dependencies, { ratecard: `file:${tarball}` })
    for (const command of [
      'npm install --prefer-offline',
      'npx ratecard check',
      'npm run types',
      'npm run check',
      'npm test',
    ]) {
      const { code, output } = attempt(command, shop)
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
