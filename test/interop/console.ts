import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { stockFetch } from '../support/payment.ts'
import { redisAbsence, startRedis } from '../support/redis.ts'
import { readSandboxFile, type RunningServer } from '../support/server.ts'
import { openShop } from '../support/shop.ts'
import { until } from '../support/until.ts'
import { findBrowser, openBrowser } from './support/browser.ts'
import { openSandbox } from './support/shipped-service.ts'

const program = findBrowser()
if (program === undefined && process.env['CI'] === '1')
  t.fail('there is no Chromium: apt-get install chromium')
const skip = program === undefined && 'needs Chromium'

const { server, url } = await openSandbox(t)
const pay = stockFetch(readSandboxFile(server).evm.payerKey)
const browser = program === undefined ? undefined : await openBrowser(program)
t.teardown(() => browser?.close())

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const FINDINGS = `axe.run().then(({ violations }) =>
  violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)))`
const WIDTHS = [1440, 820, 375]
const VIEWS = [
  '/',
  '/revenue',
  '/lost-sales',
  '/payments',
  '/routes',
  '/buyers',
  '/catalog',
  '/listings',
  '/health',
]

const entranceOf = ({ output }: RunningServer): string =>
  [...output().matchAll(/^console: (\S+)$/gm)].at(-1)?.[1] ?? ''
const origin = new URL(entranceOf(server)).origin

/** A browser that has entered. */
async function openTab(options: BrowserContextOptions = {}, into = server): Promise<Page> {
  if (browser === undefined) throw new Error('no browser')
  const tab = await (await browser.newContext(options)).newPage()
  await tab.goto(entranceOf(into))
  await tab.waitForURL((each) => each.pathname === '/')
  return tab
}

async function findFaults(tab: Page, paths: readonly string[], at = origin): Promise<string[]> {
  const faults: string[] = []
  for (const path of paths) {
    await tab.goto(at + path)
    await tab.evaluate(AXE)
    for (const colorScheme of ['light', 'dark'] as const) {
      await tab.emulateMedia({ colorScheme })
      for (const width of WIDTHS) {
        await tab.setViewportSize({ width, height: 900 })
        const over = Number(await tab.evaluate('document.documentElement.scrollWidth - innerWidth'))
        if (over > 0) faults.push(`${path} is ${over} wider than ${width}`)
        const found = (await tab.evaluate(FINDINGS)) as readonly string[]
        faults.push(...found.map((each) => `${colorScheme} ${width} ${path} ${each}`))
      }
    }
  }
  return faults
}

t.test(
  'shows empty views on every width, and axe finds nothing, in both colour schemes',
  { skip },
  async (t) => {
    const tab = await openTab()
    t.strictSame(
      await findFaults(tab, [...VIEWS, '/payments?q=0x12', '/payments?show=due', '/revenue?days=1']),
      [],
    )
  },
)

t.test('fills in a call while it is made, beside its figures', { skip }, async (t) => {
  const tab = await openTab()
  const complaints: string[] = []
  tab.on('console', (message) => complaints.push(message.text()))
  tab.on('pageerror', (fault) => complaints.push(fault.message))
  await tab.locator('.live').waitFor()
  const answer = await pay(`${url}/paid/ping`)
  const id = answer.headers.get('ratecard-payment') ?? ''
  await answer.text()
  const row = tab.locator(`#call-${id}`)
  await row.getByText('delivered', { exact: true }).waitFor()
  t.equal(await tab.locator('#feed tr').count(), 1, 'the 402 has become this call')
  t.match(await row.innerText(), /402\s+\+[\d.]+ m?s\s+\+[\d.]+ m?s\s+\+[\d.]+ m?s/)
  await tab.locator('#figure-revenue').getByText('$0.001').waitFor()
  t.strictSame(complaints, [])
})

t.test('shows sales on every width, and axe finds nothing, in both colour schemes', { skip }, async (t) => {
  for (const path of ['/paid/ping', '/paid/util/workday?date=2026-11-26&country=DE'])
    await (await pay(url + path)).text()
  await (await fetch(`${url}/paid/util/workday?country=XYZ`)).text()
  const tab = await openTab()
  await tab.goto(`${origin}/payments`)
  const payment = (await tab.locator('tbody th a').first().getAttribute('href')) ?? ''
  t.match(payment, /^\/payments\/pay_/)
  t.strictSame(await findFaults(tab, [...VIEWS, payment, `${payment}/refund`]), [])
})

