import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { insertRoute } from '../../../src/cli/new/insertion.ts'
import { parseParameter } from '../../../src/cli/new.ts'
import { runLine, type Ran } from '../../support/run-command.ts'
import { compile, install, ROOT, runTests } from '../../support/project.ts'
import { runProgram, serveUnpaid, type RunningServer } from '../../support/server.ts'
import { until } from '../../support/until.ts'

interface Shop {
  readonly folder: string
  readonly read: (path: string) => string
  readonly add: (...argv: string[]) => Promise<Ran>
}

async function begin(t: Test, ...options: readonly string[]): Promise<Shop> {
  const folder = join(t.testdir(), 'shop')
  await runLine(['init', folder, ...options])
  install(folder)
  return {
    folder,
    read: (path) => readFileSync(join(folder, path), 'utf8'),
    add: (...argv) => runLine(['new', ...argv, '--catalog', join(folder, 'catalog.yaml')]),
  }
}

t.test('adds a route that is typed, tested and served', async (t) => {
  const { folder, read } = await begin(t)
  const before = read('catalog.yaml')
  // A process of its own each time, as handlers are imported once.
  const add = (...argv: string[]) => runProgram(['new', ...argv, '--catalog', join(folder, 'catalog.yaml')])
  const slug = ['--parameter', 'text:string!', '--parameter', 'note:string']
  const made = await add('/paid/util/slug', '--price', '0.0020', ...slug)
  t.match(made, { code: 0, stdout: /changed .*catalog\.yaml:28, / })
  const sku = ['--parameter', 'sku:string=A-100', '--parameter', 'days:integer=7']
  t.equal((await add('/paid/delete/{sku}', '--price', '0.01', ...sku)).code, 0)
  t.equal((await add('/about', '--price', 'free', '--summary', 'Says who we are')).code, 0)
  const shout = ['--parameter', 'text:string!', '--parameter', 'times:integer=2']
  t.equal((await add('/paid/util/shout/{lang}', '-X', 'post', '--price', '0.003', ...shout)).code, 0)
  t.equal((await add('/paid/note', '--method', 'PUT', '--price', '0.003')).code, 0)
  t.equal((await add('/paid/delete/{sku}', '--method', 'DELETE', '--price', '0.01')).code, 0)
  t.equal(
    read('catalog.yaml'),
    `${before}
  /paid/util/slug:
    price: 0.0020
    summary: What one call of /paid/util/slug brings
    parameters:
      text: { type: string, required: true, example: example }
      note: { type: string }

  /paid/delete/{sku}:
    price: 0.01
    summary: 'What one call of /paid/delete/{sku} brings'
    parameters:
      sku: { type: string, example: A-100 }
      days: { type: integer, default: 7 }

  /about:
    price: free
    summary: Says who we are

  POST /paid/util/shout/{lang}:
    price: 0.003
    summary: 'What one call of /paid/util/shout/{lang} brings'
    parameters:
      lang: { type: string, example: example }
    body:
      properties:
        text: { type: string, required: true, example: example }
        times: { type: integer, default: 2 }

  PUT /paid/note:
    price: 0.003
    summary: What one call of /paid/note brings
    body:
      properties:
        text: { type: string, required: true, example: example }

  DELETE /paid/delete/{sku}:
    price: 0.01
    summary: 'What one call of /paid/delete/{sku} brings'
    parameters:
      sku: { type: string, example: example }
`,
    'nothing else of the file is touched',
  )
  t.doesNotThrow(() => compile(folder))
  t.doesNotThrow(() => runTests(folder))

  const handlers = ['--handlers', join(folder, 'handlers')]
  const server = await serveUnpaid(t, join(folder, 'catalog.yaml'), handlers)
  for (const path of ['/paid/util/slug?text=a', '/paid/delete/A-100']) {
    const answer = await fetch(server.url + path)
    t.equal(answer.status, 402, path)
    t.notMatch(await answer.text(), 'would_fail')
  }
  for (const [method, path, body] of [
    ['POST', '/paid/util/shout/de', { text: 'a' }],
    ['PUT', '/paid/note', { text: 'a' }],
    ['DELETE', '/paid/delete/A-100', undefined],
  ] as const) {
    const sent = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const answer = await fetch(server.url + path, { method, ...(body === undefined ? {} : sent) })
    t.equal(answer.status, 402, method)
    t.notMatch(await answer.text(), 'would_fail', method)
  }
  t.equal((await fetch(`${server.url}/about`)).status, 200)
})

