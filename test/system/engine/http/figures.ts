import t from 'tap'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Json } from '../../../../src/engine/base/json.ts'
import { at, items } from '../../../support/documents.ts'
import { askJson } from '../../../support/http.ts'
import { addressOf, challengeOf, send, sign, type Hex } from '../../../support/payment.ts'
import { openBuyer } from '../../../support/buyer.ts'
import { Secrets } from '../../../support/secrets.ts'
import { openShop } from '../../../support/shop.ts'
import { runProgram } from '../../../support/server.ts'
import { until } from '../../../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'ratecard-figures-'))
const catalog = join(folder, 'catalog.yaml')
cpSync(fileURLToPath(new URL('../../../fixtures/payments/status.yaml', import.meta.url)), catalog)
const shop = await openShop(async () => ({ CATALOG: catalog }))
t.teardown(async () => {
  await shop.close()
  rmSync(folder, { recursive: true, force: true })
})
t.afterEach(() => shop.upstream.during(async () => {}))

/** Readers share a status that is up to a second old: asks until one is newer than the question. */
async function status(url = shop.url) {
  const asked = Date.now()
  let told = await askJson(`${url}/status.json`)
  await until('a status of now', async () => {
    told = await askJson(`${url}/status.json`)
    return Date.parse(text(at(told, 'checked_at'))) >= asked
  })
  return told
}
const stats = (url = shop.url) => askJson(`${url}/stats.json`)
const page = async () => (await fetch(`${shop.url}/status`)).text()

async function routeOf(path: string) {
  return items(at(await status(), 'routes')).find((route) => at(route, 'path') === path)
}

async function pay(path: string) {
  const key = await shop.wallet()
  return { key, ...(await openBuyer(key, new Secrets()).buy(`${shop.url}${path}`)) }
}

const NONE = { unpaid: 0, presented: 0, verified: 0, settled: 0, sent: 0, uncharged: 0 }

t.test('shows the outcome of every request at once', async (t) => {
  t.match(await status(), { status: 'operational', reasons: [], funnel: NONE, refused_reload: null })
  for (const method of ['GET', 'GET', 'HEAD'])
    t.equal((await fetch(`${shop.url}/paid/work?n=0`, { method })).status, 402)
  for (const n of [1, 2]) t.equal((await fetch(`${shop.url}/sample/work?n=${n}`)).status, 200)
  const answered = [await pay('/paid/work?n=3'), await pay('/paid/deep?n=4')]
  t.strictSame(
    answered.map((each) => each.status),
    [200, 200],
  )
  for (const { key } of answered) t.equal(await shop.onchain.charges(addressOf(key)), 1)
  // Whoever sends the next request on a connection has the answer before; else two seconds tell.
  await until('both answers have arrived', async () => at(await status(), 'funnel', 'sent') === 2)

  const sold = { presented: 2, verified: 2, settled: 2, sent: 2, uncharged: 0 }
  t.strictSame(at(await status(), 'funnel'), { unpaid: 5, ...sold })
  for (const path of ['/paid/work', '/paid/deep', '/sample/work']) {
    const route = await routeOf(path)
    t.match(route, { availability: 'available', success_rate: 1, last_success: /Z$/ }, path)
    t.ok(Number(at(route, 'p50_ms')) > 0 && Number(at(route, 'p50_ms')) <= Number(at(route, 'p95_ms')), path)
  }
  t.strictSame(at(await stats(), 'answers'), { paid: 2, free: 2 })
  t.match(at(await status(), 'networks'), [
    {
      network: 'eip155:8453',
      status: 'open',
      reason: null,
      coin: 'ETH',
      signers: [{ address: shop.signer, balance: /^0\.99/ }],
      gas_lost_last_hour: '0',
      unmined: 0,
    },
  ])
})

