import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Fault } from '../../../src/service/stand-ins/fault.ts'
import { startStandIns } from '../../../src/service/stand-ins/stand-ins.ts'
import { publishedExample } from '../../support/handler-context.ts'
import { challengeOf, stockFetch } from '../../support/payment.ts'
import { shapeDifferences } from '../../support/service/answer-shape.ts'
import { openShop } from '../../support/shop.ts'

const faults: Record<string, Fault> = {}
const standIns = await startStandIns({ faults })
t.teardown(() => standIns.stop())
const shop = await openShop(async () => ({
  CATALOG: fileURLToPath(new URL('../../../catalog.yaml', import.meta.url)),
  CROSSREF_URL: `${standIns.url}/crossref`,
  DATACITE_URL: `${standIns.url}/datacite`,
  DOI_URL: `${standIns.url}/doi`,
  EGRESS_ALLOW: new URL(standIns.url).host,
}))
t.teardown(() => shop.close())
const pay = stockFetch(await shop.wallet())
const received = () => shop.onchain.received(shop.payTo)

t.test('sells nine styles for the price, and shows one in the free sample', async (t) => {
  const sample = await fetch(`${shop.url}/sample/util/citation?doi=10.1038/nature14539`)
  t.match(await sample.json(), {
    preview: true,
    work: { year: 2015 },
    citations: { apa: /^LeCun, Y\./ },
    bibtex: undefined,
  })
  t.strictSame(await received(), [])
  const paid = await pay(`${shop.url}/paid/util/citation?doi=10.1038/nature14539`)
  t.equal(paid.status, 200)
  const body = (await paid.json()) as Record<string, unknown>
  t.strictSame(shapeDifferences(publishedExample('util/citation'), body), [])
  t.match(body, { source: [{ name: 'Crossref' }], cache_ttl_seconds: 604_800 })
  t.strictSame(await received(), [4_000n])
})

t.test('charges nothing for an unknown work, a failing source or an unusable question', async (t) => {
  const before = (await received()).length
  faults[`/works/${encodeURIComponent('10.5555/broken')}`] = '500'
  for (const [query, status] of [
    ['doi=10.5555/nothing', 404],
    ['q=zzyzx', 404],
    ['doi=10.5555/broken', 502],
    ['', 422],
    ['doi=10.1038/nature14539&q=deep+learning', 422],
    ['doi=nonsense', 422],
    ['q=ab', 422],
    [`doi=10.1038/${'x'.repeat(300)}`, 422],
  ] as const) {
    const answer = await pay(`${shop.url}/paid/util/citation?${query}`)
    t.equal(answer.status, status, query.slice(0, 40))
    const { accepts } = await challengeOf(`${shop.url}/paid/util/citation?${query}`)
    t.ok(accepts.length > 0, 'an offer all the same')
  }
  t.equal((await received()).length, before, 'nothing was taken')
})
