import t from 'tap'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { at, items } from '../../../support/documents.ts'
import { askJson } from '../../../support/http.ts'
import { runProgram, startServer } from '../../../support/server.ts'
import { until } from '../../../support/until.ts'

const CATALOG = `catalog: 1
service: { name: Quiet, version: '1.0.0' }
payments: { currency: USD, x402: { networks: [base] } }
routes:
  /paid/ping: { price: 0.01, handler: ping, summary: Answers, parameters: { nonce: { type: string, example: a } }, example: { pong: true } }
`
const STATUS = ['/status', '/status.json', '/stats.json']

const folder = mkdtempSync(join(tmpdir(), 'ratecard-status-'))
const catalog = join(folder, 'catalog.yaml')
writeFileSync(catalog, CATALOG)
const server = await startServer({
  args: ['--sandbox'],
  dataDir: join(folder, 'data'),
  env: { CATALOG: catalog, HOST: '127.0.0.1' },
})
t.teardown(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})
const page = async (path: string): Promise<string> =>
  (await fetch(server.url + path, { headers: { accept: 'text/html' } })).text()

t.test('shows everybody whether it works, and nobody what it sells', async (t) => {
  t.equal((await fetch(`${server.url}/paid/ping`)).status, 402)
  const [status, stats] = [
    await askJson(`${server.url}/status.json`),
    await askJson(`${server.url}/stats.json`),
  ]
  t.match(status, { status: 'operational', since: /^\d{4}-\d{2}-\d{2}$/ })
  t.match(stats, { routes: { paid: 1 }, since: /^\d{4}-\d{2}-\d{2}$/ })
  for (const member of ['funnel', 'days', 'answers'])
    for (const document of [status, stats]) t.equal(at(document, member), undefined, member)
  t.notMatch(await page('/status'), /402|Day by day/)
})

t.test('publishes its sales where the catalog says so', async (t) => {
  writeFileSync(catalog, `${CATALOG}status: sales\n`)
  server.process.kill('SIGHUP')
  await until('the figures are public', async () => {
    return at(await askJson(`${server.url}/status.json`), 'funnel', 'unpaid') === 1
  })
  t.match(await askJson(`${server.url}/stats.json`), { funnel: { unpaid: 1 }, answers: { paid: 0 } })
  t.match(await page('/status'), /data-step="unpaid">1</)
})

t.test('neither serves nor names a private status, whose figures its operator has', async (t) => {
  writeFileSync(catalog, `${CATALOG}status: private\n`)
  server.process.kill('SIGHUP')
  await until('it is private', async () => (await fetch(`${server.url}/status`)).status === 404)
  for (const path of STATUS) {
    const response = await fetch(server.url + path)
    t.equal(response.status, 404, path)
    t.match(await response.json(), { code: 'not_found', charged: 'no' })
  }
  t.equal((await fetch(`${server.url}/health`)).status, 200)
  const documents = [
    '/docs',
    '/docs.md',
    '/llms.txt',
    '/openapi.json',
    '/sitemap.xml',
    '/robots.txt',
    '/.well-known/api-catalog',
    '/.well-known/agent-card.json',
  ]
  for (const path of ['/', ...documents]) {
    const text =
      path === '/' ? (await page('/')) + (await (await fetch(server.url)).text()) : await page(path)
    t.notMatch(text, /\/stats\.json|\/status\b/, path)
  }
  await until('the 402 is written', async () => {
    const { stdout } = await runProgram(['stats', '--json', '--sandbox', '--data-dir', server.dataDir])
    return items(JSON.parse(stdout || '[]')).some(
      (row) => at(row, 'name') === 'sold ping' && at(row, 'unpaid') === 1,
    )
  })
})
