import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { catalogText } from '../../support/catalogs.ts'
import { runLine, type Ran } from '../../support/run-command.ts'
import { runIn } from '../../support/project.ts'
import { MAIN, nodeCommand, runProgram, serveUnpaid, startServer } from '../../support/server.ts'

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
export const handlers = { tide: f, moon: f, wind: f, 'post/ask': f }
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
    runIn(folder, 'git', ...author, ...args)
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

const HIGHER_PRICE = ['price: 0.005', 'price: 0.0055'] as const
const CHEAPER = ['price: 0.010', 'price: 0.0099'] as const
const GONE = ['  /paid/wind: { price: 0.02, summary: Winds }\n', ''] as const

t.test('shows what a change means for buyers, and exits with 2 where they pay more', async (t) => {
  const { file, edit, plan } = open(t)
  const old = join(dirname(file), 'before/catalog.yaml')
  t.match(await plan('--against', old), { code: 0, out: /no difference/ })

  edit(HIGHER_PRICE)
  const raised = await plan('--against', old)
  t.equal(raised.code, 2)
  t.match(raised.out, /^~ +\/paid\/tide +0\.005000 → 0\.005500 USD \(\+10\.0 %\)$/m)
  t.match(raised.out, /^! buyers pay more for: \/paid\/tide$/m)
  t.match(raised.out, /^documents changed: .*openapi/m)
  t.notMatch(raised.out, '/paid/moon')

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
  t.match(out, /^\+ +\/paid\/star +1\.000000 USD$/m)
  t.match(out, /^~ +\/paid\/tide +0\.005000 USD$/m)

  writeFileSync(file, 'routes: [')
  t.match(await plan('--against', old), { code: 1, out: '', err: /catalog\.yaml:1:/ })
})

t.test('shows what passes to another site, or no longer', async (t) => {
  const { file, edit, plan } = open(t)
  const old = join(dirname(file), 'before/catalog.yaml')
  const passing = (site: string) => ['routes:\n', `passthrough: ${site}\nroutes:\n`] as const
  edit(passing('http://a.example'))
  t.match(await plan('--against', old), { code: 0, out: 'passthrough: none → http://a.example' })
  writeFileSync(old, readFileSync(file))
  edit(passing('{ url: http://b.example, deny: [/admin, /x] }'))
  const { out } = await plan('--against', old)
  t.match(out, 'passthrough: http://a.example → http://b.example')
  t.match(out, 'passthrough deny: none → /admin, /x')
  edit()
  t.match(await plan('--against', old), { out: 'passthrough: http://a.example → none' })
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
  const unknown = ['catalog: 1', 'catalog: 1\nunknown_parameters: refuse'] as const
  edit(unknown)
  t.match(await plan('--against', old), {
    code: 2,
    out: /unknown parameters: ignore → refuse[^]*! breaks calls with parameters that no route declares/,
  })
  edit(
    ['default: 3, maximum: 30', 'default: 3, maximum: 99'],
    ['networks: [base]', 'networks: [base, polygon]'],
  )
  const wider = await plan('--against', old, '--json')
  t.equal(wider.code, 0, 'what only allows more breaks nothing')
  t.match(JSON.parse(wider.out), { alarms: [], changes: [{ name: '/paid/tide', kind: 'changed' }] })
})

t.test('exits with 2 when a protocol is removed', async (t) => {
  const { file, edit, plan } = open(t)
  const old = join(dirname(file), 'before/catalog.yaml')
  const mpp =
    'mpp: { method: tempo, intent: charge, chain: 4217, currency: "0x20C000000000000000000000b9537d11c60E8b50" }'
  writeFileSync(
    old,
    catalogText(ROUTES).replace('x402: { networks: [base] }', (x402) => `${x402}, ${mpp}`),
  )
  edit()
  t.match(await plan('--against', old), { code: 2, out: /^! buyers can no longer pay by: mpp$/m })
  edit(['x402: { networks: [base] }', mpp])
  t.match(await plan('--against', old), { code: 2, out: /^! buyers can no longer pay by: x402$/m })
})

t.test('exits with 2 when what a list may hold is narrowed', async (t) => {
  const { file, edit, plan } = open(t)
  const old = join(dirname(file), 'before/catalog.yaml')
  const days = 'days: { type: integer, default: 3, maximum: 30 }'
  const list = (rules: string): readonly [string, string] => [days, `days: { type: string${rules} }`]
  writeFileSync(old, catalogText(ROUTES).replace(...list(', list: { max_items: 9, items: integer }')))
  for (const [rules, alarm] of [
    [', list: { max_items: 3, items: integer }', /days has a narrower maxItems/],
    [', list: { max_items: 9, items: integer, maximum: 7 }', /days has a narrower items/],
  ] as const) {
    edit(list(rules))
    const { code, out, err } = await plan('--against', old)
    t.equal(code, 2, err)
    t.match(out, alarm)
  }
})