t.test('counts calls by different methods on one path apart', async (t) => {
  const init = { method: 'POST', body: '{"n":2}', headers: { 'Content-Type': 'application/json' } }
  const gets = await Promise.all(['/paid/work', '/sample/work'].map(routeOf))
  const before = at(await status(), 'funnel')
  t.equal((await fetch(`${shop.url}/paid/work`, init)).status, 402)
  t.equal((await fetch(`${shop.url}/sample/work`, init)).status, 200)
  const key = await shop.wallet()
  t.match(await openBuyer(key, new Secrets()).buy(`${shop.url}/paid/work`, init), { status: 200 })
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
  const add = (name: string, more: number): number => Number(at(before, name)) + more
  await until('the answer has arrived', async () => at(await status(), 'funnel', 'sent') === add('sent', 1))
  t.match(at(await status(), 'funnel'), { unpaid: add('unpaid', 2), settled: add('settled', 1) })
  for (const path of ['POST /paid/work', 'POST /sample/work'])
    t.match(await routeOf(path), { availability: 'available', success_rate: 1, last_success: /Z$/ }, path)
  t.strictSame(await Promise.all(['/paid/work', '/sample/work'].map(routeOf)), gets)
})

t.test('counts failed work apart from sales, uncharged', async (t) => {
  const before = at(await status(), 'funnel')
  shop.upstream.during(async () => {
    throw new Error('no')
  })
  const failed = await pay('/paid/work?n=5')
  t.equal(failed.status, 500)
  t.equal(await shop.onchain.charges(addressOf(failed.key)), 0)
  const { header } = await sign(await challengeOf(`${shop.url}/paid/work?n=6`), await shop.wallet(0n))
  t.equal((await send(`${shop.url}/paid/work?n=6`, header)).status, 402, 'an empty wallet')
  t.equal((await send(`${shop.url}/paid/work?n=6`, 'rubbish')).status, 400)
  t.strictSame(at(await status(), 'funnel'), {
    unpaid: Number(at(before, 'unpaid')) + 2,
    presented: Number(at(before, 'presented')) + 3,
    verified: Number(at(before, 'verified')) + 1,
    settled: at(before, 'settled'),
    sent: at(before, 'sent'),
    uncharged: Number(at(before, 'uncharged')) + 1,
  })
  t.match(await routeOf('/paid/work'), { success_rate: 0.5, availability: 'available' })
})

t.test('shows a route that keeps failing, and its recovery', async (t) => {
  shop.upstream.during(async () => {
    throw new Error('no')
  })
  for (const n of [1, 2]) t.equal((await fetch(`${shop.url}/sample/work?n=${n}`)).status, 500)
  t.match(await status(), { status: 'operational' })
  t.equal((await fetch(`${shop.url}/sample/work?n=3`)).status, 500)
  // The status is computed at most once a second.
  await until('it shows', async () => at(await status(), 'status') === 'degraded')
  t.match(await status(), { status: 'degraded', reasons: ['/sample/work does not answer.'] })
  t.equal(at(await routeOf('/sample/work'), 'availability'), 'failing')
  await until('the page shows it', async () => /data-state="degraded">degraded</.test(await page()))
  shop.upstream.during(async () => {})
  t.equal((await fetch(`${shop.url}/sample/work?n=3`)).status, 200)
  await until('it is well again', async () => at(await status(), 'status') === 'operational')
  t.match(await status(), { status: 'operational', reasons: [] })
})

t.test('shows exactly the figures of the JSON on the page', async (t) => {
  // Both are shared for a second: nothing happens until they are rendered again.
  await delay(1_100)
  const [told, html] = [await status(), await page()]
  for (const step of ['unpaid', 'presented', 'verified', 'settled', 'sent', 'uncharged'])
    t.match(html, new RegExp(`data-step="${step}">${Number(at(told, 'funnel', step))}<`), step)
  const rows = items(at(told, 'routes'))
  t.equal(rows.length, 5)
  for (const row of rows) {
    const cells = [...cellsOf(html, text(at(row, 'path')))]
    const [state, rate, p50, p95] = cells
    const times = ['p50_ms', 'p95_ms'].map((name) => spellTime(Number(at(row, name))))
    t.strictSame([state, p50, p95], [text(at(row, 'availability')), ...times], text(at(row, 'path')))
    t.equal(rate, `${Math.floor(Number(at(row, 'success_rate')) * 1000) / 10} %`)
    t.match(html, text(at(row, 'last_success')))
  }
  const today = items(at(told, 'days')).at(-1)
  const day = ['unpaid', 'settled', 'paid_answers', 'free_answers'].map((name) => text(at(today, name)))
  t.strictSame(cellsOf(html, text(at(today, 'date'))), day)
})

