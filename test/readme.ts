import { readFileSync } from 'node:fs'
import t from 'tap'
import { compileText } from '../src/engine/catalog/load.ts'

const SURROUNDINGS = { handlers: ['util/workday'], documents: [], read: () => undefined }

function yamlOf(file: string): string {
  const text = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')
  return /```yaml\n([\s\S]*?)```/.exec(text)?.[1] ?? ''
}

t.test('a newcomer who copies the catalog of the README would meet an error', async (t) => {
  const { catalog, warnings } = compileText('README.md', yamlOf('README.md'), SURROUNDINGS)
  t.same(warnings, [])
  t.equal(catalog.routes[0]?.path, '/paid/weather/{city}')
  t.equal(catalog.operations[0]?.price, 5000n)
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
