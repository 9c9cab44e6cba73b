import t from 'tap'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { runProgram, startServer } from '../../support/server.ts'
import { writeShop } from '../../support/catalogs.ts'

// Each case starts the program again.
const STACK = /\n\s+at |node_modules|node:internal/
const PAYEE = `0x${'1'.repeat(40)}`
const KEY = 'b'.repeat(64)
/** Everything that real payments need; the chain is never asked at the start. */
const MEANS = {
  PAY_TO: PAYEE,
  SETTLER_PRIVATE_KEY: KEY,
  RPC_URL_8453: 'http://127.0.0.1:1',
  HOST: '127.0.0.1',
}
/** The first account of every development tool. */
const DEVELOPER = {
  address: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  key: 'ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
}

t.test(
  'refuses to start without a payment configuration, and names what is missing and the sandbox',
  async (t) => {
    const { code, stdout, stderr } = await runProgram(['serve', '--port', '0', '--data-dir', t.testdir()])
    t.equal(code, 1)
    t.equal(stdout, '')
    for (const name of [
      'PAY_TO',
      'SETTLER_PRIVATE_KEY',
      'RPC_URL_8453',
      'RPC_URL_137',
      'RPC_URL_42161',
      'RPC_URL_43114',
    ]) {
      t.match(stderr, name)
    }
    t.match(stderr, 'npx ratecard serve --sandbox')
    t.notMatch(stderr, STACK)
  },
)

t.test('says why it refuses to start whatever LOG_LEVEL is', async (t) => {
  const shop = writeShop(t, '  /paid/greet: { price: 1, sumary: X }\n')
  const args = ['serve', '--port', '0', '--data-dir', shop.directory]
  for (const level of ['error', 'silent']) {
    const unset = await runProgram(args, { LOG_LEVEL: level })
    t.equal(unset.code, 1, level)
    t.match(unset.stderr, 'PAY_TO is missing', level)
    const invalid = await runProgram([...args, '--catalog', shop.catalog], { ...MEANS, LOG_LEVEL: level })
    t.equal(invalid.code, 1, level)
    t.match(invalid.stderr, /catalog\.yaml:6:\d+ \w+ .*sumary/, level)
  }
})

t.test('refuses to serve an invalid catalog, and reports all of its errors', async (t) => {
  const shop = writeShop(
    t,
    '  /paid/greet: { price: 0.0000001, sumary: X }\n  /paid/x/: { price: 1, summary: X }\n',
  )
  const args = ['serve', '--port', '0', '--data-dir', shop.directory, '--catalog', shop.catalog]
  const { code, stdout, stderr } = await runProgram(args, MEANS)
  t.equal(code, 1)
  t.equal(stdout, '')
  t.match(stderr, /catalog\.yaml:6:\d+ price_too_precise/)
  t.match(stderr, /catalog\.yaml:6:\d+ \w+ .*sumary/)
  t.match(stderr, /catalog\.yaml:7:\d+ route_path_invalid/)
  t.match(stderr, 'not served')
  t.notMatch(stderr, STACK)
})

t.test('reports in one line what it fails to read or load', async (t) => {
  const shop = writeShop(t, '  /paid/greet: { price: 1, summary: X }\n')
  const broken = join(shop.directory, 'broken')
  mkdirSync(broken)
  writeFileSync(join(broken, 'package.json'), '{"type":"module"}')
  writeFileSync(join(broken, 'index.js'), 'export const handlers = {')
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['--catalog', join(shop.directory, 'absent.yaml')], /absent\.yaml cannot be read/],
    [
      ['--catalog', shop.catalog, '--handlers', join(shop.directory, 'absent')],
      /no such file: .*absent.index\.js; --handlers names/,
    ],
    [['--catalog', shop.catalog, '--handlers', broken], /index\.js cannot be loaded: SyntaxError/],
  ]
  for (const [args, words] of cases) {
    const { code, stdout, stderr } = await runProgram(
      ['serve', '--port', '0', '--data-dir', shop.directory, ...args],
      MEANS,
    )
    t.equal(code, 1, args.join(' '))
    t.equal(stdout, '')
    t.match(stderr, words)
    t.notMatch(stderr, STACK)
  }
})

t.test('names a data directory that is read-only', async (t) => {
  const directory = t.testdir({ file: 'not a directory' })
  const args = ['serve', '--port', '0', '--data-dir', join(directory, 'file')]
  for (const [more, env] of [
    [[], MEANS],
    [['--sandbox', '--offline'], {}],
  ] as const) {
    const { code, stderr } = await runProgram([...args, ...more], env)
    t.equal(code, 1)
    t.match(stderr, join(directory, 'file'))
    t.notMatch(stderr, STACK)
  }
})