t.test('exits with 2 when a body or an answer is of another media type', async (t) => {
  const { file, plan } = open(t)
  const ask = catalogText(`  POST /paid/ask:
    price: 0.01
    summary: Asks
    body: { media_type: text/plain }
    response: { media_type: text/csv }
`)
  const before = join(dirname(file), 'before', 'ask.yaml')
  writeFileSync(before, ask)
  for (const [from, to, alarm] of [
    ['text/plain', 'text/html', '! breaks calls of POST /paid/ask: the body is no longer text/plain'],
    ['text/csv', 'text/html', '! breaks calls of POST /paid/ask: the answer is no longer text/csv'],
  ] as const) {
    writeFileSync(file, ask.replace(from, to))
    t.match(await plan('--against', before), { code: 2, out: alarm })
  }
  const { url } = await serveUnpaid(t, before, ['--handlers', join(dirname(file), 'handlers')])
  t.match(await plan('--against', url), { code: 2, out: 'the answer is no longer text/csv' })
  writeFileSync(file, ask)
  t.match(await plan('--against', url), { code: 0, out: /no difference/ })
})

t.test(
  'finds no difference between a catalog and its own service, whatever its bodies look like',
  async (t) => {
    const { file, plan } = open(t)
    const bodies = {
      properties: `{ properties: { tags: { type: string, required: true, example: a, list: { max_items: 3 } }, ids: { type: string, list: { items: integer, max_items: 3 } }, on: { type: object }, when: { type: string, format: date }, n: { type: integer, default: 3 } } }`,
      form: `{ media_type: application/x-www-form-urlencoded, properties: { to: { type: string, required: true, example: a }, tags: { type: string, list: { max_items: 3 } } } }`,
      free: '{ media_type: application/x-www-form-urlencoded, example: { a: b } }',
      json: '{ media_type: application/json, example: { a: 1 } }',
      object: `{ schema: { type: object, description: Some, required: [a], properties: { a: { type: array, description: More, items: { $ref: '#/$defs/A' } } }, $defs: { A: { type: string } } }, example: { a: [b] } }`,
      array: '{ schema: { type: array, maxItems: 4, items: { type: string } }, example: [a] }',
      either: '{ schema: { oneOf: [{ type: object }, { type: array }] }, example: [a] }',
      text: '{ media_type: text/plain, example: a }',
      bytes: '{ media_type: image/png, max_size: 2 KB }',
    }
    const routes = Object.entries(bodies).map(
      ([name, body]) => `  POST /paid/${name}:
    { price: 0.01, summary: S, upstream: 'http://127.0.0.1:1/', body: ${body}, parameters: { q: { type: string, example: a, list: { max_items: 4 } } } }\n`,
    )
    writeFileSync(file, catalogText(routes.join('')))
    const { url } = await serveUnpaid(t, file)
    t.match(await plan('--against', url), { code: 0, out: /no difference/ })
    writeFileSync(file, catalogText(routes.join('').replace('maxItems: 4', 'maxItems: 3')))
    t.match(await plan('--against', url), { code: 2, out: 'POST /paid/array: body has a narrower maxItems' })
  },
)

t.test('names a changed default, host, cache and a removed sample by what they cost buyers', async (t) => {
  const { file, edit, plan } = open(t)
  const before = join(dirname(file), 'before/catalog.yaml')
  edit(['default: 3', 'default: 4'])
  t.match(await plan('--against', before), {
    code: 2,
    out: '! breaks calls of /paid/tide: days has another default',
  })
  edit(['    sample: true\n', ''])
  t.match(await plan('--against', before), { code: 2, out: '! buyers lose: /sample/tide' })
  const proxy = (more: string): string =>
    catalogText(`  /paid/a: { price: 0.01, summary: S, upstream: 'https://a.example/x'${more} }\n`)
  writeFileSync(before, proxy(', cache: 5m'))
  writeFileSync(file, proxy(', cache: 5m').replace('a.example', 'b.example'))
  t.match(await plan('--against', before), { code: 0, out: '~ upstream host: a.example → b.example' })
  writeFileSync(file, proxy(', cache: 1h'))
  t.match(await plan('--against', before), {
    code: 2,
    out: /~ cache: 5m → 1h\n[^]*! breaks calls of \/paid\/a: answers may be 1h old/,
  })
  writeFileSync(file, proxy(''))
  t.match(await plan('--against', before), { code: 0, out: '~ cache: 5m → none' })
})

