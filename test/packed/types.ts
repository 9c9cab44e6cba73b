import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../support/markdown.ts'

const PLACE = mkdtempSync(join(tmpdir(), 'ratecard-types-'))
t.teardown(() => rmSync(PLACE, { recursive: true, force: true }))

function run(command: string, cwd: string): string {
  const { status, stdout, stderr } = spawnSync('bash', ['-euc', command], { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ended with ${status}:\n${stdout}\n${stderr}`)
  return stdout
}

function pack(folder: string): string {
  const packed = run(`npm pack --silent --ignore-scripts --pack-destination ${PLACE}`, folder)
  return `./${packed.trim().split('\n').at(-1) ?? ''}`
}

/** Uses every entry point of the package. */
const CONSUMER = `import { createServer } from 'node:http'
import { createRatecard, defineService, type Ratecard, type ServiceStores } from 'ratecard'
import { Failure, type HandlerMap } from 'ratecard/handler'
import { requirementsOf, type Micros, type NetworkOffer } from 'ratecard/scheme'
import { startTestServer } from 'ratecard/testing'

interface Notes extends ServiceStores {
  readonly notes: readonly string[]
}

export const service = defineService({
  env: (variables) => ({ greeting: variables.text('GREETING') ?? 'Hello' }),
  stores: async ({ settings }): Promise<Notes> => ({
    notes: [settings.greeting],
    lines: [],
    unavailable: {},
    close: async () => undefined,
  }),
  handlers: ({ stores }) => ({
    hello: async ({ name }: { readonly name: string }) => {
      const [greeting] = stores().notes
      if (greeting === undefined) throw new Failure('not_found', 'there is no greeting')
      return { source: [], body: { text: \`\${greeting} \${name}\` } }
    },
  }),
})
const handlers: HandlerMap = { bye: async () => ({ source: [], body: { text: 'Bye' } }) }
const app: Ratecard = await createRatecard({
  catalog: 'catalog.yaml',
  baseUrl: 'https://api.example.com',
  basePath: '/shop',
  service,
  handlers,
  secrets: process.env,
})
app.koa.use((ctx, next) => (ctx.path === '/' ? undefined : next()))
createServer(app.callback()).listen(4021)
export const offer = (each: NetworkOffer, price: Micros) => requirementsOf(each, price, 'after')
export const test = async (): Promise<bigint> => (await startTestServer({ catalog: 'catalog.yaml' })).received()
`

const OPTIONS = {
  target: 'es2023',
  module: 'nodenext',
  types: ['node'],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  noEmit: true,
}

t.test('compiles in a strict project that checks the types of its packages', async (t) => {
  const packages = [pack(ROOT), pack(join(ROOT, 'src/buyer'))]
  writeFileSync(join(PLACE, 'package.json'), '{ "private": true, "type": "module" }')
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly devDependencies: Readonly<Record<string, string>>
  }
  const node = `@types/node@${devDependencies['@types/node'] ?? ''}`
  run(`npm install --prefer-offline --no-audit --no-fund ${packages.join(' ')} '${node}'`, PLACE)
  writeFileSync(join(PLACE, 'consumer.ts'), CONSUMER)
  writeFileSync(
    join(PLACE, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: OPTIONS, files: ['consumer.ts'] }),
  )
  const compiler = join(ROOT, 'node_modules/.bin/tsc')
  const { status, stdout } = spawnSync(compiler, ['-p', PLACE, '--listFiles'], { encoding: 'utf8' })
  const lines = stdout.trim().split('\n')
  t.strictSame(
    lines.filter((line) => !line.startsWith('/')),
    [],
  )
  t.equal(status, 0)
  const root = join(realpathSync(PLACE), 'node_modules/ratecard')
  const declarations = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.startsWith('dist/') && name.endsWith('.d.ts'))
    .map((name) => join(root, name))
  t.ok(declarations.length > 0)
  t.strictSame(
    declarations.filter((file) => !lines.includes(file)),
    [],
    'an entry point leads to each declaration',
  )
})
