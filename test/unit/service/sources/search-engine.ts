import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { Failure } from '../../../../src/engine/handler.ts'
import { Brave, LIVE_BRAVE } from '../../../../src/service/sources/brave.ts'
import { LIVE_SEARXNG, Searxng } from '../../../../src/service/sources/searxng.ts'
import { MetricsBySource } from '../../../../src/service/sources/source-metrics.ts'
import { WORLD } from '../../../support/service/sources.ts'
import { listening } from '../../../support/http.ts'

const { signal } = new AbortController()
const HIT = { url: 'https://example.com/', title: 'Example', description: 'A page', extra: 1 }

interface Engine {
  readonly url: string
  readonly asked: { readonly url: URL; readonly token: string | string[] | undefined }[]
}

async function engine(t: Test, status: number, body: object): Promise<Engine> {
  const asked: Engine['asked'] = []
  const { url, close } = await listening(
    createServer((request, response) => {
      asked.push({
        url: new URL(request.url ?? '/', 'http://engine'),
        token: request.headers['x-subscription-token'],
      })
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }),
  )
  t.teardown(close)
  return { url, asked }
}

function brave(baseUrl: string, records = new MetricsBySource(WORLD.now)): Brave {
  return new Brave({ ...LIVE_BRAVE, baseUrl, apiKey: 'BSA-of-the-operator' }, WORLD, records)
}

t.test('asks Brave as its documentation says, with the key of the operator', async (t) => {
  const { url, asked } = await engine(t, 200, { type: 'search', web: { results: [HIT] } })
  const records = new MetricsBySource(WORLD.now)
  t.match(await brave(url, records).search('  best  games ', signal), [{ url: HIT.url, title: 'Example' }])
  t.equal(asked[0]?.url.pathname, '/web/search')
  t.match(Object.fromEntries(asked[0]?.url.searchParams ?? []), { q: 'best games', count: '20' })
  t.equal(asked[0]?.token, 'BSA-of-the-operator')
  t.match(records.figures().get('brave-search'), { asked: 1, failed: 0 })
})

t.test('shortens a question to what Brave accepts', async (t) => {
  const { url, asked } = await engine(t, 200, { web: { results: [] } })
  await brave(url).search('x'.repeat(500), signal)
  t.equal(asked[0]?.url.searchParams.get('q')?.length, 400)
  const many = await engine(t, 200, { web: { results: [] } })
  await brave(many.url).search('word '.repeat(100), signal)
  t.equal(many.asked[0]?.url.searchParams.get('q')?.split(' ').length, 50)
})

t.test('accepts an empty result, and refuses another form', async (t) => {
  t.same(await brave((await engine(t, 200, { type: 'search' })).url).search('x', signal), [])
  const drifted = brave((await engine(t, 200, { web: { results: [{ url: 7 }] } })).url)
  await t.rejects(drifted.search('x', signal), { code: 'source_error' })
})

t.test('keeps a refused key private', async (t) => {
  const { url } = await engine(t, 401, { error: { detail: 'BSA-of-the-operator is not valid' } })
  const fault = await brave(url)
    .search('x', signal)
    .catch((thrown: unknown) => thrown)
  if (!(fault instanceof Failure)) throw fault
  t.match(fault, { code: 'source_error', detail: 'The search engine answered with an error' })
  t.notMatch(JSON.stringify([fault.detail, fault.extra]), /BSA/)
})

t.test('asks SearXNG for JSON, and fails where its settings forbid it', async (t) => {
  const good = await engine(t, 200, { query: 'x', results: [HIT] })
  const records = new MetricsBySource(WORLD.now)
  const searxng = new Searxng({ ...LIVE_SEARXNG, baseUrl: good.url }, WORLD, records)
  t.match(await searxng.search('best games', signal), [{ url: HIT.url }])
  t.equal(good.asked[0]?.url.href, 'http://engine/search?q=best+games&format=json')
  const closed = new Searxng({ ...LIVE_SEARXNG, baseUrl: (await engine(t, 403, {})).url }, WORLD, records)
  await t.rejects(closed.search('x', signal), { code: 'source_error' })
  t.match(records.figures().get('searxng'), { asked: 2, failed: 1 })
})
