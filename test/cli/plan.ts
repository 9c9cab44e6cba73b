import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { catalogText } from '../support/catalog-files.ts'
import { runLine, type Ran } from '../support/command.ts'
import { randomKey } from '../support/payment.ts'
import { runProgram, startServer } from '../support/server.ts'

t.setTimeout(120_000)

const ROUTES = `  /paid/tide:
    price: 0.005
    summary: Tides
    example: ./tide.json
    sample: true
    parameters:
      port: { type: string, required: true, example: Oslo, description: Where }
      days: { type: integer, default: 3, maximum: 30 }
  /paid/moon: { price: 0.010, summary: Moons }
  /paid/wind: { price: 0.02, summary: Winds }
`

const HANDLERS = `const f = async () => ({ source: [], body: {} })
export const handlers = { tide: f, moon: f, wind: f }
`

interface Folder {
  readonly file: string
  /** Writes the catalog with some of its words changed. */
  readonly edit: (...changes: readonly (readonly [string, string])[]) => void
  readonly plan: (...argv: string[]) => Promise<Ran>
  readonly git: (...args: string[]) => void
}

function open(t: Test): Folder {
  const files = { 'catalog.yaml': catalogText(ROUTES), 'tide.json': '{"high":"06:12"}' }
  const folder = t.testdir({ ...files, before: files, handlers: { 'index.js': HANDLERS } })
  const file = join(folder, 'catalog.yaml')
  const git = (...args: string[]): void => {
    const author = ['-c', 'user.name=O', '-c', 'user.email=o@example.com']
    execFileSync('git', ['-C', folder, ...author, ...args], { stdio: 'pipe' })
  }
  return {
    file,
    git,
    edit: (...changes) => {
      const text = changes.reduce((before, [from, to]) => before.replace(from, to), catalogText(ROUTES))
      writeFileSync(file, text)
    },
    plan: (...argv) => runLine(['plan', file, ...argv]),
  }
}

const DEARER = ['price: 0.005', 'price: 0.0055'] as const
const CHEAPER = ['price: 0.010', 'price: 0.0099'] as const
const GONE = ['  /paid/wind: { price: 0.02, summary: Winds }\n', ''] as const

