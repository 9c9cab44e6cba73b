import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { quoteLowest } from '../../../../src/engine/catalog/price/price.ts'
import { documents } from '../../../../src/engine/documents/all.ts'
import { serverPages } from '../../../../src/engine/documents/mcp-server-page.ts'
import { renderOperation } from '../../../../src/engine/documents/operation-page.ts'
import { renderPaymentPage } from '../../../../src/engine/documents/payment-page.ts'
import { UNPAID } from '../../../../src/engine/http/payment-required.ts'
import { createRevision } from '../../../../src/engine/http/revision.ts'
import { compileHarbour } from '../../../support/documents.ts'
import { runLine } from '../../../support/run-command.ts'
import { BASE_URL, quietX402 } from '../../../support/shipped-catalog.ts'

const CATALOG = readFileSync(new URL('../../../fixtures/documents/fields.yaml', import.meta.url), 'utf8')
const GOLDEN = new URL('../../../golden/documents/fields', import.meta.url)

/** A change of each field of the route, or of the tool, in the catalog. */
const CHANGES: Readonly<Record<string, readonly [from: string, to: string]>> = {
  title: ['title: Short words', 'title: Other words'],
  summary: ['summary: Tells', 'summary: Says'],
  use_when: ['use_when: You need', 'use_when: You want'],
  description: ['description: Figures', 'description: Numbers'],
  deprecated: ['deprecated: false', 'deprecated: true'],
  price: ['price: 0.005', 'price: 0.007'],
  settle: ['settle: after', 'settle: upfront'],
  parameters: ['default: cork', 'default: kinsale'],
  example: ['example: { level: 1', 'example: { level: 2'],
  queries: ['queries: [how high', 'queries: [how low'],
  category: ['category: tides', 'category: ships'],
  skill: ['skill: level', 'skill: height'],
  cache: ['cache: 10m', 'cache: 11m'],
  timeout: ['timeout: 15s', 'timeout: 16s'],
  sources: ['sources: [one]', 'sources: [two]'],
  sample: ['sample: true', 'sample: false'],
}

/** Everything that describes an operation to somebody, by its name. */
async function textsOf(text: string): Promise<ReadonlyMap<string, string>> {
  const catalog = compileHarbour(text)
  const unasked = () => Promise.reject(new Error('no handler is run here'))
  const revision = createRevision({
    catalog,
    handlers: Object.fromEntries(catalog.operations.map(({ handler }) => [handler, unasked])),
    protocols: [quietX402(catalog)],
    baseUrl: BASE_URL,
    mcpUrls: {},
    sandbox: false,
    proxy: { fetcher: fetch, secret: (name) => name, report: () => undefined },
  })
  const { facts } = revision
  const [served] = revision.routes
  if (served?.paymentRequired === undefined) throw new Error('the first route is not sold')
  const { route } = served
  const { price } = route.operation
  const resource = BASE_URL + route.path
  const reply = served.paymentRequired(
    {
      scope: 'none',
      contentDigest: undefined,
      quote: price === undefined ? undefined : quoteLowest(price),
      wouldFail: undefined,
      ignored: undefined,
      resource,
    },
    UNPAID,
  )
  const problem = JSON.parse(String(reply.body))
  const place = t.testdir({ 'catalog.yaml': text })
  const { out } = await runLine(['routes', join(place, 'catalog.yaml')], { handlers: ['level', 'note'] })
  return new Map([
    ...documents.map(({ name, render }) => [name, render(catalog, facts)] as const),
    ...documents.flatMap(({ name, page }) =>
      page === undefined ? [] : [[`${name}, page`, page(catalog, facts)] as const],
    ),
    ['page of a route', renderOperation(catalog, facts, route, 'page')],
    ['page of a route, Markdown', renderOperation(catalog, facts, route, 'markdown')],
    [
      'page of an MCP server',
      serverPages(catalog, facts)
        .map((each) => each.text)
        .join(''),
    ],
    ['402, header', Buffer.from(reply.headers['PAYMENT-REQUIRED'] ?? '', 'base64').toString()],
    ['402, body', String(reply.body)],
    ['402, page', renderPaymentPage({ catalog, facts, route, url: resource, problem }).html],
    ['tools/list', JSON.stringify(revision.tools.get('log')?.listed)],
    ['ratecard routes', out],
  ])
}

/** A table with a mark where the document changes with the field. */
function tableOf(shown: ReadonlyMap<string, ReadonlySet<string>>, names: readonly string[]): string {
  const fields = [...shown.keys()]
  const width = Math.max(...names.map(({ length }) => length))
  const rows = names.map((name) =>
    [
      name.padEnd(width),
      ...fields.map((field) => (shown.get(field)?.has(name) ? 'x' : '').padEnd(field.length)),
    ]
      .join('  ')
      .trimEnd(),
  )
  return [[''.padEnd(width), ...fields].join('  '), ...rows, ''].join('\n')
}

t.test(
  'shows each field of an operation in the pinned documents, which UPDATE_GOLDEN=1 rewrites',
  async (t) => {
    const before = await textsOf(CATALOG)
    const shown = new Map<string, ReadonlySet<string>>()
    for (const [field, [from, to]] of Object.entries(CHANGES)) {
      t.ok(CATALOG.includes(from), from)
      const after = await textsOf(CATALOG.replaceAll(from, to))
      shown.set(field, new Set([...before.keys()].filter((name) => after.get(name) !== before.get(name))))
    }
    const table = tableOf(
      shown,
      [...before.keys()].filter((name) => [...shown.values()].some((names) => names.has(name))),
    )
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(GOLDEN, table)
    t.equal(table, readFileSync(GOLDEN, 'utf8'))
  },
)
