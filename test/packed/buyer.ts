import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import t, { type Test } from 'tap'
import { pack } from '../../release/packages.ts'
import { run } from '../../release/shell.ts'
import { onchainClient } from '../support/base-chain.ts'
import { writeShop } from '../support/catalogs.ts'
import { addressOf } from '../support/payment.ts'
import { readSandboxFile, runProgram, startServer } from '../support/server.ts'

const PLACE = mkdtempSync(join(tmpdir(), 'ratecard-buyer-'))
t.teardown(() => rmSync(PLACE, { recursive: true, force: true }))

const INSTALLED = join(PLACE, 'node_modules/ratecard-buyer')
const PROGRAM = join(INSTALLED, 'dist/main.js')
const HEAD = `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] }, mpp: { method: tempo, intent: charge, chain: 4217, currency: '0x20C000000000000000000000b9537d11c60E8b50' } }
documents: { index: /, health: /health, openapi: /openapi.json }
mcp_servers: { shop: { title: Greetings } }
`
const ROUTES = `  /paid/greet: { price: 0.01, summary: Greets, parameters: { name: { type: string, minLength: 2 } }, example: { greeting: Hello }, tool: shop.greet }
`

interface Component {
  readonly name: string
  readonly version: string
  readonly purl: string
}

/** Installs the packed tarball in an empty folder, as npx does. */
function install(): void {
  const { tarball } = pack('src/buyer', PLACE)
  writeFileSync(join(PLACE, 'package.json'), '{ "private": true }')
  run(`npm install --offline ${tarball}`, PLACE)
}

const shop = writeShop(t, ROUTES, HEAD)
const server = await startServer({
  args: ['--sandbox', '--catalog', shop.catalog, '--handlers', shop.handlers],
})
t.teardown(() => server.stop())
const { evm } = readSandboxFile(server)
const onchain = onchainClient(evm)
const charges = (): Promise<number> => onchain.charges(addressOf(evm.payerKey))
install()

t.test('installs as one package of a few megabytes, without a server and a chain', async (t) => {
  const packages = run('npm ls --all --parseable', PLACE).trim().split('\n').length - 1
  const megabytes = Number(run('du -sm node_modules', PLACE).split('\t')[0])
  t.comment(`${packages} package, ${megabytes} MB`)
  t.ok(packages <= 40, `${packages} packages`)
  t.ok(megabytes <= 25, `${megabytes} MB`)
  t.same(readdirSync(INSTALLED).toSorted(), ['LICENSE', 'NOTICE', 'README.md', 'dist', 'package.json'])
  for (const name of ['koa', 'lmdb', 'ioredis', '@foundry-rs'])
    t.notOk(existsSync(join(PLACE, 'node_modules', name)), name)
})

t.test('lists what is bundled, with licences', async (t) => {
  const { bomFormat, components } = JSON.parse(readFileSync(join(INSTALLED, 'dist/sbom.json'), 'utf8')) as {
    readonly bomFormat: string
    readonly components: readonly Component[]
  }
  t.equal(bomFormat, 'CycloneDX')
  const licences = readFileSync(join(INSTALLED, 'dist/LICENSES.txt'), 'utf8')
  for (const { name, version, purl } of components) {
    t.equal(purl, `pkg:npm/${name.replace('@', '%40')}@${version}`)
    t.match(licences, `${name} ${version}\n`)
  }
  const names = components.map(({ name }) => name)
  for (const name of ['viem', 'mppx', '@modelcontextprotocol/server']) t.ok(names.includes(name), name)
  for (const name of ['koa', 'lmdb', 'undici', 'ioredis']) t.notOk(names.includes(name), name)
})

t.test('pays a sandbox shop over HTTP, by x402 and by MPP', async (t) => {
  const pay = (
    argv: readonly string[],
    env: Readonly<Record<string, string>> = { DATA_DIR: server.dataDir },
  ) => runProgram(['pay', ...argv, '--json'], env, PROGRAM)
  const paid = await pay(['/paid/greet?name=Ann', '--max', '0.01'])
  t.equal(paid.code, 0, paid.stderr)
  t.match(JSON.parse(paid.stdout), {
    status: 200,
    charged: 'yes',
    protocol: 'x402',
    amount: '0.010000',
    transaction: /^0x/,
    body: { greeting: 'Hello Ann' },
  })
  const byMpp = await pay(['/paid/greet?name=Bob', '--protocol', 'mpp', '--max', '0.01'])
  t.match(JSON.parse(byMpp.stdout), { status: 200, charged: 'yes', protocol: 'mpp', transaction: /^0x/ })
  const before = await charges()
  t.equal((await pay(['/paid/greet?name=Cyd', '--max', '0.009'])).code, 3, 'too expensive')
  const wallet = { PAYER_PRIVATE_KEY: evm.payerKey, DATA_DIR: t.testdirName }
  t.equal((await pay([`${server.url}/paid/greet?name=Dan`], wallet)).code, 3, 'no limit')
  t.equal((await pay(['/paid/greet?name=x', '--max', '0.01'])).code, 4, 'refused')
  t.equal(await charges(), before)
})

/** The program behind the official client, as a desktop application starts it. */
async function connect(t: Test, limits: readonly string[]): Promise<Client> {
  const folder = t.testdir()
  mkdirSync(join(folder, 'state'))
  const client = new Client({ name: 'test', version: '1' })
  const args = [PROGRAM, 'mcp', server.url, ...limits, '--data-dir', join(folder, 'state')]
  const env = { PATH: process.env['PATH'] ?? '', DATA_DIR: server.dataDir }
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args, env, cwd: folder, stderr: 'ignore' }),
  )
  t.teardown(() => client.close())
  return client
}

t.test('is an MCP server that pays within the budget of all calls', async (t) => {
  const client = await connect(t, ['--max-per-call', '0.01', '--max', '0.02'])
  const { tools } = await client.listTools()
  t.same(
    tools.map(({ name }) => name),
    ['greet'],
  )
  const before = await charges()
  const greet = (name: string) => client.callTool({ name: 'greet', arguments: { name } })
  for (const name of ['Eve', 'Fay']) {
    const bought = await greet(name)
    t.match(bought, { structuredContent: { greeting: `Hello ${name}` } })
    t.match(bought._meta?.['ratecard/receipt'], { amount: '0.01', charged: 'yes', transaction: /^0x/ })
  }
  t.match(await greet('Gus'), { isError: true, content: [{ text: /the budget of 0\.02 USD .*--max\.$/ }] })
  t.equal((await charges()) - before, 2)
})

t.test('is an MCP server that refuses a call above the limit of one', async (t) => {
  const client = await connect(t, ['--max-per-call', '0.009', '--max', '1'])
  const before = await charges()
  const refused = await client.callTool({ name: 'greet', arguments: { name: 'Hal' } })
  t.match(refused, { isError: true, content: [{ text: /more than the 0\.009 USD allowed for one call/ }] })
  t.equal(await charges(), before)
})
