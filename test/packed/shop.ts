import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startBase, witness } from '../support/base-chain.ts'
import { addressOf, randomKey, stockFetch } from '../support/payment.ts'
import { readmeBlocks } from '../support/readme.ts'
import { readSandboxFile, startServer } from '../support/server.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SHOP = join(ROOT, 'test/fixtures/shop')
const PLACE = mkdtempSync(join(tmpdir(), 'ratecard-packed-'))
const TEA = join(PLACE, 'tea')

// Twenty thousand files: what Node would do one by one takes longer than the tests.
t.teardown(() => run(`rm -rf ${PLACE}`, tmpdir()))

interface Ran {
  readonly code: number | null
  readonly out: string
}

function attempt(command: string, cwd = TEA): Ran {
  const { status, stdout, stderr } = spawnSync('bash', ['-euc', command], { cwd, encoding: 'utf8' })
  return { code: status, out: status === 0 ? stdout : `${stdout}\n${stderr}` }
}

function run(command: string, cwd = TEA): string {
  const { code, out } = attempt(command, cwd)
  if (code !== 0) throw new Error(`${command} ended with ${code}:\n${out}`)
  return out
}

/** What the README says of a catalog of one's own. */
const blocks = readmeBlocks().filter(({ section }) => section === 'Your own catalog')
const blockOf = (wanted: string): string => blocks.find(({ language }) => language === wanted)?.text ?? ''
const [yaml, ts, sh] = [blockOf('yaml'), blockOf('ts'), blockOf('sh').trim().split('\n')]
const serving = sh.at(-1) ?? ''

t.test('who types what the README says into an empty folder has a service', async (t) => {
  t.equal(yaml, readFileSync(join(SHOP, 'catalog.yaml'), 'utf8'), 'its catalog is the one that is tested')
  t.equal(ts, readFileSync(join(SHOP, 'handlers/index.ts'), 'utf8'), 'and so are its handlers')
  mkdirSync(join(PLACE, 'ratecard'))
  run(`npm pack --silent --ignore-scripts --pack-destination ${join(PLACE, 'ratecard')}`, ROOT)
  cpSync(SHOP, TEA, { recursive: true })
  writeFileSync(join(TEA, '.npmrc'), 'prefer-offline=true\naudit=false\nfund=false\n')
  t.match(serving, /ratecard serve/, 'the last line serves')
  for (const line of sh.slice(0, -1)) run(line)
  const [size = '?'] = run('du -sm node_modules').split('\t')
  const production = run('npm ls --all --parseable --omit=dev').trim().split('\n').length - 1
  const [tarball = ''] = readdirSync(join(PLACE, 'ratecard'))
  const bytes = readFileSync(join(PLACE, 'ratecard', tarball)).byteLength
  t.comment(
    `${tarball}: ${(bytes / 1e6).toFixed(1)} MB; installed: ${production} packages, ${size} MB with TypeScript`,
  )
  t.equal(
    readFileSync(join(TEA, 'handlers/catalog.ts'), 'utf8'),
    readFileSync(join(SHOP, 'handlers/catalog.ts'), 'utf8'),
    'the committed types are those of the catalog',
  )
})

t.test('a handler that misspells a parameter would be found by the first buyer', async (t) => {
  const wrong = ts.replaceAll('cups', 'cupz')
  t.not(wrong, ts)
  writeFileSync(join(TEA, 'handlers/index.ts'), wrong)
  const { code, out } = attempt('npx --no-install tsc --noEmit')
  t.not(code, 0)
  t.match(out, /handlers\/index\.ts.*'cupz' does not exist/)
  writeFileSync(join(TEA, 'handlers/index.ts'), ts)
})

const program = join(TEA, 'node_modules/ratecard/dist/main.js')

t.test('the three routes sell to a stock client in the sandbox', async (t) => {
  const args = serving.split('#')[0]?.trim().split(' ').slice(3) ?? []
  const server = await startServer({ program, cwd: TEA, args })
  t.teardown(() => server.stop())
  const { evm } = readSandboxFile(server)
  const pay = stockFetch(evm.payerKey)
  const buy = async (path: string) => {
    const response = await pay(`${server.url}${path}`)
    return { status: response.status, body: (await response.json()) as unknown }
  }
  t.match(await buy('/paid/tea/brew/sencha?cups=3'), { status: 200, body: { grams: 6 } })
  t.match(await buy('/paid/tea/blend'), { status: 200, body: { celsius: 75 } })
  t.match(await buy('/paid/tea/party'), { status: 200, body: { grams: 24 } }, 'a route without code')
  t.match(await buy('/paid/tea/brew/hay'), { status: 404, body: { charged: 'no' } })
  t.same(await witness(evm).received(evm.payTo), [5_000n, 20_000n, 40_000n], 'what the chain says')
  const sample = await fetch(`${server.url}/sample/tea/blend`)
  t.equal(sample.status, 200)
  const openapi = await (await fetch(`${server.url}/openapi.json`)).json()
  t.match(openapi, { paths: { '/paid/tea/brew/{leaf}': {}, '/paid/tea/blend': {}, '/paid/tea/party': {} } })
})

t.test('a program that composes the service by the public door is paid, once', async (t) => {
  const chain = await startBase()
  t.teardown(() => chain.stop())
  const [settler, payee, payer] = [randomKey(), addressOf(randomKey()), randomKey()]
  await chain.setGas(addressOf(settler), 10n ** 18n)
  await chain.mint(addressOf(payer), 1_000_000n)
  const server = await startServer({
    program: join(TEA, 'dist/serve.js'),
    cwd: TEA,
    env: { PORT: '0', PAY_TO: payee, SETTLER_PRIVATE_KEY: settler, RPC_URL_8453: chain.rpcUrl },
  })
  t.teardown(() => server.stop())
  const response = await stockFetch(payer)(`${server.url}/paid/tea/brew/assam`)
  t.equal(response.status, 200)
  t.match(await response.json(), { leaf: 'assam', celsius: 95 })
  t.same(await witness(chain).received(payee), [5_000n])
  t.equal(await server.stop(), 0, 'it ends by itself once it is told to')
})

t.test('the service in the box can be served from the package', async (t) => {
  const catalog = join(TEA, 'node_modules/ratecard/catalog.yaml')
  const server = await startServer({
    program,
    cwd: TEA,
    args: ['--sandbox', '--offline', '--catalog', catalog],
  })
  t.teardown(() => server.stop())
  const { evm } = readSandboxFile(server)
  // Both read dated tables, from where the package has them.
  const pay = stockFetch(evm.payerKey)
  const occasions = await pay(`${server.url}/paid/util/occasion`)
  t.equal(occasions.status, 200)
  t.equal((await fetch(`${server.url}/sample/util/platform-spec`)).status, 200)
})
