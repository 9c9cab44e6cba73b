import { readFileSync } from 'node:fs'
import t from 'tap'
import { compileText } from '../src/engine/catalog/load.ts'

const SURROUNDINGS = { handlers: ['util/workday'], documents: [], read: () => undefined }

function yamlOf(file: string): string {
  const text = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')
  return /```yaml\n([\s\S]*?)```/.exec(text)?.[1] ?? ''
}

t.test('who adds a route without code as the README does would meet an error', async (t) => {
  const text = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const route = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block = '']) => block).at(-1) ?? ''
  const added = route.replaceAll(/^/gm, '  ')
  const { catalog, warnings } = compileText('README.md', `${yamlOf('README.md')}${added}`, {
    ...SURROUNDINGS,
    handlers: ['tea/brew', 'tea/blend'],
  })
  t.same(warnings, [])
  const stock = catalog.routes.find(({ path }) => path === '/paid/tea/stock/{leaf}')
  t.match(stock?.operation, {
    handler: 'proxy',
    price: 1000n,
    upstream: { credential: { env: 'STOCK_TOKEN' } },
  })
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
