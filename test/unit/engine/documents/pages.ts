import t from 'tap'
import { type Catalog, examplePath } from '../../../../src/engine/catalog/catalog.ts'
import { formatPrice, toMicros } from '../../../../src/engine/base/money.ts'
import { documents } from '../../../../src/engine/documents/all.ts'
import { javascriptForAny } from '../../../../src/engine/documents/example-programs.ts'
import { operationPath, type Facts } from '../../../../src/engine/documents/registry.ts'
import { pagedRoutes, renderOperation } from '../../../../src/engine/documents/operation-page.ts'
import { viewRoute } from '../../../../src/engine/documents/operation-view.ts'
import { renderPaymentPage } from '../../../../src/engine/documents/payment-page.ts'
import { serverPages } from '../../../../src/engine/documents/mcp-server-page.ts'
import { ERRORS } from '../../../../src/engine/base/errors.ts'
import { operationPages } from '../../../../src/engine/http/rendered-pages.ts'
import { UNPAID } from '../../../../src/engine/http/payment-required.ts'
import { compileHarbour, FACTS, HARBOUR, render, WITH_SERVER } from '../../../support/documents.ts'

const harbour = compileHarbour()

/** Every page there is, by the name of its document, as a catalog makes them. */
function pagesOf(catalog: Catalog, facts: Facts = FACTS): [string, string][] {
  return [
    ...documents.flatMap(({ name, type, page, render: renderIt }): [string, string][] => {
      if (page !== undefined) return [[name, page(catalog, facts)]]
      return type.startsWith('text/html') ? [[name, renderIt(catalog, facts)]] : []
    }),
    ...serverPages(catalog, facts).map(({ path, text }): [string, string] => [path, text]),
    ...pagedRoutes(catalog).map((route): [string, string] => [
      operationPath(catalog, route) ?? '',
      renderOperation(catalog, facts, route, 'page'),
    ]),
    ...paymentPages(catalog, facts),
  ]
}

function paymentPages(catalog: Catalog, facts: Facts): [string, string][] {
  return catalog.routes.flatMap((route): [string, string][] => {
    const { price } = route.operation
    if (route.kind !== 'paid' || price === undefined || typeof price === 'object') return []
    const url = `${facts.baseUrl}${route.path}?q='"><script>x`
    const problem = {
      title: 'Payment required',
      detail: UNPAID.detail,
      price: { amount: formatPrice(price), currency: 'USD' },
      accepts: facts.paymentRequired(route)?.['accepts'] ?? [],
      docs: facts.baseUrl + (operationPath(catalog, route) ?? ''),
    }
    return [[`402 of ${route.name}`, renderPaymentPage({ catalog, facts, route, url, problem }).html]]
  })
}

function all(pattern: RegExp, text: string): string[] {
  return [...text.matchAll(pattern)].map((match) => match[1] ?? '')
}

function idsOf(page: string): string[] {
  return all(/\sid="([^"]*)"/g, page)
}

const shops: readonly (readonly [string, Catalog, Facts])[] = [
  ['the harbour', harbour, FACTS],
  ['a sandbox', harbour, { ...FACTS, sandbox: true }],
  ['a shop with an MCP server', harbour, WITH_SERVER],
  ['a shop without MPP and x402', harbour, { ...FACTS, protocols: [], paymentRequired: () => undefined }],
  [
    'a shop with one free route',
    compileHarbour(
      "catalog: 1\nservice: { name: Bare, version: '1' }\nroutes:\n  /clock: { price: free, handler: clock, summary: Tells the time }\n",
    ),
    { ...FACTS, protocols: [], paymentRequired: () => undefined },
  ],
  [
    'a shop whose paths are the names of sections',
    compileHarbour(
      HARBOUR.replace(
        '  /clock:',
        [
          '  /main-content: { price: free, handler: clock, summary: A }',
          '  /docs_payment: { price: free, handler: clock, summary: B }',
          '  /category_ships: { price: free, handler: clock, summary: C }',
          '  /clock:',
        ].join('\n'),
      ),
    ),
    FACTS,
  ],
]

