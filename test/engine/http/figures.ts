import t from 'tap'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { at, items } from '../../support/documents.ts'
import { askJson } from '../../support/figures.ts'
import { addressOf, challengeOf, send, sign } from '../../support/payment.ts'
import { openBuyer } from '../../support/buyer.ts'
import { Secrets } from '../../support/secrets.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'ratecard-figures-'))
const catalog = join(folder, 'catalog.yaml')
cpSync(fileURLToPath(new URL('../../fixtures/payments/status.yaml', import.meta.url)), catalog)
const shop = await openShop(async () => ({ CATALOG: catalog }))
t.teardown(async () => {
  await shop.close()
  rmSync(folder, { recursive: true, force: true })
})
t.afterEach(() => shop.workplace.during(async () => {}))

const status = (url = shop.url) => askJson(`${url}/status.json`)
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

t.test('an operator sees at once what has become of every request', async (t) => {
  t.match(await status(), { status: 'operational', reasons: [], funnel: NONE, refused_reload: null })
  for (const method of ['GET', 'GET', 'HEAD'])
    t.equal((await fetch(`${shop.url}/paid/work?n=0`, { method })).status, 402)
  for (const n of [1, 2]) t.equal((await fetch(`${shop.url}/sample/work?n=${n}`)).status, 200)
  const answered = [await pay('/paid/work?n=3'), await pay('/paid/deep?n=4')]
  t.strictSame(
    answered.map((each) => each.status),
    [200, 200],
  )
  for (const { key } of answered) t.equal(await shop.witness.charges(addressOf(key)), 1)
  // Whoever sends the next request on a connection has the answer before; else two seconds tell.
  await until('both answers have arrived', async () => at(await status(), 'funnel', 'sent') === 2)

  const work = await routeOf('/paid/work')
  const once = { presented: 1, verified: 1, settled: 1, sent: 1, uncharged: 0 }
  t.match(work, { kind: 'paid', availability: 'available', answers: 1, failed: 0, last_success: /Z$/ })
  t.strictSame(at(work, 'funnel'), { unpaid: 4, ...once })
  t.ok(Number(at(work, 'p50_ms')) > 0 && Number(at(work, 'p50_ms')) <= Number(at(work, 'p95_ms')))
  t.strictSame(at(await routeOf('/paid/deep'), 'funnel'), { unpaid: 1, ...once })
  const sample = await routeOf('/sample/work')
  t.match(sample, { kind: 'sample', answers: 2, failed: 0, last_success: /Z$/ })
  t.notOk('funnel' in Object(sample), 'nobody pays for a sample')
})

t.test('work that fails is told apart from a sale, and costs nobody anything', async (t) => {
  const before = at(await routeOf('/paid/work'), 'funnel')
  shop.workplace.during(async () => {
    throw new Error('no')
  })
  const failed = await pay('/paid/work?n=5')
  t.equal(failed.status, 500)
  t.equal(await shop.witness.charges(addressOf(failed.key)), 0)
  const { header } = await sign(await challengeOf(`${shop.url}/paid/work?n=6`), await shop.wallet(0n))
  t.equal((await send(`${shop.url}/paid/work?n=6`, header)).status, 402, 'a purse without money')
  t.equal((await send(`${shop.url}/paid/work?n=6`, 'rubbish')).status, 400)
  const work = await routeOf('/paid/work')
  t.strictSame(at(work, 'funnel'), {
    unpaid: Number(at(before, 'unpaid')) + 2,
    presented: Number(at(before, 'presented')) + 3,
    verified: Number(at(before, 'verified')) + 1,
    settled: at(before, 'settled'),
    sent: at(before, 'sent'),
    uncharged: Number(at(before, 'uncharged')) + 1,
  })
  t.match(work, { answers: 1, failed: 1, availability: 'available' })
})

t.test(
  'a route that fails again and again shows before buyers notice, and so does its recovery',
  async (t) => {
    shop.workplace.during(async () => {
      throw new Error('no')
    })
    for (const n of [1, 2]) t.equal((await fetch(`${shop.url}/sample/work?n=${n}`)).status, 500)
    t.match(await status(), { status: 'operational' })
    t.equal((await fetch(`${shop.url}/sample/work?n=3`)).status, 500)
    t.match(await status(), { status: 'degraded', reasons: ['/sample/work does not answer.'] })
    t.equal(at(await routeOf('/sample/work'), 'availability'), 'failing')
    t.match(await page(), /data-state="degraded">degraded</)
    shop.workplace.during(async () => {})
    t.equal((await fetch(`${shop.url}/sample/work?n=3`)).status, 200)
    t.match(await status(), { status: 'operational', reasons: [] })
  },
)

t.test('the page shows the figures of the JSON, and nothing else', async (t) => {
  const [told, html] = [await status(), await page()]
  for (const step of ['unpaid', 'presented', 'verified', 'settled', 'sent', 'uncharged'])
    t.match(html, new RegExp(`data-step="${step}">${Number(at(told, 'funnel', step))}<`), step)
  const bars = [...html.matchAll(/<rect class="bar" x="190" y="\d+" width="(\d+)"/g)].map(([, width]) =>
    Number(width),
  )
  const counts = ['unpaid', 'presented', 'verified', 'settled', 'sent'].map((step) =>
    Number(at(told, 'funnel', step)),
  )
  t.equal(bars.length, counts.length)
  for (const [one, width] of bars.entries())
    for (const [other, next] of bars.entries())
      t.equal(Math.sign(width - next), Math.sign((counts[one] ?? 0) - (counts[other] ?? 0)), 'more is longer')
  const rows = items(at(told, 'routes'))
  t.equal(rows.length, 3)
  for (const row of rows) {
    const cells = [...cellsOf(html, String(at(row, 'path')))]
    const shown = ['availability', 'answers', 'failed', 'p50_ms', 'p95_ms'].map((name) =>
      String(at(row, name) ?? ''),
    )
    t.strictSame(cells.slice(0, 5), shown, `${String(at(row, 'path'))}`)
    t.match(html, String(at(row, 'last_success')))
  }
  const today = items(at(told, 'days')).at(-1)
  const day = ['unpaid', 'settled', 'paid_answers', 'free_answers'].map((name) => String(at(today, name)))
  t.strictSame(cellsOf(html, String(at(today, 'date'))).slice(0, 4), day)
})

