import t from 'tap'
import type { Served } from '../../../../src/engine/cache/cache.ts'
import { Failure } from '../../../../src/engine/base/errors.ts'
import type { Answer, EnvelopedAnswer } from '../../../../src/engine/handler.ts'
import { wrapResponse as envelopAt, type Preview } from '../../../../src/engine/purchase/execution.ts'
import type { Route } from '../../../../src/engine/catalog/catalog.ts'
import type { StoredAnswer } from '../../../../src/engine/ledger/payment-record.ts'
import { compileRoutes, routeAt } from '../../../support/catalogs.ts'

const CATALOG = compileRoutes(`  /paid/tides:
    price: 0.005
    summary: X
    cache: 10m
    parameters: { days: { type: integer, default: 2 } }
    sample: { parameters: {}, with: { days: 1 } }
  /paid/ping: { price: 0.001, summary: X, sample: true }
  /clock: { price: free, handler: clock, summary: X }
`)
const PAID = routeAt(CATALOG, '/paid/tides')
const SAMPLE = routeAt(CATALOG, '/sample/tides')
const AT = Date.parse('2026-11-20T20:00:00Z')

const SERVED: Served<EnvelopedAnswer> = {
  value: {
    source: [{ name: 'Tide tables', url: 'https://tides.example' }],
    body: { high: [1, 2, 3], note: null },
  },
  at: AT,
  cached: false,
  stale: false,
}

/** Eighteen minutes later. */
function wrapResponse(route: Route, served: Served<Answer>, preview: Preview | undefined): StoredAnswer {
  return envelopAt(route, served, preview, AT + 18 * 60_000)
}

t.test('shows the source and the age of an answer', async (t) => {
  t.strictSame(wrapResponse(PAID, { ...SERVED, cached: true }, undefined), {
    kind: 'json',
    value: {
      endpoint: '/paid/tides',
      source: [{ name: 'Tide tables', url: 'https://tides.example' }],
      fetched_at: '2026-11-20T20:00:00.000Z',
      cached: true,
      cache_ttl_seconds: 600,
      warnings: [],
      high: [1, 2, 3],
      note: null,
    },
  })
})

t.test('says so in an answer without a cache', async (t) => {
  const { kind, ...rest } = wrapResponse(routeAt(CATALOG, '/paid/ping'), SERVED, undefined)
  t.equal(kind, 'json')
  t.match(rest, { value: { cached: false, cache_ttl_seconds: 0 } })
})

t.test('marks an older answer that replaces a failed one', async (t) => {
  const warned = { code: 'partial', message: 'one port is missing', source: 'tides' }
  const served: Served<Answer> = {
    ...SERVED,
    value: { source: [], body: {}, warnings: [warned] },
    cached: true,
    stale: true,
  }
  t.match(wrapResponse(PAID, served, undefined), {
    value: {
      warnings: [
        warned,
        {
          code: 'stale',
          message:
            'the source does not answer now; this is what it said 18 minutes ago, at 2026-11-20T20:00:00.000Z',
        },
      ],
    },
  })
})

t.test('says that a sample is one, and where the whole is sold', async (t) => {
  const cut = wrapResponse(SAMPLE, SERVED, (body) => ({ high: [body['high'] ? 1 : 0] }))
  t.match(cut, {
    value: {
      endpoint: '/sample/tides',
      high: [1],
      preview: true,
      truncated: true,
      full: { path: '/paid/tides', price: { amount: '0.005000', currency: 'USD' } },
    },
  })
  t.match(
    wrapResponse(SAMPLE, SERVED, undefined),
    { value: { preview: true, truncated: true } },
    'a fixed argument cuts',
  )
  t.match(wrapResponse(routeAt(CATALOG, '/sample/ping'), SERVED, undefined), {
    value: { preview: true, truncated: false },
  })
})

t.test('gives a paid answer whole', async (t) => {
  const paid = wrapResponse(PAID, SERVED, () => ({ high: [] }))
  t.match(paid, { value: { high: [1, 2, 3] } })
  t.notMatch(paid, { value: { preview: true } })
  t.notMatch(wrapResponse(routeAt(CATALOG, '/clock'), SERVED, undefined), { value: { preview: true } })
})

t.test('passes a text on without an envelope', async (t) => {
  const content = { type: 'text/csv; charset=utf-8', text: 'a,b\n' }
  t.strictSame(
    wrapResponse(PAID, { ...SERVED, value: { content } }, () => ({})),
    { kind: 'text', ...content },
  )
})

t.test('refuses to sell an answer that is too large to keep, counted in bytes', async (t) => {
  const long = (text: string): Served<Answer> => ({ ...SERVED, value: { source: [], body: { text } } })
  t.doesNotThrow(() => wrapResponse(PAID, long('x'.repeat(990_000)), undefined))
  for (const served of [
    long('x'.repeat(1_000_001)),
    long('ø'.repeat(500_001)),
    { ...SERVED, value: { content: { type: 'text/plain', text: '小'.repeat(333_334) } } },
  ]) {
    t.throws(
      () => wrapResponse(PAID, served, undefined),
      new Failure('answer_too_large', 'the answer is larger than 1 MB'),
    )
  }
})
