import t, { type Test } from 'tap'
import { documents } from '../../../../src/engine/documents/all.ts'
import { compileHarbour, FACTS, HARBOUR, render } from '../../../support/documents.ts'

/** Say nothing of single operations. */
const SILENT = ['api-catalog', 'robots', 'security-txt', 'mcp-registry-auth', 'privacy']
/** Say nothing of tools: they describe what is asked for over HTTP. */
const HTTP_ONLY = ['openapi', 'x402', 'x402-resources', 'sitemap', 'docs-errors']

const facts = { ...FACTS, mcpServers: new Map([['log', 'https://harbour.example/mcp/log']]) }
const before = compileHarbour()

function add(section: 'routes' | 'tools', entry: string) {
  return compileHarbour(HARBOUR.replace(`\n${section}:\n`, `\n${section}:\n${entry}`))
}

function reaches(
  t: Test,
  { catalog, sign, silent }: { catalog: typeof before; sign: RegExp; silent: readonly string[] },
): void {
  for (const { name } of documents) {
    const [old, now] = [render(name, before, facts), render(name, catalog, facts)]
    t.notMatch(old, sign, name)
    if (silent.includes(name)) t.equal(now, old, `${name} stays as it was`)
    else t.match(now, sign, name)
  }
}

t.test('announces an added route in every document that names routes', async (t) => {
  const catalog = add(
    'routes',
    `  /paid/fog:
    price: 0.002
    summary: Tells where fog lies
    skill: fog
    sample: true
`,
  )
  reaches(t, { catalog, sign: /(?:\b|_)fog(?:\b|_)/, silent: SILENT })
})

t.test('announces an API that is sold through the proxy in every document', async (t) => {
  const catalog = add(
    'routes',
    `  /paid/buoys/{buoy}:
    price: 0.75
    summary: Says where a buoy lies
    handler: proxy
    upstream: 'https://buoys.example/v1/{buoy}'
    skill: buoys
    parameters:
      buoy: { type: string, example: north }
`,
  )
  reaches(t, { catalog, sign: /(?:\b|_)buoys(?:\b|_)/, silent: SILENT })
  for (const { name } of documents) t.notMatch(render(name, catalog, facts), 'buoys.example', name)
})

t.test('announces an added tool in all documents but those of HTTP', async (t) => {
  const catalog = add(
    'tools',
    `  sound_horn:
    server: log
    price: 0.003
    summary: Sounds the horn
    skill: sound-horn
`,
  )
  reaches(t, { catalog, sign: /sound[_-]horn/, silent: [...SILENT, ...HTTP_ONLY] })
})

t.test('offers only tools of servers that are served', async (t) => {
  const catalog = add('tools', '  sound_horn: { server: pilots, price: 0.003, summary: Sounds the horn }\n')
  for (const { name } of documents)
    t.equal(render(name, catalog, facts), render(name, before, facts), `${name} stays as it was`)
})