/** What stands in the row that has this head. */
function cellsOf(html: string, head: string): string[] {
  const row =
    html.split('<tr>').find((each) => each.startsWith('<th scope="row">') && each.includes(`>${head}<`)) ?? ''
  return [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(([, cell = '']) => cell.replace(/<[^>]*>/g, ''))
}

t.test('the totals are those of the routes, counted from the catalog', async (t) => {
  const [told, totals] = [await status(), await stats()]
  t.strictSame(at(totals, 'routes'), { paid: 2, sample: 1, free: 0 })
  t.strictSame(at(totals, 'funnel'), at(told, 'funnel'))
  t.strictSame(at(totals, 'days'), at(told, 'days'))
  t.equal(items(at(totals, 'days')).length, 7)
  const routes = items(at(told, 'routes'))
  const sum = (kinds: readonly string[]): number =>
    routes.reduce<number>(
      (total, route) =>
        total + (kinds.includes(String(at(route, 'kind'))) ? Number(at(route, 'answers')) : 0),
      0,
    )
  t.strictSame(at(totals, 'answers'), { paid: sum(['paid']), free: sum(['sample', 'free']) })
  t.notMatch(JSON.stringify(totals), /USD|revenue|amount/i, 'what is earned is nobody else’s business')
})

t.test('a name from a catalog cannot run anything on the page', async (t) => {
  const response = await fetch(`${shop.url}/status`)
  t.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
  t.equal(response.headers.get('cache-control'), 'no-cache')
  t.equal(response.headers.get('x-content-type-options'), 'nosniff')
  const policy = response.headers.get('content-security-policy') ?? ''
  t.match(policy, /default-src 'none'/)
  t.match(policy, /frame-ancestors 'none'/)
  t.notMatch(policy, /unsafe|script-src|\*|https?:|data:/)
  const html = await response.text()
  t.match(html, '&lt;script&gt;alert(1)&lt;/script&gt;')
  t.match(html, 'Quiet &amp; calm')
  t.match(html, '{{constructor}}')
  t.notMatch(html, /<script|<b |\sstyle=|<style|\son[a-z]+=|javascript:/i)
  const title = items(at(await status(), 'sources')).map((source) => at(source, 'title'))
  t.match(title[0], '<script>alert(1)</script>')
})

t.test('a catalog that was refused shows where it is wrong, and none of its words', async (t) => {
  const text = readFileSync(catalog, 'utf8')
  writeFileSync(catalog, text.replace('price: 0.01', 'price: hunter2-my-secret'))
  shop.server.process.kill('SIGHUP')
  await until('it was refused', async () => at(await status(), 'refused_reload') !== null)
  const told = await status()
  const { refused_at: when, errors, kept } = Object(at(told, 'refused_reload'))
  t.match(when, /Z$/)
  t.equal(kept, at(told, 'revision'))
  t.match(errors, [{ code: /^[a-z_]+$/, line: 12, column: /^\d+$/ }])
  t.equal(at(told, 'status'), 'operational')
  const html = await page()
  t.match(html, 'A catalog was refused')
  t.match(html, /<code>[a-z_]+<\/code> at line 12, column/)
  t.notMatch(html + JSON.stringify(told), /hunter2/)
  writeFileSync(catalog, text)
  shop.server.process.kill('SIGHUP')
  await until('the next one is served', async () => at(await status(), 'refused_reload') === null)
  t.notMatch(await page(), 'A catalog was refused')
})

t.test('figures are those of all processes, and outlive each of them', async (t) => {
  const before = at(await status(), 'funnel')
  const branch = await shop.branch()
  for (const n of [1, 2, 3]) t.equal((await fetch(`${branch.url}/paid/work?n=${n}`)).status, 402)
  t.equal((await fetch(`${branch.url}/sample/work`)).status, 200)
  const key = await shop.wallet()
  t.match(await openBuyer(key, new Secrets()).buy(`${branch.url}/paid/work?n=9`), { status: 200 })
  await until('the answer has arrived', async () => at(await status(branch.url), 'funnel', 'sent') === 1)
  await branch.stop()
  const add = (name: string, more: number): number => Number(at(before, name)) + more
  await until('the other one knows', async () => at(await status(), 'funnel', 'unpaid') === add('unpaid', 4))
  t.strictSame(at(await status(), 'funnel'), {
    unpaid: add('unpaid', 4),
    presented: add('presented', 1),
    verified: add('verified', 1),
    settled: add('settled', 1),
    sent: add('sent', 1),
    uncharged: add('uncharged', 0),
  })
  // Killed, it takes with it what it had not written down: here everything of its own, for it has run no minute.
  await shop.restart()
  const left = { unpaid: 4, presented: 1, verified: 1, settled: 1, sent: 1, uncharged: 0 }
  t.strictSame(at(await status(), 'funnel'), left)
  t.match(await routeOf('/sample/work'), { answers: 1, last_success: /Z$/ })
  t.strictSame(at(await stats(), 'answers'), { paid: 1, free: 1 })
})
