import t, { type Test } from 'tap'
import { Failure, InvalidParameter, type EnvelopedAnswer } from '../../../../../src/engine/handler.ts'
import type { Fault } from '../../../../../src/service/stand-ins/fault.ts'
import { startStandIns, type StandIns } from '../../../../../src/service/stand-ins/stand-ins.ts'
import { citation } from '../../../../../src/service/handlers/util/citation.ts'
import { Crossref, LIVE_CROSSREF } from '../../../../../src/service/sources/crossref.ts'
import { DataCite, LIVE_DATACITE } from '../../../../../src/service/sources/datacite.ts'
import { DoiResolver, LIVE_DOI_RESOLVER } from '../../../../../src/service/sources/doi-resolver.ts'
import { MetricsBySource } from '../../../../../src/service/sources/source-metrics.ts'
import type { Runtime } from '../../../../../src/service/sources/source-runtime.ts'
import { fixedContext, keepingContext, publishedExample } from '../../../../support/handler-context.ts'
import { WORLD } from '../../../../support/service/sources.ts'
import { openWeb } from '../../../../support/service/stand-in-web.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

const PAPER = '10.1038/nature14539'
const WORK = `/works/${encodeURIComponent(PAPER)}`
const DATA = '10.5281/zenodo.4711'
const web = await openWeb(t)

interface Terms {
  readonly faults?: Readonly<Record<string, Fault>>
  readonly timeoutMs?: number
  readonly mailto?: string
  readonly runtime?: Runtime
}

async function agencies(t: Test, { faults = {}, timeoutMs = 5000, mailto, runtime = WORLD }: Terms = {}) {
  const standIns = await startStandIns({ faults })
  t.teardown(() => standIns.stop())
  const records = new MetricsBySource(WORLD.now)
  const handler = citation({
    crossref: new Crossref(
      { ...LIVE_CROSSREF, baseUrl: `${standIns.url}/crossref`, mailto, timeoutMs },
      runtime,
      records,
    ),
    datacite: new DataCite(
      { ...LIVE_DATACITE, baseUrl: `${standIns.url}/datacite`, timeoutMs },
      runtime,
      records,
    ),
    doiResolver: new DoiResolver(
      { ...LIVE_DOI_RESOLVER, baseUrl: web.doiResolver },
      web.egress,
      records.of('doi'),
    ),
  })
  return { handler, standIns, records }
}

type Agencies = Awaited<ReturnType<typeof agencies>>

async function cite(
  { handler }: Agencies,
  query: { readonly doi?: string; readonly q?: string },
): Promise<EnvelopedAnswer> {
  return checkedAnswer('util/citation', await handler.run({ doi: '', q: '', ...query }, fixedContext()))
}

function askedOf({ asked }: StandIns): readonly string[] {
  return [...asked.keys()].map((path) => path.split('/')[1] ?? '')
}

t.test('publishes an example that equals the stand-ins’ answer', async (t) => {
  const { body, source, warnings } = await cite(await agencies(t), { doi: PAPER })
  t.strictSame(publishedExample('util/citation'), body)
  t.match(source, [{ name: 'Crossref' }])
  t.strictSame(warnings, [])
})

t.test('finds the registrar of a work: the large two, and the others through doi.org', async (t) => {
  const at = await agencies(t)
  t.match(await cite(at, { doi: `https://doi.org/${DATA.toUpperCase()}` }), {
    source: [{ name: 'DataCite' }],
    body: {
      query: { doi: `https://doi.org/${DATA.toUpperCase()}` },
      doi: DATA,
      resolved_by: 'datacite',
      work: {
        version: 'v1.2',
        authors: [{ orcid: '0000-0002-1825-0097' }, { name: 'Wexmire Weather Office' }, { family: 'Reed' }],
      },
      citations: { apa: /\(Version 1\.2\) \[Data set\]\. Zenodo\./ },
      csl_json: { type: 'dataset' },
    },
  })
  t.match(await cite(at, { doi: '10.1409/wexmire.7' }), {
    source: [{ name: 'doi.org' }],
    body: {
      resolved_by: 'doi.org',
      work: {
        title: 'Una relazione sulle lampade',
        date: '2011-03',
        volume: '7',
        authors: [{ given: 'Ada' }, { name: 'Ufficio delle Lampade' }],
      },
    },
  })
})

