import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { compileText } from '../src/engine/catalog/load.ts'
import { readmeBlocks } from './support/readme.ts'

const SURROUNDINGS = { handlers: ['util/workday'], documents: [], read: () => undefined }

function yamlOf(file: string): string {
  const text = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')
  return /```yaml\n([\s\S]*?)```/.exec(text)?.[1] ?? ''
}

/** One catalog and what README.md adds to it: its first two blocks of YAML. */
const [tea = '', addition = ''] = readmeBlocks().flatMap(({ language, text }) =>
  language === 'yaml' ? [text] : [],
)
const shop = { ...SURROUNDINGS, handlers: ['tea/brew', 'tea/blend'] }

t.test('a newcomer who copies the catalog of the README would meet an error', async (t) => {
  const { catalog, warnings } = compileText('catalog.yaml', tea, shop)
  t.same(warnings, [])
  t.equal(catalog.operations[0]?.price, 5000n)
  t.equal(catalog.routes.filter(({ kind }) => kind === 'paid').length, 3)
})

t.test('a newcomer who adds the route without code of the README would meet an error', async (t) => {
  const { catalog, warnings } = compileText(
    'catalog.yaml',
    tea + addition.replaceAll(/^/gm, '  ').trimEnd(),
    shop,
  )
  t.same(warnings, [])
  const stock = catalog.routes.find(({ path }) => path === '/paid/tea/stock/{leaf}')
  const wanted = { handler: 'proxy', price: 1000n, upstream: { credential: { env: 'STOCK_TOKEN' } } }
  t.match(stock?.operation, wanted)
})

t.test('a newcomer who makes the mistake of the README would be told something else', async (t) => {
  const shown = readmeBlocks().find(({ text }) => text.startsWith('catalog.yaml:'))?.text ?? ''
  const [, price = ''] = /> +\d+ \| +price: (\S+)/.exec(shown) ?? []
  const told = (): void =>
    void compileText('catalog.yaml', tea.replace('price: 0.005', `price: ${price}`), shop)
  t.throws(told, { message: shown.trimEnd() })
})

t.test('the README would give reasons for a package that nobody installs', async (t) => {
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    readonly dependencies: object
    readonly optionalDependencies: object
  }
  const installed = { ...dependencies, ...optionalDependencies }
  const [, table = ''] = /^\| package .*\n.*\n((?:\|.*\n)+)/m.exec(readFileSync('README.md', 'utf8')) ?? []
  const named = Array.from(table.matchAll(/^\| (.*?) +\|/gm)).flatMap(([, names = '']) => names.split(', '))
  t.ok(named.length > 5)
  for (const name of named) t.ok(name in installed, name)
})

for (const page of ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'deploy/README.md'])
  t.test(`a link of ${page} would lead nowhere`, async (t) => {
    for (const [, target = ''] of readFileSync(page, 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g))
      t.ok(existsSync(join(dirname(page), target)), target)
  })

t.test('a contributor who copies the routes of CONTRIBUTING would meet an error', async (t) => {
  const routes = yamlOf('CONTRIBUTING.md')
    .split('\n')
    .map((line) => (line.startsWith('/') || line.startsWith(' ') ? `  ${line}` : line))
    .join('\n')
  const text = [
    'catalog: 1',
    "service: { name: Shop, version: '1.0.0' }",
    'payments: { currency: USD, x402: { networks: [base] } }',
    'routes:',
    '  /paid/util/workday:',
    '    price: 0.002',
    '    summary: Workdays of a country',
    '    parameters:',
    '      country: { type: string, default: US, format: country }',
    "      date: { type: string, default: '', format: date }",
    '      days: { type: integer, default: 14, minimum: 1, maximum: 366 }',
    routes,
  ].join('\n')
  const { catalog } = compileText('CONTRIBUTING.md', text, SURROUNDINGS)
  t.same(
    catalog.routes.map(({ path }) => path),
    ['/paid/util/workday', '/paid/acme/price/{sku}', '/paid/util/today'],
  )
})