t.test('is used with the keyboard alone', { skip }, async (t) => {
  const tab = await openTab()
  await tab.keyboard.press('Tab')
  t.equal(await tab.evaluate('document.activeElement.textContent'), 'Skip to the content')
  await tab.keyboard.press('Enter')
  await tab.locator('#main:focus').waitFor()
  await tab.goto(`${origin}/payments`)
  await tab.locator('#q').focus()
  await tab.keyboard.type(readSandboxFile(server).evm.payTo)
  await tab.keyboard.press('Enter')
  await tab.getByText('No payment has this').waitFor()
  for (const label of ['Revenue', 'Lost sales', 'Health']) {
    await tab.goto(origin)
    for (let presses = 0; presses < 20; presses += 1) {
      await tab.keyboard.press('Tab')
      if ((await tab.evaluate('document.activeElement.textContent')) === label) break
    }
    t.not(await tab.evaluate('getComputedStyle(document.activeElement).outlineStyle'), 'none', label)
    await tab.keyboard.press('Enter')
    await tab.waitForURL((each) => each.pathname !== '/')
    t.equal(await tab.locator('h1').innerText(), label)
  }
})

t.test('is complete without scripts', { skip }, async (t) => {
  const tab = await openTab({ javaScriptEnabled: false })
  await tab.goto(origin)
  t.equal(await tab.locator('.live').isVisible(), false, 'nothing claims to be live')
  t.ok((await tab.locator('#feed tr').count()) >= 3)
  await tab.getByRole('link', { name: 'Revenue', exact: true }).click()
  t.match(await tab.locator('main').innerText(), /\$0\.00/)
  await tab.getByText('Day by day, as a table').click()
  t.ok(await tab.locator('.days').isVisible())
  await tab.goto(`${origin}/payments`)
  await tab.locator('tbody th a').last().click()
  await tab.getByRole('link', { name: /^Refund/ }).click()
  await tab.getByRole('button', { name: /^Send .* back$/ }).click()
  await tab.getByText('The refund was sent and is in a block.').waitFor()
})

t.test('shows nothing to a page of another site in the same browser', { skip }, async (t) => {
  const tab = await openTab()
  await tab.goto(url)
  const read = await tab.evaluate(
    `Promise.all(['/', '/payments', '/revenue.csv'].map((path) =>
      fetch(${JSON.stringify(origin)} + path, { credentials: 'include' }).then((answer) => answer.text(), () => 'refused')))`,
  )
  t.strictSame(read, ['refused', 'refused', 'refused'])
})

t.test(
  'says in each view that the node or the ledger is away, and what to do',
  { skip: skip || (redisAbsence() ?? false) },
  async (t) => {
    const redis = await startRedis()
    t.teardown(() => redis.stop())
    const shop = await openShop(
      async () => ({ REDIS_URL: redis.url }),
      ['--console', '--handlers', fileURLToPath(new URL('../fixtures/payments/handlers', import.meta.url))],
    )
    t.teardown(() => shop.close())
    const at = new URL(entranceOf(shop.server)).origin
    const buy = stockFetch(await shop.wallet())
    t.equal((await buy(`${shop.url}/paid/work?n=1`)).status, 200)
    const tab = await openTab({}, shop.server)

    shop.node.set('down')
    t.not((await buy(`${shop.url}/paid/work?n=2`)).status, 200)
    await until('the network is shown as closed', async () => {
      await tab.goto(at)
      return /Nothing is sold on Base: /.test(await tab.locator('main').innerText())
    })
    await tab.goto(`${at}/health`)
    t.match(await tab.locator('main').innerText(), /Base eip155:8453 closed/)
    t.strictSame(await findFaults(tab, ['/', '/health'], at), [])

    await redis.kill()
    const away = new RegExp(`cannot be reached, and nothing is sold: .*${redis.port}`)
    for (const path of ['/', '/revenue', '/lost-sales', '/payments', '/buyers']) {
      const answer = await tab.goto(at + path)
      t.equal(answer?.status(), 503, path)
      const said = await tab.getByRole('alert').innerText()
      t.match(said, away, path)
      t.match(said, /Look at its server/, path)
      t.ok(await tab.getByRole('link', { name: 'Health', exact: true }).isVisible(), path)
    }
    for (const path of ['/catalog', '/routes', '/listings', '/health']) {
      await tab.goto(at + path)
      t.match(await tab.locator('main').innerText(), path === '/health' ? /Ledger: redis/ : /\w/, path)
    }
    await tab.goto(`${at}/health`)
    t.equal(await tab.locator('dd .state').first().getAttribute('data-state'), 'down')
    t.strictSame(await findFaults(tab, ['/revenue', '/health'], at), [])
    await redis.restart()
    await until('the ledger is back', async () => (await tab.goto(`${at}/payments`))?.status() === 200)
    t.equal(await tab.locator('tbody tr').count(), 1, 'the sale is there again')
  },
)