t.test('cites a retracted work with a warning that names the notice', async (t) => {
  const { body, warnings } = await cite(await agencies(t), { doi: '10.5555/table.manners' })
  t.match(body, {
    work: { is_retracted: true, retraction: { doi: '10.5555/retraction.9', date: '2012-09-01' } },
  })
  t.match(warnings, [{ code: 'retracted', message: /10\.5555\/retraction\.9$/ }])
})

t.test('warns of a title in headline capitals, which styles with sentence case do not want', async (t) => {
  const at = await agencies(t)
  const { body, warnings } = await cite(at, { doi: '10.5555/harbour.fog' })
  t.match(body, { work: { title: 'Brightness Across Foggy Harbours' } })
  t.match(warnings, [{ code: 'title_case', message: /sentence case/ }])
  t.strictSame((await cite(at, { doi: '10.5555/handbook.lamps' })).warnings, [])
})

t.test('refuses both, neither or an invalid DOI before any source is asked', async (t) => {
  const at = await agencies(t)
  const one = { message: /provide exactly one of doi or q$/ }
  await t.rejects(cite(at, {}), one)
  await t.rejects(cite(at, { doi: ' ', q: ' ' }), one)
  await t.rejects(cite(at, { doi: PAPER, q: 'deep learning' }), one)
  await t.rejects(cite(at, { doi: 'nature14539' }), InvalidParameter)
  await t.rejects(cite(at, { q: '?!…' }), { message: 'q: q must contain words' })
  t.strictSame(at.standIns.asked, new Map())
})

t.test('answers 404 for an unknown DOI, with one call an hour', async (t) => {
  const at = await agencies(t)
  const clock = { now: Date.parse('2026-11-20T20:00:00Z') }
  const context = keepingContext(clock)
  const ask = (doi: string) => at.handler.run({ doi, q: '' }, context)
  for (const doi of ['10.5555/Nothing', 'doi:10.5555/nothing', 'https://doi.org/10.5555/nothing.'])
    await t.rejects(ask(doi), {
      code: 'not_found',
      detail: "No agency describes a work with DOI '10.5555/nothing'",
    })
  t.strictSame([...at.standIns.asked.values()], [1, 1])
  clock.now += 3_600_000
  await t.rejects(ask('10.5555/nothing'), { code: 'not_found' })
  t.strictSame([...at.standIns.asked.values()], [2, 2])
  for (const doi of ['10.1409/page', '10.1409/inside', '10.1409/none', `10.5555/${'書'.repeat(240)}`])
    await t.rejects(ask(doi), { code: 'not_found' }, doi.slice(0, 20))
})

const FAULTS: readonly (readonly [Fault, string])[] = [
  ['html', 'source_error'],
  ['empty', 'source_error'],
  ['truncated', 'source_error'],
  ['drift', 'source_error'],
  ['403', 'source_error'],
  ['500', 'source_error'],
  ['reset', 'source_error'],
  ['429', 'source_limited'],
  ['hang', 'source_timeout'],
]
for (const [fault, code] of FAULTS) {
  t.test(`reports a failure of the source when Crossref answers ${fault}`, async (t) => {
    const at = await agencies(t, {
      faults: { [WORK]: fault },
      timeoutMs: code === 'source_timeout' ? 150 : 5000,
    })
    await t.rejects(cite(at, { doi: PAPER }), { code })
    t.strictSame(askedOf(at.standIns), ['crossref', 'datacite'], 'the others might have known it')
  })
}

t.test('finds a work of another agency when Crossref fails, and says so', async (t) => {
  const path = `/works/${encodeURIComponent(DATA)}`
  const { body, warnings } = await cite(await agencies(t, { faults: { [path]: '500' } }), { doi: DATA })
  t.match(body, { resolved_by: 'datacite', work: { is_retracted: null } })
  t.match(warnings, [{ code: 'upstream_unavailable', source: 'crossref' }])
})

