import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { startBase, onchainClient } from '../support/base-chain.ts'
import { openFacilitator } from '../support/facilitator.ts'
import { blocksOf, ROOT } from '../support/markdown.ts'
import { addressOf, randomKey, stockFetch } from '../support/payment.ts'
import { Session } from './support/terminal-session.ts'
import { type readSandboxFile, startServer } from '../support/server.ts'

const PLACE = mkdtempSync(join(tmpdir(), 'ratecard-examples-'))
const EXAMPLES = readdirSync(join(ROOT, 'examples'))

// Twenty thousand files: what Node would do one by one takes longer than the tests.
t.teardown(() => spawnSync('rm', ['-rf', PLACE]))

function attempt(command: string, cwd = PLACE): { readonly code: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync('bash', ['-euc', command], { cwd, encoding: 'utf8' })
  return { code: status, output: `${stdout}\n${stderr}` }
}

function run(command: string, cwd = PLACE): string {
  const { code, output } = attempt(command, cwd)
  if (code !== 0) throw new Error(`${command} ended with ${code}:\n${output}`)
  return output
}

interface Manifest {
  readonly version?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

function readJson(path: string): Manifest {
  return JSON.parse(readFileSync(path, 'utf8'))
}

t.test('keeps the catalog and the code of each example under 60 lines', async (t) => {
  for (const example of EXAMPLES) {
    const files = readdirSync(join(ROOT, 'examples', example), { recursive: true, encoding: 'utf8' })
    // `handlers/catalog.ts` is generated.
    const authored = files.filter(
      (file) => /\.(?:ts|js|yaml)$/.test(file) && !/node_modules|^dist|^handlers.catalog\.ts$/.test(file),
    )
    const lines = authored.flatMap((file) =>
      readFileSync(join(ROOT, 'examples', example, file), 'utf8')
        .trimEnd()
        .split('\n'),
    )
    t.ok(lines.length < 60, `${example}: ${lines.length} lines`)
  }
})

t.test('installs the packed tarball, once for all examples', async (t) => {
  const [name = ''] = run(`npm pack --silent --ignore-scripts --pack-destination ${PLACE}`, ROOT)
    .trim()
    .split('\n')
  const tarball = `ratecard-${readJson(join(ROOT, 'package.json')).version}.tgz`
  t.equal(name, tarball)
  const manifests = EXAMPLES.map((each) => readJson(join(ROOT, 'examples', each, 'package.json')))
  const needed = manifests.flatMap(({ dependencies, devDependencies }) =>
    Object.entries({ ...dependencies, ...devDependencies }).map(
      ([dependency, range]) => `'${dependency}@${range}'`,
    ),
  )
  writeFileSync(join(PLACE, 'package.json'), '{ "name": "examples", "private": true }')
  writeFileSync(join(PLACE, '.npmrc'), 'prefer-offline=true\naudit=false\nfund=false\n')
  run(`npm install ./${tarball}`)
  const [size = '?'] = run('du -sm node_modules').split('\t')
  const packages = run('npm ls --all --parseable --omit=dev').trim().split('\n').length - 1
  const [chain = '?'] = run('du -sm node_modules/@foundry-rs').split('\t')
  const bytes = statSync(join(PLACE, tarball)).size
  t.comment(
    `${tarball}: ${(bytes / 1e6).toFixed(1)} MB; installed: ${packages} packages, ${size} MB, ${chain} of them the sandbox's chain`,
  )
  t.ok(packages <= 140, `${packages} packages`)
  t.ok(Number(size) <= 175, `${size} MB`)
  t.ok(Number(size) - Number(chain) <= 130, `${Number(size) - Number(chain)} MB without the sandbox's chain`)
  const inside = (path: string): boolean => existsSync(join(PLACE, 'node_modules', path))
  for (const path of [
    'ratecard/dist/service',
    'ratecard/src',
    'ratecard/catalog.yaml',
    'date-holidays',
    'pg',
  ])
    t.notOk(inside(path), `the framework comes without ${path}`)
  run(`npm install ${needed.join(' ')}`)
  for (const example of EXAMPLES)
    cpSync(join(ROOT, 'examples', example), join(PLACE, example), { recursive: true })
})

t.test(
  'creates a project where the package is installed, which checks, sells and tests without a flag',
  async (t) => {
    const project = join(PLACE, 'project')
    mkdirSync(project)
    cpSync(join(PLACE, '.npmrc'), join(project, '.npmrc'))
    // "npm ci" wants a lock file of all platforms, which npm writes where it finds the optional packages of all.
    const session = new Session(project, /^npm ci$/)
    t.teardown(() => session.close())
    const typed = async (command: string): Promise<string> => {
      const { code, output } = await session.run({ text: command })
      t.equal(code, 0, command, { output })
      return output
    }
    await typed('npm install ../ratecard-*.tgz')
    await typed('npx ratecard init')
    t.match(readJson(join(project, 'package.json')), {
      type: 'module',
      dependencies: { ratecard: /^file:ratecard-.*\.tgz$/ },
    })
    t.match(await typed('npx ratecard check'), /2 routes, 1 paid/)
    await typed('npm run sandbox')
    t.match(await typed('npx ratecard pay /paid/moon/2026-12-24'), /200, charged: yes[^]*full moon/)
    t.match(await typed('npm test'), /pass 1/)
    await typed('npm install')
    await typed('npm run types')
    const { jobs } = parse(readFileSync(join(project, '.github/workflows/ci.yml'), 'utf8')) as {
      readonly jobs: {
        readonly test: { readonly steps: readonly { readonly run?: string; readonly if?: string }[] }
      }
    }
    const steps = jobs.test.steps.flatMap(({ run, if: condition }) =>
      condition === undefined ? (run ?? []) : [],
    )
    t.ok(steps.length >= 3, 'the workflow')
    for (const step of steps) await typed(step)
  },
)

/** Follows the README of an example to its last command, and buys from the shop that serves then. */
for (const { example, calls } of [
  {
    example: 'tea',
    calls: [
      ['/paid/tea/brew/assam', { leaf: 'assam', celsius: 95 }, 5_000n],
      ['/paid/tea/blend', { leaves: ['sencha', 'assam'], celsius: 75 }, 20_000n],
      ['/paid/tea/party', { grams: 24 }, 40_000n],
    ],
  },
  {
    example: 'javascript',
    calls: [
      ['/paid/convert/1994?base=2', { number: 1994, digits: '11111001010' }, 1_000n],
      ['/paid/coins?tosses=20', { tosses: 20 }, 1_000n],
    ],
  },
  {
    example: 'translate',
    calls: [
      ['/paid/translate', { text: 'buen día' }, 1_500n, { text: 'good day' }],
      ['/paid/translate', { style: 'formal' }, 4_500n, { text: 'my '.repeat(1_000), style: 'formal' }],
    ],
  },
  { example: 'proxy', calls: [['/paid/stock/assam?unit=pounds', { leaf: 'assam', unit: 'pounds' }, 1_000n]] },
] as const)
  t.test(`sells the example ${example} to a stock client`, async (t) => {
    const session = new Session(join(PLACE, example))
    t.teardown(() => session.close())
    for (const block of blocksOf(`examples/${example}/README.md`)) {
      const { code, output } = await session.run(block)
      t.equal(code, 0, block.text, { output })
    }
    const { evm } = JSON.parse(
      readFileSync(join(PLACE, example, '.ratecard/sandbox.json'), 'utf8'),
    ) as ReturnType<typeof readSandboxFile>
    const before = await onchainClient(evm).received(evm.payTo)
    for (const [path, wanted, , body] of calls) {
      const headers = { 'content-type': 'application/json' }
      const init = body === undefined ? {} : { method: 'POST', headers, body: JSON.stringify(body) }
      const response = await stockFetch(evm.payerKey)(`${session.url}${path}`, init)
      t.equal(response.status, 200, path)
      t.match(await response.json(), wanted)
    }
    const received = await onchainClient(evm).received(evm.payTo)
    t.same(
      received.slice(before.length),
      calls.map(([, , price]) => price),
      'one charge each',
    )
  })

t.test('answers the example express’s own routes, and sells through a facilitator', async (t) => {
  const chain = await startBase()
  t.teardown(() => chain.stop())
  const facilitator = await openFacilitator(chain)
  t.teardown(() => facilitator.close())
  const [payee, payer] = [addressOf(randomKey()), randomKey()]
  await chain.mint(addressOf(payer), 1_000_000n)
  const server = await startServer({
    program: join(PLACE, 'express/serve.js'),
    cwd: join(PLACE, 'express'),
    env: {
      PORT: '0',
      PAY_TO: payee,
      FACILITATOR_URL: facilitator.url,
      FACILITATOR_TOKEN: facilitator.token,
    },
  })
  t.teardown(() => server.stop())
  t.match(await (await fetch(server.url)).text(), /Express application/)
  const unpaid = await fetch(`${server.url}/paid/dew-point?celsius=20&humidity=50`)
  t.equal(unpaid.status, 402)
  const paid = await stockFetch(payer)(`${server.url}/paid/dew-point?celsius=20&humidity=50`)
  t.equal(paid.status, 200)
  t.match(await paid.json(), { celsius: 9.3 })
  t.same(await onchainClient(chain).received(payee), [1_000n])
  t.equal(await server.stop(), 0, 'it ends by itself after SIGTERM')
})

t.test('starts the example express without a private key, as its README says', async (t) => {
  const session = new Session(join(PLACE, 'express'))
  t.teardown(() => session.close())
  for (const block of blocksOf('examples/express/README.md')) {
    const { code, output } = await session.run(block)
    t.equal(code, 0, block.text, { output })
  }
})

t.test('reports a misspelt parameter of a handler at compile time', async (t) => {
  const file = join(PLACE, 'tea/handlers/index.ts')
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll('cups', 'cupz'))
  const { code, output } = attempt('npx --no-install tsc --noEmit', join(PLACE, 'tea'))
  t.not(code, 0)
  t.match(output, /handlers\/index\.ts.*'cupz' does not exist/)
})