for (const [shop, catalog, facts] of shops) {
  t.test(`${shop} works with screen reader and keyboard`, async (t) => {
    for (const [name, page] of pagesOf(catalog, facts)) {
      t.match(page, /^<!doctype html>\n<html lang="en">/, name)
      t.equal(all(/<(h1)\b/g, page).length, 1, `${name} has one h1`)
      for (const landmark of ['header', 'main', 'footer'])
        t.equal(all(new RegExp(`<(${landmark})\\b`, 'g'), page).length, 1, `${name} has one ${landmark}`)
      t.match(page, /<a class="skip" href="#main\.content">/, name)
      t.match(page, /<title>[^<]+<\/title>/, name)
      t.match(page, /<meta name="viewport" content="width=device-width, initial-scale=1">/, name)
      const tables = page.split('<table').slice(1)
      for (const table of tables) {
        t.match(table, /<caption>[^<]+<\/caption>/, `${name}: a table says what it shows`)
        t.notMatch(table.split('</table>')[0], /<th\b(?![^>]*\sscope=)/, `${name}: a heading says of what`)
      }
      const levels = all(/<h([1-6])\b/g, page).map(Number)
      for (const [index, level] of levels.entries())
        t.ok(level <= (levels[index - 1] ?? 0) + 1, `${name} leaves no level of headings out`)
    }
  })

  t.test(`every link inside ${shop} resolves`, async (t) => {
    const pages = new Map(pagesOf(catalog, facts))
    const places = new Map(
      Object.entries(catalog.documents).flatMap(([name, { paths }]) => paths.map((path) => [path, name])),
    )
    for (const { path } of serverPages(catalog, facts)) places.set(path, path)
    for (const route of pagedRoutes(catalog)) {
      const path = operationPath(catalog, route) ?? ''
      places.set(path, path).set(`${path}.md`, '').set(examplePath(route), '')
    }
    for (const [name, page] of pages) {
      const ids = idsOf(page)
      t.strictSame(ids, [...new Set(ids)], `${name}: every id once`)
      for (const id of [...all(/aria-labelledby="([^"]*)"/g, page), ...all(/href="#([^"]*)"/g, page)])
        t.ok(ids.includes(id), `${name}: #${id}`)
      for (const link of all(/href="(\/[^"]*)"/g, page)) {
        const [path = '', fragment] = link.split('#')
        const target = places.get(path)
        t.ok(target !== undefined || /^\/(?:brand\.css|favicon\.(?:svg|ico))$/.test(path), `${name}: ${link}`)
        if (fragment !== undefined && target !== undefined)
          t.ok(idsOf(pages.get(target) ?? '').includes(fragment), `${name}: ${link}`)
      }
    }
  })

  t.test(
    `every page of ${shop} takes scripts, styles and pictures from files of its own origin`,
    async (t) => {
      for (const [name, page] of pagesOf(catalog, facts)) {
        t.notMatch(page, /<iframe|<object|<embed|\son[a-z]+=|javascript:|@import|\surl\(/i, name)
        t.notMatch(page, /<script(?! type="module" src="\/(?:page|pay)\.js"><\/script>)/i, name)
        t.ok(
          all(/<form[^>]*\saction="([^"]*)"/g, page).every((path) => /^\/(?!\/)/.test(path)),
          name,
        )
        t.notMatch(page.replace(/<style>.*<\/style>/s, ''), /\sstyle=/, name)
        const loaded = [...all(/<link[^>]+rel="(?:stylesheet|icon)"[^>]*href="([^"]*)"/g, page)]
        t.ok(
          loaded.every((path) => path.startsWith('/') && !path.startsWith('//')),
          name,
        )
      }
    },
  )
}

