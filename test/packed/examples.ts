import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { startBase, witness } from '../support/base-chain.ts'
import { openFacilitator } from '../support/facilitator.ts'
import { blocksOf, ROOT } from '../support/markdown.ts'
import { addressOf, randomKey, stockFetch } from '../support/payment.ts'
import { Session } from '../support/session.ts'
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
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

t.test('installs the packed tarball, once for all examples', async (t) => {
  const [name = ''] = run(`npm pack --silent --ignore-scripts --pack-destination ${PLACE}`, ROOT)
    .trim()
    .split('\n')
  const tarball = `ratecard-${(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version}.tgz`
  t.equal(name, tarball)
  const manifests = EXAMPLES.map(
    (each) => JSON.parse(readFileSync(join(ROOT, 'examples', each, 'package.json'), 'utf8')) as Manifest,
  )
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

t.test('installs, checks and tests a project of the packed init without a flag', async (t) => {
  run('npx --no-install ratecard init project && cp .npmrc project')
  const project = join(PLACE, 'project')
  const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as Manifest
  t.match(manifest.dependencies?.['ratecard'], /^file:ratecard-.*\.tgz$/)
  run('npm install', project)
  t.match(run('npm run check', project), /2 routes, 1 paid/)
  t.match(run('npm test', project), /pass 1/)
  run('npm run types', project)
})

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
      ['/paid/roman/1994', { number: 1994, roman: 'MCMXCIV' }, 1_000n],
      ['/paid/dice?sides=2&rolls=20', { sides: 2 }, 1_000n],
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
    const before = await witness(evm).received(evm.payTo)
    for (const [path, wanted] of calls) {
      const response = await stockFetch(evm.payerKey)(`${session.url}${path}`)
      t.equal(response.status, 200, path)
      t.match(await response.json(), wanted)
    }
    const received = await witness(evm).received(evm.payTo)
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
  t.same(await witness(chain).received(payee), [1_000n])
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
