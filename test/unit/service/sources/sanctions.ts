import { existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { LISTS, STAND_IN_LISTS } from '../../../../src/service/sources/sanctions/lists.ts'
import type { Findings, Sanctions } from '../../../../src/service/sources/sanctions.ts'
import {
  emptyDirectory,
  listFile,
  OFAC,
  ofacOf,
  openLists,
  openPublisher,
} from '../../../support/service/sanctions-lists.ts'

const HOUR = 3_600_000
const SEARCH = { threshold: { usual: 0.85, shortWord: 0.95 }, limit: 10 }

/** Asks again as long as the lists are being loaded, as Retry-After says: a busy machine takes its time. */
async function look(
  lists: Sanctions,
  name: string,
  signal = new AbortController().signal,
): Promise<Findings> {
  try {
    return await lists.search({ name, ...SEARCH }, signal)
  } catch (fault) {
    if (signal.aborted || !/is not loaded yet/.test(String(fault))) throw fault
    return look(lists, name, signal)
  }
}

async function firstOf(lists: Sanctions, name: string): Promise<string | undefined> {
  return (await look(lists, name)).hits[0]?.entry.uid
}

const UNAVAILABLE = { code: 'dataset_unavailable', retryAfter: 30 }

t.test('fetches a list at the first question, once for all simultaneous callers', async (t) => {
  const publisher = await openPublisher(t, OFAC)
  const lists = openLists(t, { urls: { us_ofac_sdn: publisher.url } })
  const found = await Promise.all(
    ['Mahan Air', 'Nicolas Maduro', 'Nobody Whoever'].map((name) => look(lists, name)),
  )
  t.strictSame(
    found.map(({ hits }) => hits[0]?.entry.uid),
    ['12927', '22790', undefined],
  )
  t.equal(publisher.asked.length, 1)
  const [{ consulted, notConsulted } = { consulted: [], notConsulted: [] }] = found
  t.match(consulted, [{ terms: { id: 'us_ofac_sdn' }, facts: { publishedAt: '2026-11-18', entries: 21 } }])
  t.strictSame(
    notConsulted.map(({ id }) => id),
    ['un_sc', 'uk_fcdo', 'eu_fsf', 'us_ofac_cons'],
  )
})

t.test('searches every configured list and answers the best matches of all first', async (t) => {
  const publisher = await openPublisher(t, ({ url = '' }, response) => response.end(listFile(url.slice(1))))
  const lists = openLists(t, {
    urls: {
      us_ofac_sdn: `${publisher.url}/ofac.xml`,
      un_sc: `${publisher.url}/un.xml`,
      uk_fcdo: `${publisher.url}/uk.csv`,
      eu_fsf: `${publisher.url}/eu.xml`,
      us_ofac_cons: `${publisher.url}/ofac.xml`,
    },
  })
  const { hits, notConsulted } = await look(lists, 'Yevgeniy Viktorovich Prigozhin')
  t.strictSame(
    new Set(hits.map(({ list }) => list)),
    new Set(['us_ofac_sdn', 'un_sc', 'uk_fcdo', 'eu_fsf', 'us_ofac_cons']),
  )
  t.ok(hits.every(({ score }, place) => score <= (hits[place - 1]?.score ?? 1)))
  t.strictSame(notConsulted, [])
})

t.test('reports one missing list next to the answers of the others', async (t) => {
  const publisher = await openPublisher(t, ({ url }, response) =>
    url === '/ofac.xml' ? response.end(OFAC) : response.writeHead(500).end(),
  )
  const lists = openLists(t, {
    urls: { us_ofac_sdn: `${publisher.url}/ofac.xml`, un_sc: `${publisher.url}/un.xml` },
  })
  await t.rejects(look(lists, 'Mahan Air'), {
    ...UNAVAILABLE,
    detail: 'The list un_sc could not be fetched: status 500',
  })
})

const BAD: Readonly<Record<string, readonly [answer: string | Buffer, reason: RegExp]>> = {
  'nothing, with status 200': ['', /is empty/],
  'half of the list': [OFAC.slice(0, OFAC.length / 2), /is cut off/],
  'a web page': ['<!doctype html><title>Sorry</title>', /is a web page/],
  'a list that has lost a fifth': [
    ofacOf('11/19/2026', 16),
    /holds 16 entries where the one in use holds 21/,
  ],
  'an older list': [ofacOf('11/17/2026', 21), /is of 2026-11-17, older than the one in use \(2026-11-18\)/],
  'another list': [listFile('un.xml'), /begins with/],
}

t.test('keeps a good list, in memory and on disk, when its publisher fails', async (t) => {
  const publisher = await openPublisher(t, OFAC)
  const directory = emptyDirectory(t)
  const clock = { now: Date.UTC(2026, 10, 20) }
  const lists = openLists(t, { directory, urls: { us_ofac_sdn: publisher.url } }, clock)
  t.equal(await firstOf(lists, 'Mahan Air'), '12927')
  for (const [what, [bad, reason]] of Object.entries(BAD)) {
    publisher.answer((_, response) => response.end(bad))
    const [update] = await lists.update(() => {})
    t.match(update, { kind: 'failed', reason }, what)
    t.equal(await firstOf(lists, 'Mahan Air'), '12927', what)
    t.equal(readFileSync(join(directory, 'us_ofac_sdn.xml'), 'utf8'), OFAC, what)
    t.strictSame(readdirSync(directory), ['us_ofac_sdn.xml'], `no half of a file is left: ${what}`)
  }
  clock.now += 73 * HOUR
  await t.rejects(look(lists, 'Mahan Air'), UNAVAILABLE)
})

t.test(
  'reports a publisher that breaks off, refuses, hangs up or redirects in a circle by name',
  async (t) => {
    const publisher = await openPublisher(t, OFAC)
    const lists = openLists(t, { urls: { us_ofac_sdn: `${publisher.url}/sdn.xml?token=verysecret` } })
    t.equal(await firstOf(lists, 'Mahan Air'), '12927')
    const outcome = async () => {
      const [update] = await lists.update(() => {})
      t.notMatch(JSON.stringify(update), /verysecret|127\.0\.0\.1/)
      return update
    }
    publisher.answer((_, response) => {
      response.writeHead(200, { 'content-length': OFAC.length * 2 })
      response.write(OFAC, () => response.destroy())
    })
    t.match(await outcome(), { kind: 'failed', reason: /broke off/ })
    publisher.answer((_, response) => response.writeHead(403).end())
    t.match(await outcome(), { kind: 'failed', reason: /status 403/ })
    publisher.answer((_, response) => response.destroy())
    t.match(await outcome(), { kind: 'failed', reason: /cannot be reached/ })
    publisher.answer((_, response) => response.writeHead(302, { location: '/again' }).end())
    t.match(await outcome(), { kind: 'failed', reason: /sent on too often/ })
    publisher.answer((_, response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end())
    t.match(await outcome(), { kind: 'failed', reason: /without https/ })
    publisher.answer((_, response) => response.writeHead(304).end())
    t.match(await outcome(), { kind: 'failed', reason: /status 304/ }, 'we had said nothing it could compare')
    t.equal(await firstOf(lists, 'Mahan Air'), '12927')
  },
)

t.test('follows a publisher’s redirect to the list', async (t) => {
  const publisher = await openPublisher(t, ({ url }, response) =>
    url === '/signed' ? response.end(OFAC) : response.writeHead(302, { location: '/signed' }).end(),
  )
  const lists = openLists(t, { urls: { us_ofac_sdn: `${publisher.url}/sdn.xml` } })
  t.equal(await firstOf(lists, 'Mahan Air'), '12927')
})

t.test('counts an unchanged list as fresh, without a transfer', async (t) => {
  const publisher = await openPublisher(t, (request, response) =>
    request.headers['if-none-match'] === '"one"'
      ? response.writeHead(304).end()
      : response.writeHead(200, { etag: '"one"' }).end(OFAC),
  )
  const directory = emptyDirectory(t)
  const clock = { now: Date.UTC(2026, 10, 20) }
  const lists = openLists(t, { directory, urls: { us_ofac_sdn: publisher.url } }, clock)
  await look(lists, 'Mahan Air')
  clock.now += 71 * HOUR
  t.match(await lists.update(() => {}), [{ kind: 'unchanged' }])
  t.equal(statSync(join(directory, 'us_ofac_sdn.xml')).mtimeMs, clock.now)
  clock.now += 71 * HOUR
  t.equal(await firstOf(lists, 'Mahan Air'), '12927', 'relied on for three days from then')
})

t.test('fetches a list that is too old before it answers from it', async (t) => {
  const publisher = await openPublisher(t, OFAC)
  const clock = { now: Date.UTC(2026, 10, 20) }
  const lists = openLists(t, { urls: { us_ofac_sdn: publisher.url } }, clock)
  await look(lists, 'Mahan Air')
  publisher.answer((_, response) => response.writeHead(503).end())
  clock.now += 72 * HOUR
  t.equal(await firstOf(lists, 'Mahan Air'), '12927')
  clock.now += HOUR
  await t.rejects(look(lists, 'Mahan Air'), {
    ...UNAVAILABLE,
    detail: 'The list us_ofac_sdn was last read 73 hours ago, more than the 72 it is relied on for',
  })
  publisher.answer((_, response) => response.end(ofacOf('11/23/2026', 20)))
  clock.now += HOUR
  const { consulted } = await look(lists, 'Mahan Air')
  t.match(consulted, [{ facts: { publishedAt: '2026-11-23', entries: 20, fetchedAt: clock.now } }])
})

t.test('refreshes lists in the background while questions come', async (t) => {
  const publisher = await openPublisher(t, OFAC)
  const clock = { now: Date.UTC(2026, 10, 20) }
  const lists = openLists(t, { urls: { us_ofac_sdn: publisher.url } }, clock)
  await look(lists, 'Mahan Air')
  await look(lists, 'Mahan Air')
  t.equal(publisher.asked.length, 1, 'a list of today is not asked for again')
  clock.now += 7 * HOUR
  const asked = new Promise<void>((resolve) =>
    publisher.answer((_, response) => {
      // The answer is given before the publisher's: it never comes.
      response.writeHead(200)
      resolve()
    }),
  )
  t.equal(await firstOf(lists, 'Mahan Air'), '12927')
  await asked
  t.equal(await firstOf(lists, 'Nicolas Maduro'), '22790')
  t.equal(publisher.asked.length, 2)
})

t.test('spares a failing publisher further requests for a while', async (t) => {
  const publisher = await openPublisher(t, (_, response) => response.writeHead(500).end())
  const clock = { now: Date.UTC(2026, 10, 20) }
  const lists = openLists(t, { urls: { us_ofac_sdn: publisher.url } }, clock)
  for (let times = 0; times < 5; times++) await t.rejects(look(lists, 'Mahan Air'), UNAVAILABLE)
  t.equal(publisher.asked.length, 1)
  clock.now += 61_000
  await t.rejects(look(lists, 'Mahan Air'), UNAVAILABLE)
  t.equal(publisher.asked.length, 2)
})

t.test('reads a file that an operator provides, and a newer one when it appears', async (t) => {
  const directory = emptyDirectory(t)
  const clock = { now: Date.now() }
  for (const [id, file] of Object.entries({
    'us_ofac_sdn.csv': 'ofac.csv',
    'us_ofac_sdn.alt.csv': 'ofac.alt.csv',
    'uk_fcdo.csv': 'uk.csv',
  }))
    writeFileSync(join(directory, id), listFile(file))
  const lists = openLists(t, { directory }, clock)
  const { hits, consulted } = await look(lists, 'Bashar Assad')
  t.strictSame(
    hits.map(({ list }) => list),
    ['us_ofac_sdn', 'uk_fcdo'],
  )
  t.match(consulted, [{ facts: { publishedAt: null } }, { facts: { publishedAt: '2026-11-14' } }])
  const newer = join(directory, 'us_ofac_sdn.xml')
  writeFileSync(newer, OFAC.replace('MAHAN AIR<', 'NAHAM AIR<'))
  utimesSync(newer, clock.now / 1000 + 60, clock.now / 1000 + 60)
  clock.now += 120_000
  await look(lists, 'Naham Air')
  const deadline = Date.now() + 5000
  // It is taken up while questions are answered.
  while ((await look(lists, 'Naham Air')).count === 0 && Date.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 20))
  t.equal((await look(lists, 'Naham Air')).hits[0]?.entry.uid, '12927')
})

t.test('ignores a file that is too old, and fetches the list where there is an address', async (t) => {
  const directory = emptyDirectory(t)
  const file = join(directory, 'us_ofac_sdn.xml')
  const past = (Date.now() - 73 * HOUR) / 1000
  writeFileSync(file, OFAC)
  utimesSync(file, past, past)
  await t.rejects(look(openLists(t, { directory }), 'Mahan Air'), { ...UNAVAILABLE, detail: /73 hours ago/ })
  const publisher = await openPublisher(t, OFAC)
  t.equal(
    await firstOf(openLists(t, { directory, urls: { us_ofac_sdn: publisher.url } }), 'Mahan Air'),
    '12927',
  )
  t.ok(statSync(file).mtimeMs / 1000 > past + 3600)
})

t.test('fetches from the publisher when a file is broken', async (t) => {
  const directory = emptyDirectory(t)
  writeFileSync(join(directory, 'us_ofac_sdn.xml'), OFAC.slice(0, 5000))
  await t.rejects(look(openLists(t, { directory }), 'Mahan Air'), { ...UNAVAILABLE, detail: /is cut off/ })
  const publisher = await openPublisher(t, OFAC)
  t.equal(
    await firstOf(openLists(t, { directory, urls: { us_ofac_sdn: publisher.url } }), 'Mahan Air'),
    '12927',
  )
})

t.test('shares a fetched list with the next process through the disk', async (t) => {
  const publisher = await openPublisher(t, OFAC)
  const directory = emptyDirectory(t)
  const settings = { directory, urls: { us_ofac_sdn: publisher.url } }
  await openLists(t, settings).update(() => {})
  t.equal(await firstOf(openLists(t, settings), 'Mahan Air'), '12927')
  t.equal(publisher.asked.length, 1)
})

t.test('fetches the aliases next to OFAC’s CSV', async (t) => {
  for (const [id, main, aliases] of [
    ['us_ofac_sdn', 'SDN.CSV', 'ALT.CSV'],
    ['us_ofac_cons', 'CONS_PRIM.CSV', 'CONS_ALT.CSV'],
    ['us_ofac_cons', 'cons_prim.csv', 'cons_alt.csv'],
  ] as const) {
    const publisher = await openPublisher(t, ({ url }, response) =>
      response.end(listFile(url === `/exports/${aliases}` ? 'ofac.alt.csv' : 'ofac.csv')),
    )
    const directory = emptyDirectory(t)
    const lists = openLists(t, { directory, urls: { [id]: `${publisher.url}/exports/${main}` } })
    t.equal(await firstOf(lists, 'National Bank of Cuba'), '306')
    t.strictSame(publisher.asked, [`/exports/${main}`, `/exports/${aliases}`])
    t.ok(existsSync(join(directory, `${id}.alt.csv`)))
  }
})

t.test('answers from memory when the directory is read-only, and tells the operator', async (t) => {
  const publisher = await openPublisher(t, OFAC)
  const directory = join(emptyDirectory(t), 'file')
  writeFileSync(directory, '')
  const lists = openLists(t, { directory, urls: { us_ofac_sdn: publisher.url } })
  t.match(await lists.update(() => {}), [{ kind: 'failed', reason: /could not be kept on disk \(E[A-Z]+\)/ }])
  t.equal(await firstOf(lists, 'Mahan Air'), '12927')
})

t.test('refuses a list far shorter than the real one', async (t) => {
  const publisher = await openPublisher(t, OFAC)
  const lists = openLists(t, { lists: LISTS, urls: { us_ofac_sdn: publisher.url } })
  await t.rejects(look(lists, 'Mahan Air'), {
    ...UNAVAILABLE,
    detail: /holds 21 entries; the whole list has 10000/,
  })
})

t.test('refuses to answer without any list', async (t) => {
  await t.rejects(look(openLists(t, {}), 'Mahan Air'), {
    ...UNAVAILABLE,
    detail: 'No sanctions list is set up',
  })
})

t.test('loads lists again whose thread has ended, and answers only from complete ones', async (t) => {
  const publisher = await openPublisher(t, OFAC)
  const lists = openLists(t, { urls: { us_ofac_sdn: publisher.url } })
  t.equal(await firstOf(lists, 'Mahan Air'), '12927')
  await lists.close()
  t.equal(await firstOf(lists, 'Mahan Air'), '12927')
  const during = look(lists, 'Mahan Air').then(
    ({ count }) => count,
    ({ code }) => code,
  )
  await lists.close()
  t.match(await during, /^(?:1|dataset_unavailable)$/)
})

t.test('returns at once to a caller who has gone', async (t) => {
  const publisher = await openPublisher(t, () => {})
  const lists = openLists(t, { urls: { us_ofac_sdn: publisher.url } })
  await t.rejects(look(lists, 'Mahan Air', AbortSignal.abort()), UNAVAILABLE)
})

t.test('reports the state of every list without fetching', async (t) => {
  const publisher = await openPublisher(t, OFAC)
  const directory = emptyDirectory(t)
  writeFileSync(join(directory, 'un_sc.xml'), listFile('un.xml'))
  const lists = openLists(t, { directory, urls: { us_ofac_sdn: publisher.url } })
  t.match(await lists.status(), [
    { id: 'us_ofac_sdn', configured: true, entries: null, problem: 'is not loaded yet' },
    { id: 'un_sc', configured: true, published_at: '2026-11-17', max_age_seconds: 259_200, problem: null },
    { id: 'uk_fcdo', configured: false, variable: 'UK_URL', problem: null },
    { id: 'eu_fsf', configured: false },
  ])
  t.equal(publisher.asked.length, 0)
  t.equal(STAND_IN_LISTS.length, LISTS.length)
})