t.test('finds no difference to a sandbox of the same catalog', async (t) => {
  const { plan, file } = open(t)
  const handlers = ['--handlers', join(dirname(file), 'handlers')]
  const catalog = ['--catalog', join(dirname(file), 'before/catalog.yaml')]
  const server = await startServer({ args: ['--sandbox', ...catalog, ...handlers] })
  t.teardown(() => server.stop())
  t.match(await plan('--against', server.url), { code: 0, out: /no difference/ })
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
  edit(HIGHER_PRICE)
  t.equal((await plan()).code, 2)
  git('commit', '--quiet', '--all', '--message', 'second')
  t.equal((await plan()).code, 0)
  const built = await runProgram(['plan', file, '--against', 'v1'])
  t.equal(built.code, 2)
  t.match(built.stdout, '! buyers pay more for: /paid/tide')
  t.match(await plan('--against', '--output=x'), { code: 64 })
  t.match(await plan('--against=--output=x'), { code: 1, err: /no name of a commit/ })
  git('rm', '--quiet', 'catalog.yaml')
  git('commit', '--quiet', '--message', 'third')
  edit()
  t.match(await plan(), { code: 1, err: /HEAD has no .*catalog\.yaml/ })
})

t.test('says that a clone is shallow when it lacks the commit to compare with', async (t) => {
  const { file, git } = open(t)
  git('init', '--quiet')
  git('add', '.')
  git('commit', '--quiet', '--message', 'first')
  git('tag', 'v1')
  git('commit', '--quiet', '--allow-empty', '--message', 'second')
  const clone = dirname(file)
  runIn(clone, 'git', 'clone', '--quiet', '--depth=1', `file://${clone}`, 'shallow')
  const { code, err } = await runLine(['plan', join(clone, 'shallow/catalog.yaml'), '--against', 'v1'])
  t.equal(code, 1)
  t.match(err, /v1 is neither .*; this clone is shallow: "git fetch --unshallow" .*fetch-depth: 0/)
})

interface ActionStep {
  readonly if?: string
  readonly env: Readonly<Record<string, string>>
  readonly run: string
}

/** The steps of action.yml as GitHub runs them, in a checkout of one commit. */
function runAction(checkout: string, inputs: Readonly<Record<string, string>>, baseRef: string) {
  const action = parse(readFileSync(new URL('../../../action.yml', import.meta.url), 'utf8')) as {
    readonly inputs: Readonly<Record<string, { readonly default: string }>>
    readonly runs: { readonly steps: readonly ActionStep[] }
  }
  const given: Record<string, string> = { 'github.base_ref': baseRef }
  for (const [name, { default: preset }] of Object.entries(action.inputs))
    given[`inputs.${name}`] = inputs[name] ?? preset
  const summary = join(checkout, '.git/summary')
  let output = ''
  for (const step of action.runs.steps) {
    if (step.if === "inputs.against == ''" && given['inputs.against'] !== '') continue
    const env = Object.entries(step.env).map(([name, value]) => [
      name,
      value.replace(/\$\{\{ ([\w.]+) \}\}/g, (_, place: string) => given[place] ?? `no ${place}`),
    ])
    const { status, stdout, stderr } = spawnSync('bash', ['-eo', 'pipefail', '-c', step.run], {
      cwd: checkout,
      env: { ...process.env, ...Object.fromEntries(env), GITHUB_STEP_SUMMARY: summary },
      encoding: 'utf8',
    })
    output += stdout + stderr
    if (status !== 0) return { status, output, summary: read(summary) }
  }
  return { status: 0, output, summary: read(summary) }
}

