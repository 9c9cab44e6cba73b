/** Takes the pictures of README from a running sandbox: the page of a route with a sold answer, and the console after sales. */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { stockFetch } from '../../support/payment.ts'
import { readSandboxFile, startServer } from '../../support/server.ts'
import { findBrowser, openBrowser } from './browser.ts'

const PLACE = new URL('../../../.github/', import.meta.url)
const SOLD = [
  '/paid/ping',
  '/paid/gamestore/top-sellers?country=DE',
  '/paid/gamestore/deals',
  '/paid/util/workday?date=2026-11-26&country=DE',
  '/paid/util/email-verify?email=someone@example.com',
  '/paid/gamestore/app/730',
]
/** Asked for and not bought. */
const LOST = ['/paid/streaming/hype', '/paid/util/workday?country=XYZ', '/paid/bundle/market-snapshot']

async function openTab(browser: Browser): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    colorScheme: 'light',
    reducedMotion: 'reduce',
  })
  return context.newPage()
}

/** WebP is a third of a PNG. */
async function take(tab: Page, name: string): Promise<void> {
  const session = await tab.context().newCDPSession(tab)
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 80 })
  const bytes = Buffer.from(data, 'base64')
  const file = new URL(`${name}.webp`, PLACE)
  writeFileSync(file, bytes)
  console.log(`${fileURLToPath(file)}: ${bytes.length} bytes`)
}

const program = findBrowser()
if (program === undefined) throw new Error('there is no Chromium: apt-get install chromium')
const server = await startServer({ args: ['--sandbox', '--offline'] })
const browser = await openBrowser(program)
try {
  const pay = stockFetch(readSandboxFile(server).evm.payerKey)
  const operator = await openTab(browser)
  const [, entrance = ''] = /^console: (\S+)$/m.exec(server.output()) ?? []
  await operator.goto(entrance)
  await operator.waitForURL((each) => each.pathname === '/')
  await operator.locator('.live').waitFor()
  for (const path of LOST) await (await fetch(server.url + path)).text()
  for (const path of SOLD) await (await pay(server.url + path)).text()
  await operator
    .getByText('delivered', { exact: true })
    .nth(SOLD.length - 1)
    .waitFor()
  await operator.reload()
  await operator.locator('.live').waitFor()
  await take(operator, 'console')

  const page = await openTab(browser)
  await page.goto(`${server.url}/docs/paid_gamestore_top-sellers`)
  await page.getByRole('tab', { name: 'JavaScript' }).waitFor()
  await take(page, 'page')
} finally {
  await browser.close()
  await server.stop()
}
