import t from 'tap'
import { type StatusModel, renderStatusPage } from '../../../../src/engine/documents/status-page.ts'
import { compileHarbour, FACTS } from '../../../support/documents.ts'

const HOSTILE = `</title></svg><script>alert('x')</script>" onload="y`
const NONE = { unpaid: 0, presented: 0, verified: 0, settled: 0, sent: 0, uncharged: 0 }

const STANDING: StatusModel = {
  service: 'Harbour data',
  version: '1.4.0',
  revision: 'r1',
  sandbox: false,
  status: 'degraded',
  reasons: [`/paid/${HOSTILE} does not answer.`],
  checked_at: '2026-11-21T20:00:00.000Z',
  since: '2026-11-21',
  days: [{ date: '2026-11-21', ...NONE, unpaid: 1_000, settled: 10, paid_answers: 11, free_answers: 5 }],
  funnel: { ...NONE, unpaid: 1_000, presented: 20, settled: 10 },
  routes: [
    {
      path: `/paid/${HOSTILE}`,
      kind: 'paid',
      availability: 'failing',
      success_rate: 0.99999,
      p50_ms: 12,
      p95_ms: 60_000,
      last_success: '2026-11-21T19:59:58.000Z',
    },
  ],
  unavailable: [],
  sources: [
    {
      name: 'tides',
      title: HOSTILE,
      asked: 3,
      failed: 1,
      drifted: 1,
      skipped: 4,
      last_drift: { at: '2026-11-21T19:00:00.000Z', where: HOSTILE },
    },
  ],
  networks: [],
  listings: [],
  refused_reload: {
    refused_at: '2026-11-21T19:30:00.000Z',
    kept: 'r1',
    errors: [{ code: 'price_missing', line: 3, column: 7 }, { code: 'unexpected' }],
  },
}

t.test('keeps the page within its policy, whatever names contain', async (t) => {
  const html = renderStatusPage(compileHarbour(), FACTS, STANDING)
  t.notMatch(
    html,
    /<script(?! type="module" src="\/page\.js")|<style|\sstyle=|<[^>]*\son\w+=|\{\{|undefined|NaN|\[object/,
  )
  t.equal(html.split('&lt;script&gt;').length, 5, 'in all four places')
  t.match(html, /<html lang="en">/)
  t.equal(html.match(/<h1/g)?.length, 1)
  t.match(html, 'price_missing</code> at line 3, column 7')
  t.match(html, '>99.9 %<', 'what failed once has no hundred')
})

t.test('shows a page for a service of one free route, and for one without requests', async (t) => {
  const bare = compileHarbour(
    "catalog: 1\nservice: { name: Bare, version: '1' }\nroutes:\n  /clock: { price: free, handler: clock, summary: Tells the time }\n",
  )
  const quiet: StatusModel = {
    ...STANDING,
    status: 'operational',
    reasons: [],
    days: [{ date: '2026-11-21', ...NONE, paid_answers: 0, free_answers: 0 }],
    funnel: NONE,
    routes: [
      {
        path: '/clock',
        kind: 'free',
        availability: 'available',
        success_rate: null,
        p50_ms: null,
        p95_ms: null,
        last_success: null,
      },
    ],
    sources: [],
    networks: [],
    listings: [],
    refused_reload: null,
  }
  const html = renderStatusPage(bare, { ...FACTS, protocols: [] }, quiet)
  t.notMatch(html, /undefined|NaN|\[object|Outside sources|was refused|From 402/)
  t.match(html, '/clock')
  t.match(html, 'data-state="up">operational<')
})

t.test('names the sources that nothing was asked of, without a row of zeros', async (t) => {
  const quiet = { name: 'winds', title: 'Wind tables', asked: 0, failed: 0, drifted: 0, skipped: 0 }
  const html = renderStatusPage(compileHarbour(), FACTS, {
    ...STANDING,
    sources: [...STANDING.sources, quiet],
  })
  t.match(html, 'Not asked by this process since its start: 1</summary>')
  t.match(html, '<li>Wind tables</li>')
  t.notMatch(html, '<th scope="row">Wind tables')
  const idle = renderStatusPage(compileHarbour(), FACTS, { ...STANDING, sources: [quiet] })
  t.match(idle, 'Outside sources')
  t.notMatch(idle, 'data-label="Unexpected fields"')
})