function read(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

t.test('fails a pull request that breaks calls and shows the plan, as a GitHub Action', async (t) => {
  const { file, edit, git } = open(t)
  git('init', '--quiet', '--initial-branch', 'main')
  git('add', '.')
  git('commit', '--quiet', '--message', 'first')
  git('checkout', '--quiet', '-b', 'change')
  const ratecard = nodeCommand([MAIN]).flat().join(' ')
  let checkouts = 0
  const checkout = (): string => {
    checkouts += 1
    const [origin, name] = [dirname(file), `checkout-${checkouts}`]
    const options = ['--quiet', '--depth=1', '--branch', 'change']
    runIn(origin, 'git', 'clone', ...options, `file://${origin}`, name)
    return join(origin, name)
  }
  edit(HIGHER_PRICE)
  git('commit', '--quiet', '--all', '--message', 'raise')
  const raised = runAction(checkout(), { ratecard }, 'main')
  t.equal(raised.status, 2, raised.output)
  t.match(raised.output, /^::warning file=catalog\.yaml::This change breaks calls or raises a price/m)
  t.match(raised.summary, /```\n[^]*! buyers pay more for: \/paid\/tide\n```/)
  t.match(runAction(checkout(), { ratecard, breaking: 'warn' }, 'main'), { status: 0, output: /::warning/ })
  t.match(runAction(checkout(), { ratecard }, ''), { status: 2 }, 'a push is compared with the commit before')
  t.match(runAction(checkout(), { ratecard, against: 'HEAD' }, 'main'), {
    status: 0,
    summary: /no difference/,
  })
  edit(CHEAPER)
  git('commit', '--quiet', '--all', '--message', 'lower')
  t.match(runAction(checkout(), { ratecard }, 'main'), { status: 0, summary: /0\.009900 USD/ })
})

t.test('compares a catalog with the running service', async (t) => {
  const { file, edit, plan } = open(t)
  const handlers = ['--handlers', join(dirname(file), 'handlers')]
  const server = await serveUnpaid(t, join(dirname(file), 'before/catalog.yaml'), handlers)
  t.match(await plan('--against', server.url), { code: 0, out: /no difference/ })
  edit(['networks: [base]', 'networks: [base, polygon]'])
  t.match(
    await plan('--against', server.url),
    { code: 0, out: /no difference/ },
    'it offers the networks it can settle on, and its catalog may have more',
  )
  for (const [from, to, alarm] of [
    ['networks: [base]', 'networks: [polygon]', 'buyers can no longer pay by: eip155:8453'],
    ['./tide.json', '{ low: "00:12" }', 'breaks calls of /paid/tide: the answer loses high'],
    ['maximum: 30', 'maximum: 7', 'days has a narrower maximum'],
  ] as const) {
    edit([from, to])
    t.match(await plan('--against', server.url), { code: 2, out: alarm })
  }
  edit(HIGHER_PRICE, CHEAPER, GONE, [
    'days: { type: integer, default: 3',
    'days: { type: integer, default: 5',
  ])
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

const RULE =
  '{ base: 0.001, per: { characters_of: port, unit: 100, price: 0.0005 }, by: { sea: { high: 0.01 } } }'
const COMPUTED = catalogText(`  /paid/tide:
    price: ${RULE}
    summary: Tides
    example: ./tide.json
    parameters:
      port: { type: string, required: true, example: Oslo }
      sea: { type: string, enum: [low, high], default: low }
`)

t.test('compares rules by range and by calls, and names the argument whose price rises', async (t) => {
  const { file, plan } = open(t)
  const before = join(dirname(file), 'before', 'computed.yaml')
  writeFileSync(before, COMPUTED)
  const against = async (...change: readonly [string, string]): Promise<Ran> => {
    writeFileSync(file, COMPUTED.replace(...change))
    return plan('--against', before)
  }
  const raised = await against('price: 0.0005', 'price: 0.0006')
  t.equal(raised.code, 2)
  t.match(raised.out, /0\.001000 to 0\.021000 USD \(.*\) → 0\.001000 to 0\.023000 USD/)
  t.match(raised.out, '     ↑ port = 100: 0.001500 → 0.001600 USD')
  t.match(raised.out, '! buyers pay more for: /paid/tide (by port)')

  const other = await against('high: 0.01', 'high: 0.02')
  t.equal(other.code, 2)
  t.match(other.out, '↑ sea = high: 0.011000 → 0.021000 USD')
  t.notMatch(other.out, '↑ port')

  const base = await against('base: 0.001', 'base: 0.002')
  t.equal(base.code, 2)
  t.match(base.out, '↑ the cheapest call: 0.001000 → 0.002000 USD')
  t.notMatch(base.out, /↑ (port|sea)/)

  const capped = await against(' } }\n    summary', ' }, max: 0.02 }\n    summary')
  t.equal(capped.code, 0, 'cheaper')
  const fixed = await against(RULE, '0.0115')
  t.equal(fixed.code, 2, 'short texts cost more than before, although the highest price falls')
  t.match(fixed.out, '↑ the cheapest call: 0.001000 → 0.011500 USD')
  t.equal((await against('Tides', 'Tides')).code, 0)
})

t.test('reads the rule of a running service', async (t) => {
  const { file, plan } = open(t)
  const served = join(dirname(file), 'before', 'computed.yaml')
  for (const each of [file, served]) writeFileSync(each, COMPUTED)
  const server = await serveUnpaid(t, served, ['--handlers', join(dirname(file), 'handlers')])
  t.match(await plan('--against', server.url), { code: 0 })
  writeFileSync(file, COMPUTED.replace('unit: 100', 'unit: 50'))
  const raised = await plan('--against', server.url)
  t.equal(raised.code, 2)
  t.match(raised.out, '↑ port = 100: 0.001500 → 0.002000 USD')
})
