import t from 'tap'
import type { Catalog } from '../../../src/engine/catalog/catalog.ts'
import { formatPrice } from '../../../src/engine/money.ts'
import { documents } from '../../../src/engine/documents/all.ts'
import { CLIENT } from '../../../src/engine/documents/copy.ts'
import type { Facts } from '../../../src/engine/documents/registry.ts'
import { renderPaymentPage } from '../../../src/engine/documents/payment-page.ts'
import { serverPages } from '../../../src/engine/documents/servers.ts'
import { ERRORS } from '../../../src/engine/errors.ts'
import { compileHarbour, FACTS, HARBOUR, render, WITH_SERVER } from '../../support/documents.ts'

const harbour = compileHarbour()

/** Every page there is, by the name of its document, as a catalog makes them. */
function pagesOf(catalog: Catalog, facts: Facts = FACTS): [string, string][] {
  return [
    ...documents.flatMap(({ name, type, page, render: renderIt }): [string, string][] => {
      if (page !== undefined) return [[name, page(catalog, facts)]]
      return type.startsWith('text/html') ? [[name, renderIt(catalog, facts)]] : []
    }),
    ...serverPages(catalog, facts).map(({ path, text }): [string, string] => [path, text]),
    ...paymentPages(catalog, facts),
  ]
}

function paymentPages(catalog: Catalog, facts: Facts): [string, string][] {
  return catalog.routes.flatMap((route): [string, string][] => {
    const { price } = route.operation
    if (route.kind !== 'paid' || price === undefined) return []
    const url = `${facts.baseUrl}${route.path}?q='"><script>x`
    const problem = {
      title: 'Payment required',
      detail: 'this path answers once it is paid for',
      price: { amount: formatPrice(price), currency: 'USD' },
      docs: `${facts.baseUrl}/docs#${route.name}`,
      client: CLIENT,
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

  t.test(`every page of ${shop} is free of scripts and external resources`, async (t) => {
    for (const [name, page] of pagesOf(catalog, facts)) {
      t.notMatch(page, /<script|<iframe|<object|<embed|<form|\son[a-z]+=|javascript:|@import|\surl\(/i, name)
      t.notMatch(page.replace(/<style>.*<\/style>/s, ''), /\sstyle=/, name)
      const loaded = [...all(/<link[^>]+rel="(?:stylesheet|icon)"[^>]*href="([^"]*)"/g, page)]
      t.ok(
        loaded.every((path) => path.startsWith('/') && !path.startsWith('//')),
        name,
      )
    }
  })
}

t.test('shows every paid path with its price in the raw text of the pages', async (t) => {
  for (const { kind, path, operation, name } of harbour.routes) {
    if (kind !== 'paid' || operation.planned || operation.price === undefined) continue
    const price = formatPrice(operation.price)
    const html = render('docs')
    t.match(html, `<article class="offer" id="${name}"`, path)
    t.match(
      html,
      new RegExp(`GET ${path.replace(/[{}]/g, '\\$&')}</a> <span class="price">${price} USD</span>`),
    )
    t.match(render('docs-md'), `### GET \`${path}\`: ${price} USD\n`)
    const [[, home] = ['', '']] = pagesOf(harbour)
    t.match(
      home,
      new RegExp(`<code>${path.replace(/[{}]/g, '\\$&')}</code>.*<td class="price">${price}</td>`),
    )
  }
})

t.test('shows a request that answers when copied, and a client with a spending limit', async (t) => {
  const html = render('docs')
  t.match(html, 'curl -i &#x27;https://harbour.example/paid/tides/bristol&#x27;')
  t.match(html, 'curl &#x27;https://harbour.example/sample/ships/moves?ports&#x3D;bristol,cork&#x27;')
  t.match(
    html,
    'const url &#x3D; &#x27;https://harbour.example/paid/tides/bristol&#x27;\nimport { wrapFetchWithPayment',
  )
  t.match(html, 'maxAmountPerPayment')
  t.match(render('docs-md'), `\`\`\`js\n${CLIENT}\n\`\`\``)
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

t.test('marks what is unavailable now', async (t) => {
  const down = render('docs', harbour, { ...FACTS, available: ({ id }) => id !== 'tides' })
  t.match(down, 'Not available now: answers 503, which is not charged.')
  t.notMatch(render('docs'), 'Not available now')
})

t.test('names exactly the servers that are served, each with its tools and its page', async (t) => {
  t.notMatch(render('docs'), /Harbour log|log_note/)
  const served = render('docs', harbour, WITH_SERVER)
  t.match(served, 'At <code>https://harbour.example/mcp/log</code>.')
  t.match(served, '<a href="/docs/servers/log">Harbour log</a>')
  t.match(served, '<a href="/docs/servers/log#tool.log_note"><code>log_note</code></a>')
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

const spoilt = compileHarbour(
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
  for (const [name, page] of pagesOf(spoilt)) {
    t.equal(
      all(/<(script|img|h1|title)\b/g, page).filter((tag) => tag !== 'h1' && tag !== 'title').length,
      0,
      name,
    )
    t.equal(all(/<(title)\b/g, page).length, 1, name)
    t.notMatch(page, /onerror=y(?!&)|href="javascript/, name)
    t.match(page, '&lt;script&gt;', name)
    t.match(page, /&amp;lt; ?\{\{/, `${name} fills in no name of its own`)
  }
})

t.test('escapes catalog text in Markdown', async (t) => {
  const text = render('docs-md', spoilt)
  const prose = text.replace(/^(`{3,}).*?^\1$/gms, '')
  t.notMatch(prose.replace(/`[^`]*`/g, ''), /(?<!\\)<(?!https)|(?<!\\)\[a|(?<!\\)\|\[/)
  for (const row of prose.split('\n').filter((line) => line.startsWith('|')))
    t.equal(row.match(/(?<!\\)\|/g)?.length, 8, row)
  t.equal(all(/^(# )/gm, text).length, 1)
})