/** From a second on, tenths of a second are exact enough for people. */
function spellTime(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`
}

function text(value: Json | undefined): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** What is in the row that has this head. */
function cellsOf(html: string, head: string): string[] {
  const row =
    html.split('<tr>').find((each) => each.startsWith('<th scope="row">') && each.includes(`>${head}<`)) ?? ''
  return [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(([, cell = '']) => cell.replace(/<[^>]*>/g, ''))
}

t.test('sums the totals from the routes of the catalog', async (t) => {
  const [told, totals] = [await status(), await stats()]
  t.strictSame(at(totals, 'routes'), { paid: 3, sample: 2, free: 0 })
  t.strictSame(at(totals, 'funnel'), at(told, 'funnel'))
  t.strictSame(at(totals, 'days'), at(told, 'days'))
  t.equal(items(at(totals, 'days')).length, 7)
  const answers = items(at(told, 'days')).map((day) => Object(day))
  t.strictSame(at(totals, 'answers'), {
    paid: answers.reduce((sum, day) => sum + day.paid_answers, 0),
    free: answers.reduce((sum, day) => sum + day.free_answers, 0),
  })
  for (const route of items(at(told, 'routes')))
    t.notOk(
      'answers' in Object(route) || 'funnel' in Object(route),
      'what a route earns is its operator’s business',
    )
})

t.test('escapes names of a catalog on the page', async (t) => {
  const response = await fetch(`${shop.url}/status`)
  t.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
  t.equal(response.headers.get('cache-control'), 'no-cache')
  t.equal(response.headers.get('x-content-type-options'), 'nosniff')
  const policy = response.headers.get('content-security-policy') ?? ''
  t.match(policy, /default-src 'none'/)
  t.match(policy, /frame-ancestors 'none'/)
  t.match(policy, /script-src 'self';/)
  t.notMatch(policy, /unsafe|\*|https?:|data:/)
  const html = await response.text()
  t.match(html, '&lt;script&gt;alert(1)&lt;/script&gt;')
  t.match(html, 'Quiet &amp; calm')
  t.match(html, '{{constructor}}')
  t.notMatch(
    html,
    /<script(?! type="module" src="\/page\.js"><\/script>)|<b |\sstyle=|<style|\son[a-z]+=|javascript:/i,
  )
  const title = items(at(await status(), 'sources')).map((source) => at(source, 'title'))
  t.match(title[0], '<script>alert(1)</script>')
})

t.test('shows the position of errors in a refused catalog, and keeps its text private', async (t) => {
  const text = readFileSync(catalog, 'utf8')
  writeFileSync(catalog, text.replace('price: 0.01', 'price: hunter2-my-secret'))
  shop.server.process.kill('SIGHUP')
  await until('it was refused', async () => at(await status(), 'refused_reload') !== null)
  const told = await status()
  const { refused_at: when, errors, kept } = Object(at(told, 'refused_reload'))
  t.match(when, /Z$/)
  t.equal(kept, at(told, 'revision'))
  t.match(errors, [{ code: /^[a-z_]+$/, line: 13, column: /^\d+$/ }])
  t.equal(at(told, 'status'), 'operational')
  const html = await page()
  t.match(html, 'A catalog was refused')
  t.match(html, /<code>[a-z_]+<\/code> at line 13, column/)
  t.notMatch(html + JSON.stringify(told), /hunter2/)
  writeFileSync(catalog, text)
  shop.server.process.kill('SIGHUP')
  await until('the next one is served', async () => at(await status(), 'refused_reload') === null)
  t.notMatch(await page(), 'A catalog was refused')
})

/** What the ledger has, by name: of ended processes everything, of running ones all but the last seconds. */
async function recorded(): Promise<ReadonlyMap<unknown, Json>> {
  const { stdout } = await runProgram(['stats', '--json', '--data-dir', shop.server.dataDir])
  return new Map(items(JSON.parse(stdout) as Json).map((row) => [at(row, 'name'), row]))
}

/** What the ledger has once the running processes have written what they have counted. */
async function recordedUpToNow(): Promise<ReadonlyMap<unknown, Json>> {
  const unpaid = Number(at(await status(), 'funnel', 'unpaid'))
  let rows = await recorded()
  await until('what was counted is written', async () => {
    rows = await recorded()
    return (
      Array.from(rows.values(), (row) => Number(at(row, 'unpaid'))).reduce((sum, each) => sum + each, 0) ===
      unpaid
    )
  })
  return rows
}

t.test('sums the figures of all processes, also of ended and killed ones', async (t) => {
  const before = at(await status(), 'funnel')
  const rowsBefore = await recordedUpToNow()
  const branch = await shop.branch()
  for (const n of [1, 2, 3]) t.equal((await fetch(`${branch.url}/paid/work?n=${n}`)).status, 402)
  t.equal((await fetch(`${branch.url}/sample/work`)).status, 200)
  const key = await shop.wallet()
  t.match(await openBuyer(key, new Secrets()).buy(`${branch.url}/paid/work?n=9`), { status: 200 })
  const init = { method: 'POST', body: '{"n":9}', headers: { 'Content-Type': 'application/json' } }
  t.equal((await fetch(`${branch.url}/sample/work`, init)).status, 200)
  const other = openBuyer(await shop.wallet(), new Secrets())
  t.match(await other.buy(`${branch.url}/paid/work`, init), { status: 200 })
  const add = (name: string, more: number): number => Number(at(before, name)) + more
  await until(
    'the answers have arrived',
    async () => at(await status(branch.url), 'funnel', 'sent') === add('sent', 2),
  )
  await branch.stop()
  await until('the other one knows', async () => at(await status(), 'funnel', 'unpaid') === add('unpaid', 5))
  const total = {
    unpaid: add('unpaid', 5),
    presented: add('presented', 2),
    verified: add('verified', 2),
    settled: add('settled', 2),
    sent: add('sent', 2),
    uncharged: add('uncharged', 0),
  }
  t.strictSame(at(await status(), 'funnel'), total)
  const rows = await recordedUpToNow()
  const more = (name: string): Record<string, number> => {
    const figure = (of: ReadonlyMap<unknown, Json>, key: string): number => {
      const row = of.get(name)
      return row === undefined ? 0 : Number(at(row, key))
    }
    const keys = ['answers', 'unpaid', 'presented', 'verified', 'settled', 'sent', 'failed']
    return Object.fromEntries(keys.map((each) => [each, figure(rows, each) - figure(rowsBefore, each)]))
  }
  const sold = { answers: 1, presented: 1, verified: 1, settled: 1, sent: 1, failed: 0 }
  t.match(more('free /sample/work'), { answers: 1, unpaid: 0 })
  t.match(more('free POST /sample/work'), { answers: 1, unpaid: 0 })
  t.strictSame(more('sold post/work'), { ...more('sold post/work'), ...sold, unpaid: 1 })
  t.strictSame(more('sold work'), { ...more('sold work'), ...sold, unpaid: 4 })
  const [answers, route] = [at(await stats(), 'answers'), await routeOf('/sample/work')]
  // It is killed, after it has written what it had counted.
  await shop.restart()
  t.strictSame(at(await status(), 'funnel'), total)
  t.strictSame(await routeOf('/sample/work'), route)
  t.strictSame(at(await stats(), 'answers'), answers)
})

t.test('shows a withdrawn last network, keeps sold answers, and sells again when it is back', async (t) => {
  const work = (n: number): string => `${shop.url}/paid/work?n=${n}`
  const fresh = async () => sign(await challengeOf(work(41)), await shop.wallet())
  const [bought, late] = [await fresh(), await fresh()]
  t.equal((await send(work(41), bought.header)).status, 200)
  const isOffered = async (): Promise<boolean> => (await fetch(work(42))).status === 402
  const { asset, rpcUrl } = shop.chain
  const asked = { jsonrpc: '2.0', id: 1, method: 'eth_getCode', params: [asset, 'latest'] }
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(rpcUrl, { method: 'POST', headers, body: JSON.stringify(asked) })
  const { result: code } = (await answer.json()) as { result: Hex }

  await shop.chain.setCode(asset, '0x00')
  shop.server.process.kill('SIGHUP')
  await until('the network is withdrawn', async () => !(await isOffered()))
  for (const response of [await fetch(work(42)), await send(work(42), late.header)]) {
    t.equal(response.status, 503)
    t.match(await response.json(), { code: 'not_configured', charged: 'no' })
  }
  t.equal((await send(work(41), bought.header)).status, 200, 'what was bought is given again')
  t.match(await status(), { status: 'down', reasons: ['No way to pay is offered.'] })

  await shop.chain.setCode(asset, code)
  shop.server.process.kill('SIGHUP')
  await until('the network is back', isOffered)
  t.equal((await send(work(42), late.header)).status, 200, 'and the payment that was refused is good')
  t.match(await status(), { status: 'operational', reasons: [] })
})