t.test(
  'adds a route with its handler and test in TypeScript where the project is written in it',
  async (t) => {
    const { folder, read, add } = await begin(t, '--typescript')
    const slug = ['--parameter', 'text:string!', '--parameter', 'note:string']
    t.match(await add('/paid/util/slug', '--price', '0.002', ...slug), { code: 0, out: /util\/slug\.ts/ })
    t.equal((await add('/about', '--price', 'free')).code, 0)
    t.match(read('handlers/catalog.ts'), "'util/slug'")
    t.doesNotThrow(() => compile(folder))
    t.match(runTests(folder, 'test/util-slug.test.js', 'test/about.test.js'), /pass 2/)
    const checked = await runProgram(['check', join(folder, 'catalog.yaml')])
    t.match(checked, { code: 0, stdout: /4 routes, 2 paid/ })
  },
)

t.test('adds a route to a running shop: planned at once, and sold when its handler is loaded', async (t) => {
  const { folder } = await begin(t)
  const catalog = join(folder, 'catalog.yaml')
  const [plain, watching] = await Promise.all([serveUnpaid(t, catalog), serveUnpaid(t, catalog, ['--watch'])])
  const made = await runProgram([
    'new',
    '/paid/util/slug',
    '--price',
    '0.002',
    '--catalog',
    join(folder, 'catalog.yaml'),
  ])
  t.match(made, { code: 0, stdout: /planned until it is restarted/ })
  const offer = async ({ url }: RunningServer): Promise<string> =>
    (await fetch(`${url}/paid/util/slug`)).text()
  await plain.said(/there is no handler "util\/slug" yet: planned/)
  await plain.said(/revision \S+ →/)
  t.match(await offer(plain), /would_fail.*not_implemented/)
  await until('the new route is sold', async () => {
    const text = await offer(watching)
    return text.includes('payment_required') && !text.includes('would_fail')
  })
})

t.test('refuses a route that would break the catalog, and leaves all files as they are', async (t) => {
  const { folder, read, add } = await begin(t)
  mkdirSync(join(folder, 'handlers/util'))
  writeFileSync(join(folder, 'handlers/util/mine.js'), 'mine')
  const files = ['catalog.yaml', 'handlers/index.js', 'handlers/catalog.d.ts', 'handlers/util/mine.js']
  const before = files.map(read)
  for (const [argv, words] of [
    [['/paid/moon/{date}', '--price', '1'], /has \/paid\/moon\/\{date\} already/],
    [['/paid/moon/{day}', '--price', '1'], /path_conflict/],
    [['/payments/{id}', '--price', '0.1'], /path_conflict/],
    [['/mcp/tide', '--price', '0.1'], /route_path_invalid/],
    [['/paid/tide', '--price', '0.0000001'], /price_too_precise/],
    [['/paid/tide', '--price', '1', '--parameter', 'days:integer=ten'], /default_invalid/],
    [['/paid/tide/', '--price', '1'], /route_path_invalid/],
    [['/paid/util/mine', '--price', '1'], /mine\.js is there already/],
  ] as const) {
    const { code, err } = await add(...argv)
    t.equal(code, 1, argv.join(' '))
    t.match(err, words)
    t.match(err, 'nothing was written')
    t.strictSame(files.map(read), before)
  }
  t.match(await runLine(['new', '/paid/x', '--price', '1', '--catalog', join(folder, 'none.yaml')]), {
    code: 1,
    err: /nothing was written: .*none\.yaml does not exist: .*"ratecard init" creates one/,
  })
  writeFileSync(join(folder, 'handlers/index.js'), 'const all = {}\nexport { all as handlers }\n')
  t.match(await add('/paid/tide', '--price', '1'), { code: 1, err: /has no "export const handlers = \{"/ })
  t.throws(() => read('handlers/tide.js'))
  t.equal(read('catalog.yaml'), before[0])
})

