import t from 'tap'
import type { Runtime } from '../../../../src/service/sources/source-runtime.ts'
import { standIns, steamSpyAt, WORLD } from '../../../support/service/sources.ts'

const { signal } = new AbortController()
const APP = {
  appid: 7,
  name: 'Seven',
  owners: '100,000,000 .. 200,000,000',
  average_forever: 30000,
  median_forever: 6000,
  ccu: 1013936,
  tags: { FPS: 91172, Shooter: 65000, Classic: 70000 },
}
const answering = (body: unknown): Runtime => ({ ...WORLD, fetch: async () => Response.json(body) })
const spy = (body: unknown) => steamSpyAt('http://spy.example', answering(body)).estimate(7, signal)

t.test('gives a range of owners, minutes, a peak and the most used tags first', async (t) => {
  t.strictSame(await spy(APP), {
    owners: { low: 100_000_000, high: 200_000_000 },
    averageForever: 30000,
    medianForever: 6000,
    peakYesterday: 1013936,
    tags: ['FPS', 'Classic', 'Shooter'],
  })
  t.match(await spy({ ...APP, tags: [] }), { tags: [] }, 'no tags are an empty list there')
})

t.test('treats what SteamSpy lacks or hides as unknown', async (t) => {
  const url = await standIns(t)
  t.equal(await steamSpyAt(url, WORLD).estimate(4294967295, signal), undefined)
  t.equal(await spy({ ...APP, appid: 999999 }), undefined, 'hidden by its developer')
  t.equal(await spy({ ...APP, name: null, owners: '0 .. 20,000', tags: [] }), undefined)
})

t.test('requires owners for an estimate, and nothing else', async (t) => {
  for (const drift of [{ owners: 150_000_000 }, { owners: '100M .. 200M' }, { owners: '100,000,000' }])
    await t.rejects(spy({ ...APP, ...drift }), { code: 'source_error' }, JSON.stringify(drift))
  t.match(await spy({ ...APP, ccu: '12' }), { peakYesterday: null, tags: ['FPS', 'Classic', 'Shooter'] })
  t.match(await spy({ ...APP, tags: { FPS: 'many', Classic: 3 } }), { tags: [] })
  t.match(await spy({ ...APP, tags: ['FPS'] }), { tags: [] })
  t.match(await spy({ ...APP, average_forever: -1 }), { averageForever: null, medianForever: 6000 })
  for (const body of [null, [], {}, { error: 'no data' }])
    await t.rejects(spy(body), { code: 'source_error' })
})

t.test('treats a play time of zero as unknown', async (t) => {
  const none = await spy({ ...APP, average_forever: 0, median_forever: 0 })
  t.match(none, { averageForever: null, medianForever: null })
})

t.test('reads a limit with status 200 as a limit, and JSON under any media type', async (t) => {
  const says = (body: string): Runtime => ({
    ...WORLD,
    fetch: async () => new Response(body, { headers: { 'content-type': 'text/html; charset=UTF-8' } }),
  })
  const busy = steamSpyAt('http://spy.example', says('Connection failed: Too many connections'))
  await t.rejects(busy.estimate(7, signal), { code: 'source_limited' })
  const found = await steamSpyAt('http://spy.example', says(JSON.stringify(APP))).estimate(7, signal)
  t.equal(found?.owners.low, 100_000_000)
})
