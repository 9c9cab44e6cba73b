import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runLine } from '../../support/run-command.ts'
import { compile, install, ROOT, runIn, runTests } from '../../support/project.ts'
import { MAIN, runProgram, serveUnpaid, startServer } from '../../support/server.ts'

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
  const elsewhere = runIn(t.testdirName, process.execPath, MAIN, 'init', 'other')
  t.match(elsewhere, `next: npm pack ${ROOT.replace(/\/$/, '')} && cd other && npm install ../ratecard-`)

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

t.test('creates a metered shop whose buyers pay for what was used', async (t) => {
  const folder = join(t.testdir(), 'words')
  const made = await runProgram(['init', folder, '--example', 'metered'])
  t.equal(made.code, 0, made.stderr)
  install(folder)
  t.match(await runProgram(['check', join(folder, 'catalog.yaml')]), { code: 0, stdout: /2 routes, 2 paid/ })
  t.doesNotThrow(() => compile(folder))
  t.match(runTests(folder), /pass 1/)

  const server = await startServer({ args: ['--sandbox', '--catalog', join(folder, 'catalog.yaml')] })
  t.teardown(() => server.stop())
  const pay = (path: string, ...more: string[]) =>
    runProgram(['pay', path, '-d', '{"prompt":"What is it?","max_tokens":4}', ...more], {
      DATA_DIR: server.dataDir,
    })
  const whole = await pay('/paid/chat', '--json')
  t.equal(whole.code, 0, whole.stdout)
  t.match(JSON.parse(whole.stdout), {
    charged: 'yes',
    // 0.0002 USD, 3 tokens at 0.0005 and 4 at 0.0015 per 1,000: 0.0002075 USD, rounded up.
    amount: '0.000208',
    authorized: '0.002200',
    usage: [{ part: 'base' }, { count: 3 }, { count: 4 }],
    body: { text: 'A rate card is', usage: { prompt_tokens: 3, completion_tokens: 4 } },
  })
  const events = await pay('/paid/chat/events')
  t.equal(events.code, 0, events.stderr)
  t.match(events.stdout, /^data: \{"text":"A"\}\n[^]*data: \{"usage":\{"prompt_tokens":3,/)
  t.match(
    events.stderr,
    /0\.000208 of 0\.0022 USD charged: base = 0\.0002, value_of \/usage\/prompt_tokens 3/,
  )

  for (const [more, words] of [
    [['--typescript'], /--example writes JavaScript/],
    [['--from', 'openapi.json'], /it takes no --from/],
  ] as const)
    t.match(await runLine(['init', folder, '--example', 'metered', ...more]), { code: 64, err: words })
  t.match(await runLine(['init', folder, '--example', 'other']), {
    code: 64,
    err: /--example takes metered/,
  })
})

t.test('refuses what is about the operations of an API when no API is named', async (t) => {
  const folder = join(t.testdir(), 'shop')
  for (const [name, value] of [
    ['price', '0.001'],
    ['include', 'GET *'],
    ['exclude', 'DELETE *'],
  ] as const)
    t.match(await runLine(['init', folder, `--${name}`, value]), {
      code: 64,
      err: new RegExp(`--${name} is about the operations of an API: name its document with --from`),
    })
  t.notOk(existsSync(folder))
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