t.test('shows what a change means for buyers, and exits with 2 where they pay more', async (t) => {
  const { file, edit, plan } = open(t)
  const old = join(dirname(file), 'before/catalog.yaml')
  t.match(await plan('--against', old), { code: 0, out: /no difference/ })

  edit(DEARER)
  const dearer = await plan('--against', old)
  t.equal(dearer.code, 2)
  t.match(dearer.out, /^~ +\/paid\/tide +0\.005000 → 0\.005500 USD \(\+10\.0 %\) +\d+ B$/m)
  t.match(dearer.out, /^! buyers pay more for: \/paid\/tide$/m)
  t.match(dearer.out, /^documents changed: .*openapi/m)
  t.notMatch(dearer.out, '/paid/moon')

  edit(CHEAPER)
  t.match(await plan('--against', old), { code: 0, out: /0\.010000 → 0\.009900 USD \(-1\.0 %\)/ })

  edit(GONE)
  t.match(await plan('--against', old), {
    code: 2,
    out: /^-  \/paid\/wind +0\.020000 USD\n[^]*! buyers lose: \/paid\/wind/m,
  })

  edit(['/paid/wind: { price: 0.02', '/wind: { handler: wind, price: free'])
  t.match(await plan('--against', old), { code: 2, out: /\+ +\/wind +free[^]*- +\/paid\/wind/ })

  edit(
    ['required: true, example: Oslo, description: Where', 'default: Oslo, description: Which'],
    ['days: { type: integer, default: 3, maximum: 30 }', 'to: { type: boolean }'],
    ['networks: [base]', 'networks: [base, polygon]'],
    ['llms: /llms.txt', 'docs: /docs'],
    ['/paid/moon', '/paid/star: { price: 1, summary: S }\n  /paid/moon'],
  )
  const { code, out } = await plan('--against', old)
  t.equal(code, 2)
  for (const line of [
    '! breaks calls of /paid/tide: days is removed',
    '~ port: { type: string, maxLength: 2000, required: true } → { type: string, default: Oslo, maxLength: 2000 }',
    '- days: { type: integer, default: 3, maximum: 30 }',
    '+ to: { type: boolean }',
    'payments x402: eip155:8453 → eip155:8453, eip155:137',
    'documents added: docs',
    'documents removed: llms',
  ])
    t.match(out, line)
  t.match(out, /^\+ +\/paid\/star +1\.000000 USD +\d+ B$/m)
  t.match(out, /^~ +\/paid\/tide +0\.005000 USD +\d+ → \d+ B$/m, 'a challenge grows with a network')
  t.match(out, /^largest header: \d+ of 2900 bytes, at \/paid\//m)

  writeFileSync(file, 'routes: [')
  t.match(await plan('--against', old), { code: 1, out: '', err: /catalog\.yaml:1:/ })
})

t.test('exits with 2 for every change that breaks calls, and names each', async (t) => {
  const { file, edit, plan } = open(t)
  const old = join(dirname(file), 'before/catalog.yaml')
  const summary = 'summary: Tides'
  for (const [from, to, alarm] of [
    ['default: 3, maximum: 30', 'maximum: 30, required: true, example: 2', 'days is required'],
    ['default: 3, maximum: 30', 'default: 3, maximum: 7', 'days has a narrower maximum'],
    ['default: 3, maximum: 30', 'default: 3, enum: [1, 3]', 'days has a narrower enum'],
    ['type: integer, default: 3, maximum: 30', 'type: string, default: "3"', 'days has a narrower type'],
    ['      days: { type: integer, default: 3, maximum: 30 }\n', '', 'days is removed'],
    [summary, `${summary}\n    settle: upfront`, 'charged before the work'],
    ['./tide.json', '{ low: "00:12" }', 'the answer loses high'],
    ['networks: [base]', 'networks: [polygon]', 'buyers can no longer pay by: eip155:8453'],
  ] as const) {
    edit([from, to])
    const { code, out } = await plan('--against', old)
    t.equal(code, 2, alarm)
    t.match(out, new RegExp(`^! .*${alarm}`, 'm'))
  }
  edit(
    ['default: 3, maximum: 30', 'default: 3, maximum: 99'],
    ['networks: [base]', 'networks: [base, polygon]'],
  )
  const wider = await plan('--against', old, '--json')
  t.equal(wider.code, 0, 'what only allows more breaks nothing')
  t.match(JSON.parse(wider.out), { alarms: [], changes: [{ name: '/paid/tide', kind: 'changed' }] })
})

t.test('compares the price of a tool that only agents see', async (t) => {
  const shop = (price: string): string => `${catalogText(ROUTES)}mcp_servers: { sea: { title: Sea } }
tools:
  sounding: { server: sea, price: ${price}, summary: Depth of the sea at a place }
`
  const { file, plan } = open(t)
  const old = join(dirname(file), 'before/catalog.yaml')
  writeFileSync(old, shop('0.01'))
  writeFileSync(file, shop('0.012'))
  const { code, out } = await plan('--against', old)
  t.equal(code, 2)
  t.match(out, /~ +tool sea\.sounding +0\.010000 → 0\.012000 USD \(\+20\.0 %\)/)
  writeFileSync(file, shop('free'))
  t.match(await plan('--against', old), { code: 2, out: /! given away from now on: tool sea\.sounding/ })
})

t.test('compares a price with a commit and the files of that commit', async (t) => {
  const { edit, plan, git, file } = open(t)
  t.match(await plan('--against', 'nowhere'), { code: 1, err: /nowhere/ })
  git('init', '--quiet')
  t.match(await plan(), { code: 1, err: /HEAD is neither a file, a URL nor a commit/ })
  git('add', '.')
  git('commit', '--quiet', '--message', 'first')
  git('tag', 'v1')
  t.match(await plan(), { code: 0, out: /against HEAD\nno difference/ })
  writeFileSync(join(file, '../tide.json'), '{"high":"07:12"}')
  t.match(
    await plan(),
    { code: 0, out: /documents changed: .*openapi/ },
    'an example is part of what buyers read',
  )
  edit(DEARER)
  t.equal((await plan()).code, 2)
  git('commit', '--quiet', '--all', '--message', 'second')
  t.equal((await plan()).code, 0)
  const built = await runProgram(['plan', file, '--against', 'v1', '--markdown'])
  t.equal(built.code, 2)
  t.match(built.stdout, '| ~ | `/paid/tide` | 0.005000 → 0.005500 USD (+10.0 %) |')
  t.match(built.stdout, '**buyers pay more for: /paid/tide**')
  t.match(await plan('--against', '--output=x'), { code: 64 })
  t.match(await plan('--against=--output=x'), { code: 1, err: /no name of a commit/ })
  git('rm', '--quiet', 'catalog.yaml')
  git('commit', '--quiet', '--message', 'third')
  edit()
  t.match(await plan(), { code: 1, err: /HEAD has no .*catalog\.yaml/ })
})

t.test('compares a catalog with the running service', async (t) => {
  const { file, edit, plan } = open(t)
  const server = await startServer({
    args: [
      '--catalog',
      join(dirname(file), 'before/catalog.yaml'),
      '--handlers',
      join(dirname(file), 'handlers'),
    ],
    env: {
      HOST: '127.0.0.1',
      PAY_TO: `0x${'1'.repeat(40)}`,
      SETTLER_PRIVATE_KEY: randomKey(),
      RPC_URL_8453: 'http://127.0.0.1:1',
    },
  })
  t.teardown(() => server.stop())
  t.match(await plan('--against', server.url), { code: 0, out: /no difference/ })
  edit(DEARER, CHEAPER, GONE, ['days: { type: integer, default: 3', 'days: { type: integer, default: 5'])
  const { code, out } = await plan('--against', `${server.url}/openapi.json`)
  t.equal(code, 2)
  t.match(out, /\/paid\/tide +0\.005000 → 0\.005500 USD \(\+10\.0 %\)/)
  t.match(
    out,
    '~ days: { type: integer, default: 3, maximum: 30 } → { type: integer, default: 5, maximum: 30 }',
  )
  t.match(out, /\/paid\/moon +0\.010000 → 0\.009900 USD/)
  t.match(out, '! buyers lose: /paid/wind')
  await server.stop()
  t.match(await plan('--against', server.url), {
    code: 1,
    out: '',
    err: /cannot be reached: nothing listens there/,
  })
  t.equal(readFileSync(file, 'utf8').includes('0.0055'), true, 'a plan changes nothing')
})