t.test('expires an answer in minutes, uncached, when the responsible agency is missing', async (t) => {
  const path = `/works/${encodeURIComponent(DATA)}`
  const faults: Record<string, Fault> = { [path]: '403' }
  const at = await agencies(t, { faults })
  const context = keepingContext({ now: Date.parse('2026-11-20T20:00:00Z') })
  const ask = async () => checkedAnswer('util/citation', await at.handler.run({ doi: DATA, q: '' }, context))
  const gap = await ask()
  t.match(gap.warnings, [{ code: 'upstream_unavailable' }])
  t.equal(gap.freshFor, 300_000)
  delete faults[path]
  const whole = await ask()
  t.strictSame(whole.warnings, [])
  t.equal(whole.freshFor, undefined)
  const asked = at.standIns.asked.get(path)
  await ask()
  t.equal(at.standIns.asked.get(path), asked, 'what is whole is kept')
})

t.test('states retractions only as far as the agency reports them', async (t) => {
  const at = await agencies(t)
  for (const doi of [DATA, '10.1409/wexmire.7'])
    t.match((await cite(at, { doi })).body, { work: { is_retracted: null, retraction: null } }, doi)
})

t.test('reports a failure when an agency behind doi.org fails', async (t) => {
  const at = await agencies(t)
  await t.rejects(cite(at, { doi: '10.1409/broken' }), { code: 'source_error' })
  await t.rejects(cite(at, { doi: '10.1409/limited' }), { code: 'source_limited' })
  await t.rejects(cite(at, { doi: '10.1409/other' }), { code: 'source_error' })
  const { failed, drifted, lastDrift } = at.records.of('doi').figures
  t.match({ failed, drifted, lastDrift }, { failed: 2, drifted: 1, lastDrift: { where: 'title: type' } })
})

t.test('finds by title, authors and year, and says how sure it is', async (t) => {
  const at = await agencies(t)
  const sure = await cite(at, { q: 'LeCun Bengio Hinton, Deep learning. Nature 2015' })
  t.match(sure.body, {
    query: { q: /LeCun/ },
    doi: PAPER,
    confidence: 1,
    candidates: [{ doi: PAPER, year: 2015, confidence: 1 }],
  })
  t.strictSame(sure.warnings, [])
  t.equal(sure.freshFor, 86_400_000)
  const unsure = await cite(at, { q: 'how the mass of ice in winter cellars grows' })
  t.match(unsure.warnings, [{ code: 'low_confidence', source: 'crossref' }, { code: 'authors_shortened' }])
  t.match(unsure.body, { doi: '10.5555/collaboration', candidates: { length: 3 } })
  await t.rejects(cite(at, { q: 'zzyzx' }), { code: 'not_found', detail: "No work found for q 'zzyzx'" })
  t.match(
    (await cite(at, { q: `doi:${PAPER}` })).body,
    { doi: PAPER, candidates: [] },
    'a DOI in the wrong place',
  )
})

t.test('requires more than the authors for a match of a title', async (t) => {
  const { warnings, body } = await cite(await agencies(t), { q: 'Hinton Geoffrey 2015' })
  t.match(body, { doi: PAPER, confidence: 0 })
  t.match(warnings, [{ code: 'low_confidence' }])
})

t.test('charges nothing when a search fails', async (t) => {
  for (const [fault, code] of [
    ['500', 'source_error'],
    ['drift', 'source_error'],
    ['404', 'source_error'],
    ['429', 'source_limited'],
  ] as const) {
    const fails = cite(await agencies(t, { faults: { '/works': fault } }), { q: 'deep learning' })
    await t.rejects(fails, { code })
    await t.rejects(fails, Failure)
  }
})

t.test('sends Crossref the contact of the operator', async (t) => {
  const seen: string[] = []
  const runtime: Runtime = {
    ...WORLD,
    fetch: (url, options) => {
      seen.push(url.searchParams.get('mailto') ?? '-')
      return WORLD.fetch(url, options)
    },
  }
  await cite(await agencies(t, { runtime, mailto: 'works@example.com' }), { q: 'deep learning' })
  await cite(await agencies(t, { runtime }), { doi: PAPER })
  t.strictSame(seen, ['works@example.com', 'works@example.com', '-'])
})

t.test('shows the work, three authors and one style in the free sample', async (t) => {
  const at = await agencies(t)
  const { body } = await cite(at, { doi: '10.5555/lamps.2024.17' })
  const shown = at.handler.preview(body)
  t.strictSame(Object.keys(shown), ['query', 'doi', 'work', 'citations'])
  t.match(shown, { work: { title: /^Why CO2 falls/, year: 2024, authors: { length: 3 } } })
  t.strictSame(Object.keys(shown['citations'] ?? {}), ['apa'])
})
