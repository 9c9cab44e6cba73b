import { spawnSync } from 'node:child_process'
import t from 'tap'
import { MAIN, nodeCommand } from '../../support/server.ts'

const SERVICE = `
export const service = {
  env: (variables) => {
    const kettle = variables.text('TEA_KETTLE') ?? 'iron'
    if (kettle === 'paper') variables.problem('TEA_KETTLE', 'must not burn')
    return { kettle }
  },
  commands: [
    {
      name: 'tea brew',
      summary: 'brew one cup',
      operands: [],
      options: { leaf: { value: 'NAME', text: 'required' } },
      examples: ['ratecard tea brew --leaf assam'],
      run: async ({ flags, terminal, context, misuse, table }) => {
        const leaf = flags.text('leaf')
        if (leaf === undefined) throw misuse('--leaf takes a name')
        terminal.out(table([[leaf, context.settings.kettle]]))
        return 0
      },
    },
  ],
  handlers: async () => ({ tea: async () => ({ source: [], body: { tea: 'assam' } }) }),
}
`
const CATALOG = `
catalog: 1
service: { name: Tea, version: '1.0.0', description: Sells tea }
payments: { currency: USD, x402: { networks: [base] } }
routes:
  /paid/tea: { price: 0.01, summary: Tea, handler: tea, example: { tea: assam } }
`

function ratecard(cwd: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { status, stdout, stderr } = spawnSync(...nodeCommand([MAIN, ...args]), {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', ...env },
    encoding: 'utf8',
  })
  return { code: status, stdout, stderr }
}

t.test('gives a project the commands, variables and handlers of its own service', async (t) => {
  const project = t.testdir({
    'package.json': '{ "type": "module", "ratecard": { "service": "shop" } }',
    'catalog.yaml': CATALOG,
    shop: { 'index.js': SERVICE },
  })
  const help = ratecard(project, ['--help'])
  t.match(help.stdout, /^ {2}tea brew +brew one cup$/m)
  t.notMatch(help.stdout, /data update|memory export/)
  t.same(ratecard(project, ['tea', 'brew', '--leaf', 'assam'], { TEA_KETTLE: 'clay' }), {
    code: 0,
    stdout: 'assam\tclay\n',
    stderr: '',
  })
  t.match(ratecard(project, ['tea', 'brew']), {
    code: 64,
    stderr: 'ratecard tea brew: --leaf takes a name\nusage: ratecard tea brew [options]',
  })
  t.match(ratecard(project, ['check'], { STEAM_STORE_URL: 'nowhere' }), { code: 0, stdout: /1 paid/ })
  t.match(ratecard(project, ['check'], { TEA_KETTLE: 'paper', PORT: 'x' }), {
    code: 78,
    stderr: /^environment: PORT must .*\nenvironment: TEA_KETTLE must not burn$/m,
  })
  t.match(ratecard(project, ['serve', '--sandbox', '--offline']), {
    code: 1,
    stderr: /--offline: this service has no local replacements/,
  })
})

t.test('keeps the commands and handlers of the shipped service out of other projects', async (t) => {
  const project = t.testdir({ 'package.json': '{}', 'catalog.yaml': CATALOG })
  t.match(ratecard(project, ['data', 'status']), { code: 64, stderr: 'unknown command' })
  t.match(ratecard(project, ['check']), { code: 1, stdout: /handler_unknown/ })
})

t.test('--service names the folder of the service for any command', async (t) => {
  const folder = t.testdir({
    shop: { 'index.js': SERVICE },
    other: { 'index.js': 'export const handlers = {}' },
    'catalog.yaml': CATALOG,
  })
  t.match(ratecard(folder, ['--service', 'shop', 'tea', 'brew', '--leaf', 'sencha']).stdout, /sencha\tiron/)
  t.equal(ratecard(folder, ['check', '--service=shop']).code, 0)
  t.match(ratecard(folder, ['check', '--service', 'absent']), { code: 1, stderr: /no such file: .*absent/ })
  t.match(ratecard(folder, ['check', '--service', 'other']), { code: 1, stderr: /exports no "service"/ })
})
