import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runLine } from '../../support/run-command.ts'
import { compile, install, runTests } from '../../support/project.ts'
import { runProgram, serveUnpaid } from '../../support/server.ts'

t.test('creates a project that passes its checks and sells at once', async (t) => {
  const folder = join(t.testdir(), 'New shop')
  const made = await runProgram(['init', folder])
  t.equal(made.code, 0)
  t.match(made.stdout, `wrote ${folder}/catalog.yaml`)
  install(folder)
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  t.equal(manifest.name, 'new-shop')
  t.strictSame(manifest.dependencies, {}, 'there is no release that npm could find')
  t.match(made.stdout, /^next: npm pack && cd .* && npm install .*ratecard-\d.*\.tgz && npm run sandbox$/m)

  const handlers = join(folder, 'handlers')
  const checked = await runProgram(['check', join(folder, 'catalog.yaml')])
  t.match(checked, { code: 0, stdout: /2 routes, 1 paid/ })
  t.doesNotThrow(() => compile(folder))
  t.doesNotThrow(() => runTests(folder))

  const server = await serveUnpaid(t, join(folder, 'catalog.yaml'))
  const asked = await fetch(`${server.url}/paid/moon/2026-12-24`)
  t.equal(asked.status, 402)
  t.ok(asked.headers.has('payment-required'))
  t.match(await (await fetch(`${server.url}/sample/moon/2026-12-24`)).json(), { phase: 'full moon', lit: 1 })

  const handler = join(handlers, 'moon.js')
  writeFileSync(
    handler,
    `${readFileSync(handler, 'utf8')}\nexport const digits = Buffer.from('moon').toString('hex')\n`,
  )
  t.doesNotThrow(() => compile(folder), 'a handler may use what Node.js has')
  writeFileSync(handler, readFileSync(handler, 'utf8').replaceAll('date', 'day'))
  t.throws(() => compile(folder), 'a handler that takes what the catalog does not give is a compile error')
})

t.test('a new project in TypeScript compiles, checks and tests', async (t) => {
  const folder = join(t.testdir(), 'shop')
  const made = await runProgram(['init', folder, '--typescript'])
  t.equal(made.code, 0, made.stderr)
  install(folder)
  t.match(await runLine(['check', join(folder, 'catalog.yaml')]), {
    code: 1,
    err: /handlers\/index\.ts is not compiled: run "npm run build"/,
  })
  compile(folder)
  t.match(await runProgram(['check', join(folder, 'catalog.yaml')]), { code: 0, stdout: /2 routes, 1 paid/ })
  t.match(runTests(folder, 'test/moon.test.js'), /pass 1/)
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

t.test('creates a project where npm has installed the package, and keeps its package.json', async (t) => {
  const there = {
    version: '3.0.0',
    type: 'commonjs',
    scripts: { test: 'echo "Error: no test specified" && exit 1', check: 'mine' },
    dependencies: { left: '1' },
    devDependencies: { typescript: '5.9.3' },
  }
  const folder = t.testdir({ 'package.json': JSON.stringify(there), 'package-lock.json': '{}', '.git': {} })
  const made = await runLine(['init', folder])
  t.equal(made.code, 0, made.err)
  t.match(made.out, `changed ${folder}/package.json`)
  t.match(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')), {
    version: '3.0.0',
    type: 'module',
    scripts: { test: 'node --test', check: 'mine', sandbox: 'ratecard serve --sandbox' },
    dependencies: { left: '1' },
    devDependencies: { typescript: '5.9.3', '@types/node': /^\^20/ },
  })
  const other = t.testdir({
    common: { 'package.json': '{"type":"commonjs"}', 'server.js': '' },
    broken: { 'package.json': '[' },
  })
  for (const [name, words] of [
    [
      'common',
      /nothing was written: .*package\.json has "type": "commonjs", and server\.js may depend on it/,
    ],
    ['broken', /nothing was written: .*package\.json is not a JSON object/],
  ] as const) {
    t.match(await runLine(['init', join(other, name)]), { code: 1, out: '', err: words })
    t.notOk(existsSync(join(other, name, 'catalog.yaml')))
  }
})
