import t, { type Test } from 'tap'
import type { RequestListener } from 'node:http'
import { DoiResolver, LIVE_DOI_RESOLVER } from '../../../../src/service/sources/doi-resolver.ts'
import { MetricsBySource } from '../../../../src/service/sources/source-metrics.ts'
import { openSite } from '../../../support/service/stand-in-web.ts'

const CSL = { 'content-type': 'application/vnd.citationstyles.csl+json' }
const WORK = { DOI: '10.5555/a', type: 'article-journal', title: 'Silence and table manners' }

async function open(t: Test, site: RequestListener, timeoutMs = 5000) {
  const { egress, url } = await openSite(t, site)
  const options = { ...LIVE_DOI_RESOLVER, baseUrl: url, timeoutMs }
  const resolver = new DoiResolver(options, egress, new MetricsBySource(() => new Date()).of('doi'))
  return { egress, url, find: () => resolver.find('10.5555/a', new AbortController().signal) }
}

t.test('reports a retraction that only doi.org still states', async (t) => {
  const update = { DOI: '10.5555/b', type: 'retraction', updated: { 'date-parts': [[2012, 9, 1]] } }
  const { find } = await open(t, (_, response) => {
    response.writeHead(200, CSL).end(JSON.stringify({ ...WORK, 'updated-by': [update] }))
  })
  t.match(await find(), { isRetracted: true, retraction: { notice: '10.5555/b', date: [2012, 9, 1] } })
})

t.test('limits the time of a silent agency, for the sake of the others', async (t) => {
  t.equal(LIVE_DOI_RESOLVER.timeoutMs, 3000)
  const { find } = await open(t, () => undefined, 150)
  await t.rejects(find(), { code: 'source_timeout' })
})

t.test('reserves questions to doi.org for each operation', async (t) => {
  const { egress, url, find } = await open(t, (_, response) => {
    response.writeHead(200, CSL).end(JSON.stringify(WORK))
  })
  const request = { accept: '*/*', measure: { bytes: 1000, beyond: 'cut' }, robots: 'ignore' } as const
  const { signal } = new AbortController()
  let outcome = await egress.get(url, request, signal)
  for (let call = 0; call < 60 && outcome.kind === 'answered'; call += 1)
    outcome = await egress.get(url, request, signal)
  t.match(outcome, { kind: 'failed', mishap: 'limited' })
  t.match(await find(), { doi: '10.5555/a', isRetracted: null })
  const own = async (): Promise<void> => {
    for (let call = 0; call < 60; call += 1) await find()
  }
  await t.rejects(own(), { code: 'source_limited', retryAfter: Number })
})
