import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { runLine } from '../support/command.ts'
import { randomKey } from '../support/payment.ts'
import { runProgram, startServer, type RunningServer } from '../support/server.ts'

t.setTimeout(120_000)

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Nothing is settled here: no endpoint is ever asked. */
async function serve(t: Test, folder: string, ...args: string[]): Promise<RunningServer> {
  const server = await startServer({
    args: ['--catalog', join(folder, 'catalog.yaml'), ...args],
    env: {
      HOST: '127.0.0.1',
      PAY_TO: `0x${'1'.repeat(40)}`,
      SETTLER_PRIVATE_KEY: randomKey(),
      RPC_URL_8453: 'http://127.0.0.1:1',
    },
  })
  t.teardown(() => server.stop())
  return server
}

t.test('creates a project that passes its checks and sells at once', async (t) => {
  const folder = join(t.testdir(), 'New shop')
  const made = await runProgram(['init', folder])
  t.equal(made.code, 0)
  t.match(made.stdout, `wrote ${folder}/catalog.yaml`)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(ROOT, join(folder, 'node_modules/ratecard'))
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  t.equal(manifest.name, 'new-shop')
  t.strictSame(manifest.dependencies, {}, 'there is no release that npm could find')
  t.match(made.stdout, /^next: npm pack && cd .* && npm install .*ratecard-\d.*\.tgz && npm run sandbox$/m)

  const handlers = join(folder, 'handlers')
  const checked = await runProgram(['check', join(folder, 'catalog.yaml')])
  t.match(checked, { code: 0, stdout: /2 routes, 1 paid/ })
  const tsc = (): Buffer =>
    execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder], { stdio: 'pipe' })
  t.doesNotThrow(tsc)
  t.doesNotThrow(() => execFileSync(process.execPath, ['--test'], { cwd: folder, stdio: 'pipe', env: {} }))

  const server = await serve(t, folder)
  const asked = await fetch(`${server.url}/paid/moon/2026-12-24`)
  t.equal(asked.status, 402)
  t.ok(asked.headers.has('payment-required'))
  t.match(await (await fetch(`${server.url}/sample/moon/2026-12-24`)).json(), { phase: 'full moon', lit: 1 })

  const handler = join(handlers, 'moon.js')
  writeFileSync(handler, readFileSync(handler, 'utf8').replaceAll('date', 'day'))
  t.throws(tsc, 'a handler that takes what the catalog does not give is a compile error')
})

t.test('a new project in TypeScript compiles, checks and tests', async (t) => {
  const folder = join(t.testdir(), 'shop')
  const made = await runProgram(['init', folder, '--typescript'])
  t.equal(made.code, 0, made.stderr)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(ROOT, join(folder, 'node_modules/ratecard'))
  symlinkSync(join(ROOT, 'node_modules/@types'), join(folder, 'node_modules/@types'))
  execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder], { stdio: 'pipe' })
  t.match(await runProgram(['check', join(folder, 'catalog.yaml')]), { code: 0, stdout: /2 routes, 1 paid/ })
  const tested = spawnSync(process.execPath, ['--test', 'test/moon.test.js'], {
    cwd: folder,
    encoding: 'utf8',
    env: {},
  })
  t.match(tested.stdout, /pass 1/)
  const refused = await runProgram([
    'new',
    '/paid/tea',
    '--price',
    '0.01',
    '--catalog',
    join(folder, 'catalog.yaml'),
  ])
  t.match(refused, { code: 1, stderr: /index\.ts is TypeScript/ })
})

t.test(
  'keeps the operator’s files, and writes a project completely or leaves the folder empty',
  async (t) => {
    const folder = t.testdir({ handlers: { 'moon.js': 'mine' } })
    const { code, out, err } = await runLine(['init', folder])
    t.equal(code, 1)
    t.equal(out, '')
    t.match(err, /nothing was written: .* already has handlers\/moon\.js/)
    t.equal(readFileSync(join(folder, 'handlers/moon.js'), 'utf8'), 'mine')
    t.throws(() => readFileSync(join(folder, 'catalog.yaml')))
  },
)

t.test('asks for the folder to create', async (t) => {
  t.equal((await runLine(['init'])).code, 64)
})