t.test('reports a port in use', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const address = other.address()
  const port = typeof address === 'object' && address !== null ? String(address.port) : ''
  for (const more of [['--sandbox', '--offline']]) {
    const args = ['serve', '--port', port, '--data-dir', t.testdir(), ...more]
    const { code, stdout, stderr } = await runProgram(args, MEANS)
    t.equal(code, 1)
    t.equal(stdout, '')
    t.match(stderr, `port ${port} is in use`)
    t.match(stderr, '--port')
    t.notMatch(stderr, STACK)
  }
})

t.test('refuses sandbox money on a real network', async (t) => {
  for (const [env, words] of [
    [{ NODE_ENV: 'production' }, 'NODE_ENV=production'],
    [{ BASE_URL: 'https://api.example.com' }, 'https://api.example.com'],
  ] as const) {
    const data = t.testdir()
    const { code, stdout, stderr } = await runProgram(
      ['serve', '--sandbox', '--offline', '--port', '0', '--data-dir', data],
      env,
    )
    t.equal(code, 1, words)
    t.equal(stdout, '')
    t.match(stderr, words)
    t.equal(existsSync(join(data, 'sandbox.json')), false)
  }
})

t.test('refuses to send real money to well-known test keys', async (t) => {
  const sandbox = {
    evm: { payerKey: `0x${'7'.repeat(64)}`, signerKey: `0x${KEY}`, payTo: `0x${'3'.repeat(40)}` },
  }
  const directory = t.testdir({ 'sandbox.json': JSON.stringify(sandbox) })
  for (const [env, name] of [
    [{ PAY_TO: DEVELOPER.address, SETTLER_PRIVATE_KEY: 'c'.repeat(64) }, 'PAY_TO'],
    [{ SETTLER_PRIVATE_KEY: KEY }, 'SETTLER_PRIVATE_KEY'],
  ] as const) {
    const { code, stdout, stderr } = await runProgram(['serve', '--port', '0', '--data-dir', directory], {
      ...MEANS,
      ...env,
    })
    t.equal(code, 1, JSON.stringify(env))
    t.equal(stdout, '')
    t.match(stderr, new RegExp(`${name}.*known to others`))
    t.notMatch(stderr, new RegExp(`${DEVELOPER.key}|${KEY}`), 'no key is printed')
  }
})

t.test('reports every problem of the environment together', async (t) => {
  const env = {
    PORT: 'x',
    BASE_URL: 'api.example.com',
    PAY_TO: '0x12',
    SETTLER_PRIVATE_KEY: 'my-secret-key',
    RPC_URL_8453: 'base',
    TRUST_PROXY: 'maybe',
  }
  const { code, stdout, stderr } = await runProgram(['serve'], env)
  t.equal(code, 78)
  t.equal(stdout, '')
  for (const name of Object.keys(env)) t.match(stderr, new RegExp(`environment: ${name} must be`))
  t.notMatch(stderr, 'my-secret-key')
  t.notMatch(stderr, STACK)
  const help = await runProgram(['serve', '--help'], env)
  t.equal(help.code, 0, 'help is there all the same')
})

t.test('serves a catalog of free routes without a payment configuration', async (t) => {
  const shop = writeShop(
    t,
    '  /greet: { price: free, handler: greet, summary: X }\n  /sum: { price: free, handler: sum, summary: X }\n',
  )
  appendFileSync(
    join(shop.handlers, 'index.js'),
    '\nhandlers.sum = () => ({ source: [], body: { sum: 2 } })\n',
  )
  const server = await startServer({
    args: ['--catalog', shop.catalog, '--handlers', shop.handlers],
    env: { HOST: '127.0.0.1' },
  })
  t.teardown(() => server.stop())
  t.equal((await fetch(`${server.url}/greet`)).status, 200)
  t.equal((await fetch(`${server.url}/greet`)).headers.get('ratecard-sandbox'), null, 'this is no sandbox')
  t.match(await (await fetch(`${server.url}/sum`)).json(), { sum: 2 }, 'a handler need not be async')
  t.match(server.output(), /^catalog: 2 routes, /m)
  const [, pages = ''] = /^pages: (\S+)$/m.exec(server.output()) ?? []
  const page = await fetch(pages, { headers: { Accept: 'text/html' } })
  t.match(page.headers.get('content-type'), 'text/html', 'it says where its pages are')
})