t.test('explains the arguments when too few or too many are given', async (t) => {
  for (const argv of [
    [],
    ['paid/x', '--price', '1'],
    ['/paid/x'],
    ['/paid/x', '--price', '$1'],
    ['/paid/x', '--price', '1', '--method', 'TRACE'],
    ['/paid/x', '--price', '1', '--parameter', 'x'],
    ['/paid/x', '--price', '1', '--parameter', 'x:text'],
    ['/paid/x', '--price', '1', '--parameter', 'X:string'],
    ['/paid/x', '--price', '1', '--parameter', 'x:string!!'],
  ]) {
    const { code, out, err } = await runLine(['new', ...argv])
    t.equal(code, 64, argv.join(' '))
    t.equal(out, '')
    t.match(err, 'usage: ratecard new')
  }
  t.match(parseParameter('a:string=x=!y'), { preset: 'x=!y', required: false })
  t.match(parseParameter('a:string='), { preset: '', required: false })
})

const DRAFT = { path: '/paid/new', price: '1', keys: [], parameters: [] }

t.test('adds a route after the last one, in any layout of the catalog', async (t) => {
  const head = 'catalog: 1\nroutes:\n'
  for (const [name, before, after] of [
    ['nothing', `${head}  /a: { price: 1 }\n`, ''],
    ['a comment on the line', `${head}  /a: { price: 1 } # why\n`, ''],
    ['a comment below', `${head}  /a:\n    price: 1\n`, '    # /old: no more\n\n# the rest\ntools: {}\n'],
    ['a block of text', `${head}  /a:\n    summary: >-\n      many\n      words\n`, '\nfiles: { /x: y }\n'],
    ['a block that keeps its end', `${head}  /a:\n    summary: |+\n      many\n\n\n`, 'files: {}\n'],
    ['a list', `${head}  /a:\n    queries:\n      - one\n      - two\n`, 'files: {}\n'],
    ['an anchor', `${head}  /a: &a\n    price: 1\n  /b: *a\n`, 'files: {}\n'],
    ['four spaces', `${head}    /a:\n        price: 1\n`, 'files: {}\n'],
    ['a quoted key', `${head}  '/a/{b}':\n    price: "1"\n`, ''],
  ] as const) {
    const insertion = insertRoute(before + after, DRAFT)
    if (insertion.kind === 'fault') t.fail(`${name}: ${insertion.sentence}`)
    else {
      const { text, line } = insertion
      t.equal(text.slice(0, before.length), before, name)
      t.equal(after === '' || text.endsWith(after), true, name)
      t.match(text.split('\n')[line - 1], /^ +\/paid\/new:$/, name)
    }
  }
  const bare = insertRoute(`${head}  /a: { price: 1 }`, DRAFT)
  t.match(bare, { kind: 'inserted', text: `${head}  /a: { price: 1 }\n\n  /paid/new:\n    price: 1\n` })
  const windows = insertRoute(`${head}  /a: 1\n`.replaceAll('\n', '\r\n'), DRAFT)
  t.equal(windows.kind === 'inserted' && windows.text.replaceAll('\r\n', '').includes('\n'), false)
  for (const text of ['', 'routes: {}\n', 'routes: { /a: 1 }\n', 'routes:\n', 'routes: [', 'a: b: c'])
    t.equal(insertRoute(text, DRAFT).kind, 'fault', text)
})

t.test('adds a route to the shipped catalog and keeps every other character', async (t) => {
  const text = readFileSync(join(ROOT, 'catalog.yaml'), 'utf8')
  const insertion = insertRoute(text, DRAFT)
  t.equal(insertion.kind, 'inserted')
  if (insertion.kind === 'inserted')
    t.equal(insertion.text.replace('\n  /paid/new:\n    price: 1\n', ''), text)
})
