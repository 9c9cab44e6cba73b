import t from 'tap'
import { at } from '../support/documents.ts'
import { findBrowser, openBrowser } from './support/browser.ts'
import { BASE_URL, objectIn, openProductionService, paid, samples } from './support/shipped-service.ts'

const service = await openProductionService(t)
const PAGES = ['/', '/docs', '/docs/errors', '/docs/paid_util_workday', '/status', '/privacy']
const HTML = { Accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8' }

t.test('allows scripts of its own origin alone, and no frame, on every page', async (t) => {
  for (const path of [...PAGES, '/paid/ping']) {
    const answer = await service.ask(path, { headers: HTML })
    const html = await answer.text()
    t.match(answer.headers.get('content-type'), /^text\/html; charset=utf-8/, path)
    const policy = answer.headers.get('content-security-policy') ?? ''
    t.match(policy, /default-src 'none'/, path)
    t.match(policy, /frame-ancestors 'none'/, path)
    t.match(policy, /script-src 'self';/, path)
    t.notMatch(policy, /unsafe|\*|https?:/, path)
    t.notMatch(html, /<script(?! type="module" src="\/)|\son\w+\s*=|javascript:/i, path)
    t.equal(html.match(/<h1[\s>]/g)?.length, 1, `${path} has one main heading`)
    t.match(html, /<html lang="[a-z]{2}"/, path)
    t.match(html, /<title>[^<]+<\/title>/, path)
    t.match(html, /<meta name="viewport"/, path)
  }
})

t.test('signs for nobody outside of a sandbox', async (t) => {
  const answer = await service.ask('/sandbox/wallet', { method: 'POST', body: '{"method":"eth_chainId"}' })
  t.equal(answer.status, 404)
  const page = await (await service.ask('/paid/ping', { headers: HTML })).text()
  t.notMatch(page, 'data-wallet')
  t.equal(page.match(/<button type="button" hidden data-network=/g)?.length, 4, 'one for each network')
})

t.test('shows everything that is sold, with its price, to a reader without scripts', async (t) => {
  const docs = await service.read('/docs')
  const home = await (await service.ask('/', { headers: HTML })).text()
  for (const { path, price } of paid)
    for (const [name, page] of Object.entries({ docs, home })) {
      const row = page.split('<tr').find((each) => each.includes(`<code>${path}</code>`)) ?? ''
      t.match(row, `$${shorten(price)}`, `${path} in ${name}`)
    }
  const status = await service.read('/status')
  for (const { path } of paid) t.match(status, path)
})

t.test('answers every link of every page', async (t) => {
  for (const page of PAGES) {
    const html = await (await service.ask(page, { headers: HTML })).text()
    const ids = new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id))
    const targets = new Set([...html.matchAll(/\shref="([^"]+)"/g)].map(([, target = '']) => target))
    for (const rel of ['describedby', 'alternate', 'service-desc'])
      if (page === '/docs') t.match(html, new RegExp(`<link rel="${rel}"`), rel)
    for (const target of targets) {
      if (target.startsWith('#')) t.ok(ids.has(target.slice(1)), `${page} ${target}`)
      else if (target.startsWith('/') || target.startsWith(BASE_URL)) {
        const [path = ''] = target.split('#')
        if (!path.startsWith('/sample/'))
          t.ok([200, 402].includes((await service.ask(path)).status), `${page} ${target}`)
      }
    }
  }
})

t.test('serves the front page as HTML to people and JSON to programs', async (t) => {
  for (const accept of ['application/json', '*/*', 'application/json, text/html;q=0.5']) {
    const answer = await service.ask('/', { headers: { Accept: accept } })
    t.match(answer.headers.get('content-type'), /^application\/json/, accept)
    t.match(answer.headers.get('vary'), /\bAccept\b/)
    t.match(at(objectIn(await answer.text()), 'counts'), { paid: paid.length, sample: samples.length })
  }
  const page = await service.ask('/', { headers: HTML })
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
  'loads every part of a page in a browser, all from its own host',
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
      await tab.goto(service.url + path)
      t.ok((await tab.locator('h1').innerText()).length > 0, path)
      t.ok(Number(await tab.evaluate('document.styleSheets.length')) > 0, `${path} has its style`)
    }
    const own = complaints.filter((text) => !/status of 402/.test(text))
    t.strictSame(own, [])
    t.strictSame(
      asked.filter((url) => !url.startsWith(service.url)),
      [],
    )
  },
)

/** What can be used by keyboard on a page without forms, and of each whether one sees that it has the focus. */
const WATCH = `
  const due = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
    .filter((each) => each.checkVisibility())
  globalThis.met = []
  document.addEventListener('focusin', ({ target }) => {
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(target)
    const { left, right, top, bottom } = target.getBoundingClientRect()
    const drawn = outlineStyle === 'solid' && parseFloat(outlineWidth) >= 2 && !/, 0\\)|transparent/.test(outlineColor)
    const there = right > 0 && left < innerWidth && bottom > 0 && top < innerHeight
    met.push({ place: due.indexOf(target), seen: drawn && there, tag: target.outerHTML.slice(0, 80) })
  })
  due.length`

interface Met {
  readonly place: number
  readonly seen: boolean
  readonly tag: string
}

t.test(
  'leads the keyboard to every link, visibly and in order',
  { skip: browser === undefined && 'needs Chromium' },
  async (t) => {
    const opened = await openBrowser(browser ?? '')
    t.teardown(() => opened.close())
    const tab = await opened.newPage()
    for (const path of ['/docs', '/', '/status']) {
      await tab.goto(service.url + path)
      const due = await tab.evaluate<number>(WATCH)
      t.ok(due > 5, path)
      for (let pressed = 0; pressed < due; pressed += 1) await tab.keyboard.press('Tab')
      const met = await tab.evaluate<Met[]>('met')
      t.strictSame(
        met.map(({ place }) => place),
        Array.from({ length: due }, (_, place) => place),
        `${path}: everything, in the order it is written`,
      )
      t.strictSame(
        met.filter(({ seen }) => !seen).map(({ tag }) => tag),
        [],
        `${path}: the focus is seen`,
      )
      t.match(met[0]?.tag, 'class="skip"', path)

      await tab.goto(service.url + path)
      await tab.keyboard.press('Tab')
      await tab.keyboard.press('Enter')
      await tab.waitForURL(/#main\.content$/)
      await tab.keyboard.press('Tab')
      const first = `document.querySelector('main :is(a[href], summary, input, button, [tabindex="0"])') === document.activeElement`
      t.equal(await tab.evaluate(first), true, `${path}: what comes first in the content is next`)
    }
  },
)

/** Words of a page that are not shown, but for the names of drawings and what a summary opens. */
const UNSEEN = `(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const unseen = []
  while (walker.nextNode()) {
    const { data, parentElement } = walker.currentNode
    const shown = parentElement.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    const meant = parentElement.closest('svg title, details:not([open])') !== null
    if (data.trim() !== '' && !shown && !meant) unseen.push(data)
  }
  return unseen
})()`

t.test(
  'shows each price with its route without the style sheet',
  { skip: browser === undefined && 'needs Chromium' },
  async (t) => {
    const opened = await openBrowser(browser ?? '')
    t.teardown(() => opened.close())
    const tab = await opened.newPage()
    let refused = 0
    await tab.route('**/brand.css', (route) => {
      refused += 1
      return route.abort()
    })
    for (const [count, path] of ['/docs', '/', '/status'].entries()) {
      await tab.goto(service.url + path)
      t.equal(refused, count + 1, `${path} is without its style`)
      t.strictSame(await tab.evaluate(UNSEEN), [], `${path}: all words are shown`)
      // As it is shown, from the top.
      const shown = squeeze(await tab.locator('body').innerText())
      const marks = await tab.locator('h1, h2, h3, h4, main th, main .price').allTextContents()
      t.ok(marks.length > 2, path)
      let from = 0
      for (const mark of marks.map(squeeze)) {
        const found = shown.indexOf(mark, from)
        t.ok(found >= from, `${path}: ${mark}`)
        from = Math.max(from, found)
      }
    }
  },
)

function squeeze(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

/** As people write a price: without the zeros at its end. */
function shorten(price: string): string {
  return price.replace(/(\.\d\d\d*?)0+$/, '$1')
}