t.test('shows every paid path with its price in the raw text of the pages', async (t) => {
  for (const route of harbour.routes) {
    const { kind, operation, name } = route
    if (kind !== 'paid' || operation.planned || operation.price === undefined) continue
    const { name: key, title, price, call } = viewRoute(harbour, FACTS, route)
    t.match(render('docs-md'), `### ${title}: ${price}\n\n\`${call}\`\n`)
    const [[, home] = ['', '']] = pagesOf(harbour)
    for (const html of [home, render('docs')])
      t.match(
        html,
        new RegExp(
          `<a href="/docs/${name}">${title}</a> <code>${key.replace(/[{}]/g, '\\$&')}</code>.*<td class="price">\\${price}</td>`,
        ),
      )
  }
})

t.test('shows a request that answers when copied, and a client with a spending limit', async (t) => {
  const [tides = '', moves = ''] = pagedRoutes(harbour).map((route) =>
    renderOperation(harbour, FACTS, route, 'page'),
  )
  t.match(tides, 'curl -i &#x27;https://harbour.example/paid/tides/bristol&#x27;')
  t.match(moves, 'curl -i &#x27;https://harbour.example/paid/ships/moves?ports&#x3D;bristol,cork&#x27;')
  t.match(
    tides,
    /<code>import \{ wrapFetchWithPayment[^<]*\nconst url &#x3D; &#x27;https:\/\/harbour\.example\/paid\/tides\/bristol&#x27;\n/,
  )
  t.match(
    tides,
    'x402_requests(client).request(&#x27;GET&#x27;, &#x27;https://harbour.example/paid/tides/bristol&#x27;)',
  )
  // The price of the page, and where any route can be paid, that of the dearest one.
  for (const cap of [
    'maxAmountPerPayment: &#x27;$0.005&#x27;',
    'max_amount(5000)',
    'Pays at most $0.005 for a call.',
  ])
    t.match(tides, cap)
  t.match(render('docs-md'), `\`\`\`js\n${javascriptForAny(toMicros(1_000_000n))}\n\`\`\``)
  t.notMatch(render('docs', harbour, { ...FACTS, protocols: ['mpp'] }), 'wrapFetchWithPayment')
})

t.test('shows the rules of a parameter in its row', async (t) => {
  const rows = render('docs-md')
  t.match(rows, '| `days` | integer | no | `2` | 1 to 14 |  |  |')
  t.match(
    rows,
    '| `ports` | list of strings | yes |  |  | `bristol,cork` | Comma-separated, 1 to 3 values. |',
  )
  t.match(
    rows,
    '| `kind` | string | no | `all` | all, arrivals, departures |  | Also understood: in for arrivals. |',
  )
  t.match(rows, '| `since` | date | no |  | YYYY-MM-DD |  |  |')
  t.match(rows, '| `berth` | integer, in the path | yes |  | from 1 | `7` |  |')
})

t.test(
  'gives each route a page with what it costs, takes and answers, and a form to try and to buy it',
  async (t) => {
    const route = harbour.routes.find(({ path }) => path === '/paid/tides/{port}')
    if (route === undefined) throw new Error('no route')
    t.equal(operationPath(harbour, route), '/docs/paid_tides_port')
    const page = renderOperation(harbour, FACTS, route, 'page')
    t.match(page, '<span class="price">$0.005</span> per call')
    t.match(page, '<form class="request" id="call" method="get" action="/paid/tides/bristol"')
    t.match(page, 'data-sample="/sample/tides"')
    t.match(page, /<button class="quiet"[^>]*>Run free sample<\/button>\n[^]*>Buy for \$0\.005<\/button>/)
    t.match(page, '<label for="call.days"><code>days</code></label>')
    t.match(
      page,
      /<th scope="row"><code>fetched_at|<th scope="row"><code>\w+(\[\])?\.?\w*<\/code><\/th><td data-label="Type">/,
    )
    t.match(page, '<section data-title="curl">')
    const markdown = renderOperation(harbour, FACTS, route, 'markdown')
    t.match(markdown, /^# Tides: \$0\.005\n\n`GET https:\/\/harbour\.example\/paid\/tides\/\{port\}`\n/)
    t.match(markdown, '| `days` | integer | no | `2` |')
  },
)

t.test('has a form for every call and its sample, with any kind of parameters', async (t) => {
  const catalog = compileHarbour(
    HARBOUR.replace(
      '  /clock:',
      [
        '  POST /paid/chart: { price: 0.01, handler: clock, summary: Draws, sample: true,',
        '    body: { properties: { ports: { type: string, list: { items: integer, max_items: 3 }, example: "1,2" } } } }',
        '  POST /paid/plan: { price: 0.01, handler: clock, summary: Plans, sample: true,',
        '    body: { media_type: text/plain, example: "From <here> to there" } }',
        '  PUT /paid/photo: { price: 0.01, handler: clock, summary: Keeps, body: { media_type: image/png } }',
        '  /clock:',
      ].join('\n'),
    ),
  )
  const page = (name: string): string => {
    const route = catalog.routes.find((each) => each.name === name)
    if (route === undefined) throw new Error(`no route ${name}`)
    return renderOperation(catalog, FACTS, route, 'page')
  }
  const chart = page('post_paid_chart')
  t.match(
    chart,
    /<form class="request" id="call" [^>]*data-path="\/paid\/chart" data-method="POST" data-media="application\/json" data-sample="\/sample\/chart" hidden>/,
  )
  t.match(chart, 'data-place="body" data-type="list of integer"')
  t.match(chart, 'data&#x3D;&quot;{\\&quot;ports\\&quot;:[1,2]}&quot;.encode()')
  t.match(chart, /<noscript><p>This form needs scripts/)
  t.match(page('post_paid_plan'), /<textarea id="call\.body"[^>]*>From &lt;here&gt; to there<\/textarea>/)
  t.match(page('put_paid_photo'), '<input type="file" id="call.body" data-place="whole" required>')
  t.match(page('put_paid_photo'), 'data&#x3D;open(&#x27;body&#x27;, &#x27;rb&#x27;).read()')
  const home = documents.find(({ name }) => name === 'index')?.page?.(catalog, FACTS) ?? ''
  for (const [, path = ''] of home.matchAll(/href="(\/docs\/\w+)#call"/g))
    t.match(page(path.slice('/docs/'.length)), 'id="call"', path)
})

t.test('shows the icon of the service with a link to a page, and a card where there is none', async (t) => {
  const card = render('docs')
  t.match(card, '<meta property="og:image" content="https://harbour.example/card.png">')
  t.match(card, '<meta name="twitter:card" content="summary_large_image">')
  const iconed = (icon: string): string =>
    render('docs', compileHarbour(HARBOUR.replace('  card_version:', `  icon: '${icon}'\n  card_version:`)))
  const own = iconed('https://office.example/harbour.png')
  t.match(own, '<meta property="og:image" content="https://office.example/harbour.png">')
  t.match(own, '<meta name="twitter:card" content="summary">')
  t.notMatch(own, 'og:image:width')
  t.match(iconed('https://office.example/harbour.svg'), 'content="https://harbour.example/card.png"')
})

t.test(
  'shows who is paid what on which network before anything is signed, and what a price is made of',
  async (t) => {
    const route = harbour.routes.find(({ path }) => path === '/paid/tides/{port}')
    if (route === undefined) throw new Error('no route')
    const parts = [
      { part: 'base', amount: '0.001' },
      { part: 'characters_of text', count: 2500, units: 3, amount: '0.0015' },
    ]
    const problem = {
      title: 'Payment required',
      detail: UNPAID.detail,
      price: {
        amount: '0.002500',
        currency: 'USD',
        rule: '0.001 + 0.0005 per 1,000 characters of text',
        parts,
      },
      accepts: FACTS.paymentRequired(route)?.['accepts'] ?? [],
    }
    const asked = { catalog: harbour, facts: FACTS, route, url: 'https://harbour.example/paid/tides/bristol' }
    const { html, policy } = renderPaymentPage({ ...asked, problem })
    t.match(policy, "script-src 'self'")
    t.match(html, '<span class="price">$0.0025</span> for this call')
    t.match(html, '<tr><td>characters_of text, 3 units</td><td class="price">$0.0015</td></tr>')
    t.match(html, '<tr><th scope="row">Base</th><td data-label="Amount" class="price">0.005 USDC</td>')
    t.match(html, '<code>0x1111111111111111111111111111111111111111</code>')
    t.match(html, /data-chain="0x2105" data-coin="ETH" data-rpc="https:\/\/mainnet\.base\.org"/)
    t.notMatch(html, 'data-wallet', 'a wallet of others exists in a sandbox only')
    const sandbox = renderPaymentPage({ ...asked, facts: { ...FACTS, sandbox: true }, problem }).html
    t.match(sandbox, 'data-wallet="/sandbox/wallet"')
    const failing = { ...problem, would_fail: { status: 422, detail: 'no such port' } }
    t.notMatch(renderPaymentPage({ ...asked, problem: failing }).html, 'id="wallet"')
  },
)

t.test('renders the page of a route at its first request, once', async (t) => {
  let rendered = 0
  const available = (): boolean => {
    rendered += 1
    return true
  }
  const pageAt = operationPages(harbour, { ...FACTS, available })
  t.equal(rendered, 0)
  const page = pageAt('/docs/paid_tides_port')
  const once = rendered
  t.ok(once > 0)
  t.equal(page, pageAt('/docs/paid_tides_port'))
  t.equal(rendered, once)
  t.match(pageAt('/docs/paid_tides_port.md')?.type, 'text/markdown')
  t.equal(pageAt('/docs/sample_tides'), undefined, 'a sample is on the page of what it shows')
  t.equal(pageAt('/docs/errors'), undefined)
})

t.test('marks what is unavailable now', async (t) => {
  const facts: Facts = { ...FACTS, available: ({ id }) => id !== 'tides' }
  t.equal(render('docs', harbour, facts).split('Not available now.').length, 2, 'one route')
  const [tides] = pagedRoutes(harbour)
  if (tides === undefined) throw new Error('no route')
  t.match(
    renderOperation(harbour, facts, tides, 'page'),
    'Not available now: answers 503, which is not charged.',
  )
  t.notMatch(render('docs'), 'Not available now')
})

t.test('names exactly the servers that are served, each with its tools and its page', async (t) => {
  t.notMatch(render('docs'), /Harbour log|log_note/)
  const served = render('docs', harbour, WITH_SERVER)
  t.match(served, 'At <code>https://harbour.example/mcp/log</code>.')
  t.match(served, '<a href="/docs/servers/log">Harbour log</a>')
  t.match(served, '<a href="/docs/servers/log#tool.log_note">Harbour note</a> <code>log_note</code>')
})

t.test('links the address in a problem to the row of its code', async (t) => {
  const page = render('docs-errors')
  for (const [code, { status, title }] of Object.entries(ERRORS)) {
    const [, row = ''] = page.split(`<tr id="${code}">`)
    t.match(
      row.split('</tr>')[0],
      `<td data-label="Status">${status}</td><td data-label="Meaning">${title}</td>`,
      code,
    )
  }
})

t.test('takes the figures of the privacy page from the catalog', async (t) => {
  const page = render('privacy')
  t.match(page, 'For 1 day after the payment')
  t.match(page, '<code>/paid/tides/{port}</code></th><td data-label="Fresh for">10 minutes</td>')
  t.match(page, '<a href="mailto:harbour@example.com">')
  const other = compileHarbour(
    HARBOUR.replace('\n  currency: USD\n', '\n  currency: USD\n  redeliver: 36h\n'),
  )
  t.match(render('privacy', other), 'For 36 hours after the payment')
  const bare = compileHarbour(
    "catalog: 1\nservice: { name: Bare, version: '1' }\nroutes:\n  /clock: { price: free, handler: clock, summary: Tells the time }\n",
  )
  t.match(render('privacy', bare), 'Ask the operator of this service.')
  t.notMatch(render('privacy', bare), /wallet|chain|Ratecard-Payment/)
})

const HOSTILE = `</title></style><script>alert(1)</script>"'\`|[a](javascript:x)<img src=x onerror=y> &lt; {{name}}`
/** The same as a double-quoted scalar of YAML. */
const QUOTED = JSON.stringify(HOSTILE)

const changed = compileHarbour(
  HARBOUR.replace('name: Harbour data', `name: ${JSON.stringify(`<script>"'\`|[a](x)&lt;{{b}}`)}`)
    .replace('description: Tides and ship movements for agents, sold per call', `description: ${QUOTED}`)
    .replace('summary: Returns the next high and low waters of a port', `summary: ${QUOTED}`)
    .replace('use_when: You plan an arrival and know the port.', `use_when: ${QUOTED}`)
    .replace('description: Heights are in metres above chart datum.', `description: ${QUOTED}`)
    .replace('description: Name of the port', `description: ${QUOTED}`)
    .replace('tides: Tides & currents', `tides: ${QUOTED}`)
    .replace(
      "title: Tide tables, url: 'https://tides.example'",
      `title: ${QUOTED}, attribution: ${QUOTED}, url: 'javascript:alert(1)'`,
    )
    .replace("example: { time: '12:00' }", `example: { time: ${QUOTED} }`)
    .replace('enum: [all, arrivals, departures]', `enum: [all, arrivals, departures, ${QUOTED}]`)
    .replace(
      'title: Harbour log, description: What ships have noted',
      `title: ${QUOTED}, description: ${QUOTED}`,
    ),
)

t.test('escapes catalog text in pages', async (t) => {
  for (const [name, page] of pagesOf(changed)) {
    t.equal(all(/<(script(?! type="module")|img)\b/g, page).length, 0, name)
    t.equal(all(/<(title)\b/g, page).length, 1, name)
    t.notMatch(page, /onerror=y(?!&)|href="javascript/, name)
    t.match(page, '&lt;script&gt;', name)
    t.match(page, /&amp;lt; ?\{\{/, `${name} fills in no name of its own`)
  }
})

t.test('escapes catalog text in Markdown', async (t) => {
  const text = render('docs-md', changed)
  const prose = text.replace(/^(`{3,}).*?^\1$/gms, '')
  t.notMatch(prose.replace(/`[^`]*`/g, ''), /(?<!\\)<(?!https)|(?<!\\)\[a|(?<!\\)\|\[/)
  for (const row of prose.split('\n').filter((line) => line.startsWith('|')))
    t.equal(row.match(/(?<!\\)\|/g)?.length, 8, row)
  t.equal(all(/^(# )/gm, text).length, 1)
})

t.test('shows controls and marks that reorder text as what they are', async (t) => {
  const summary = 'Sends \u202e01.0\u202c to you\u0007'
  const text = HARBOUR.replace(
    'summary: Returns the next high and low waters of a port',
    `summary: ${JSON.stringify(summary)}`,
  )
  const reordered = compileHarbour(text)
  const shown = String.raw`Sends \u202e01.0\u202c to you\u0007`
  for (const [name, page] of [...pagesOf(reordered), ['docs-md', render('docs-md', reordered)] as const]) {
    t.notMatch(page, /(?!\n)[\p{Cc}\u202a-\u202e]/u, name)
    if (name !== 'docs-errors') t.ok(page.includes(shown) || !page.includes('01.0'), name)
  }
  const listed = documents.map(({ name, render: renderIt }) => [name, renderIt(reordered, FACTS)] as const)
  for (const [name, document] of listed) t.notMatch(document, /(?!\n)[\p{Cc}\u202a-\u202e]/u, name)
  t.match(JSON.parse(new Map(listed).get('openapi') ?? ''), {
    paths: { '/paid/tides/{port}': { get: { summary } } },
  })
})
