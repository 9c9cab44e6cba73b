import t from 'tap'
import { at } from '../support/documents.ts'
import { findBrowser, openBrowser } from './support/browser.ts'
import { BASE_URL, objectIn, openMarket, paid, samples } from './support/market.ts'

t.setTimeout(120_000)

const market = await openMarket(t)
const PAGES = ['/', '/docs', '/docs/errors', '/status', '/privacy']
const HTML = { Accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8' }

t.test('a page that runs scripts, or lets others frame it, is a page somebody can abuse', async (t) => {
  for (const path of [...PAGES, '/paid/ping']) {
    const answer = await market.ask(path, { headers: HTML })
    const html = await answer.text()
    t.match(answer.headers.get('content-type'), /^text\/html; charset=utf-8/, path)
    const policy = answer.headers.get('content-security-policy') ?? ''
    t.match(policy, /default-src 'none'/, path)
    t.match(policy, /frame-ancestors 'none'/, path)
    t.notMatch(policy, /unsafe|\*|https?:|script-src/, path)
    t.notMatch(html, /<script|\son\w+\s*=|javascript:/i, path)
    t.equal(html.match(/<h1[\s>]/g)?.length, 1, `${path} has one main heading`)
    t.match(html, /<html lang="[a-z]{2}"/, path)
    t.match(html, /<title>[^<]+<\/title>/, path)
    t.match(html, /<meta name="viewport"/, path)
  }
})

t.test('a reader without scripts, as agents are, misses what is sold and for how much', async (t) => {
  const docs = await market.read('/docs')
  const home = await (await market.ask('/', { headers: HTML })).text()
  for (const { path, price } of paid) {
    const amount = Number(price).toFixed(6)
    const [, article = ''] = docs.split(`>GET ${path}</a>`)
    t.match(article.slice(0, 200), amount, `${path} in /docs`)
    const row = home.split('<tr').find((each) => each.includes(`<code>${path}</code>`)) ?? ''
    t.match(row, amount, `${path} in /`)
  }
  const status = await market.read('/status')
  for (const { path } of paid) t.match(status, path)
})

t.test('a link of a page leads nowhere', async (t) => {
  for (const page of PAGES) {
    const html = await (await market.ask(page, { headers: HTML })).text()
    const ids = new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id))
    const targets = new Set([...html.matchAll(/\shref="([^"]+)"/g)].map(([, target = '']) => target))
    for (const rel of ['describedby', 'alternate', 'service-desc'])
      if (page === '/docs') t.match(html, new RegExp(`<link rel="${rel}"`), rel)
    for (const target of targets) {
      if (target.startsWith('#')) t.ok(ids.has(target.slice(1)), `${page} ${target}`)
      else if (target.startsWith('/') || target.startsWith(BASE_URL)) {
        const [path = ''] = target.split('#')
        if (!path.startsWith('/sample/'))
          t.ok([200, 402].includes((await market.ask(path)).status), `${page} ${target}`)
      }
    }
  }
})

t.test('the front page gives programs a page, or people JSON', async (t) => {
  for (const accept of ['application/json', '*/*', 'application/json, text/html;q=0.5']) {
    const answer = await market.ask('/', { headers: { Accept: accept } })
    t.match(answer.headers.get('content-type'), /^application\/json/, accept)
    t.match(answer.headers.get('vary'), /\bAccept\b/)
    t.match(at(objectIn(await answer.text()), 'counts'), { paid: paid.length, sample: samples.length })
  }
  const page = await market.ask('/', { headers: HTML })
  t.match(page.headers.get('vary'), /\bAccept\b/)
  const html = await page.text()
  // What x402scan shows of a service.
  for (const tag of ['<title>', '<meta name="description"', '<meta property="og:title"', '<link rel="icon"'])
    t.match(html, tag)
  const link = page.headers.get('link') ?? ''
  for (const rel of ['service-desc', 'service-doc', 'api-catalog', 'describedby', 'ard', 'ai-catalog'])
    t.match(link, `rel="${rel}"`)
})

const browser = findBrowser()
if (browser === undefined && process.env['CI'] === '1')
  t.fail('there is no Chromium: apt-get install chromium')

t.test(
  'a browser refuses a part of a page, or fetches one from elsewhere',
  { skip: browser === undefined && 'needs Chromium' },
  async (t) => {
    const opened = await openBrowser(browser ?? '')
    t.teardown(() => opened.close())
    const tab = await opened.newPage()
    const complaints: string[] = []
    const asked: string[] = []
    tab.on('console', (message) => complaints.push(message.text()))
    tab.on('pageerror', (fault) => complaints.push(fault.message))
    tab.on('response', (response) => {
      asked.push(response.url())
      if (response.status() >= 400 && !response.url().includes('/paid/'))
        complaints.push(`${response.status()} ${response.url()}`)
    })
    for (const path of [...PAGES, '/paid/ping']) {
      await tab.goto(market.url + path)
      t.ok((await tab.locator('h1').innerText()).length > 0, path)
      t.ok(Number(await tab.evaluate('document.styleSheets.length')) > 0, `${path} has its style`)
    }
    const own = complaints.filter((text) => !/status of 402/.test(text))
    t.strictSame(own, [])
    t.strictSame(
      asked.filter((url) => !url.startsWith(market.url)),
      [],
    )
  },
)
