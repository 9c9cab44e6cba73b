import t from 'tap'
import { InvalidParameter, type JsonObject } from '../../../../../src/engine/handler.ts'
import { sanctions } from '../../../../../src/service/handlers/util/sanctions.ts'
import { fixedContext, publishedExample } from '../../../../support/handler-context.ts'
import { listFile, OFAC, openLists, openPublisher } from '../../../../support/service/sanctions-lists.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

const publisher = await openPublisher(t, ({ url = '' }, response) => response.end(listFile(url.slice(1))))
const urls = { us_ofac_sdn: `${publisher.url}/ofac.xml`, un_sc: `${publisher.url}/un.xml` }
const clock = { now: Date.UTC(2026, 10, 20, 18) }
const lists = openLists(t, { urls }, clock)
await lists.update(() => {})
const handler = sanctions(lists)

async function ask(name: string) {
  return checkedAnswer('util/sanctions', await handler.run({ name }, fixedContext()))
}

async function bodyFor(name: string): Promise<JsonObject> {
  return (await ask(name)).body
}

const COMPLIANCE = /not a compliance screening/

t.test('gives a match everything that tells its owner from namesakes', async (t) => {
  const { body, source, warnings, fetchedAt } = await ask('Nicolas Maduro')
  t.match(body, {
    query: { name: 'Nicolas Maduro', normalized: 'nicolas maduro' },
    result: 'possible_match',
    match_count: 4,
    threshold: 0.85,
    matches: [
      {
        score: 0.944,
        band: 'probable',
        name: 'Nicolas MADURO MOROS',
        matched_name: 'Nicolas MADURO MOROS',
        matched_name_kind: 'primary',
        type: 'individual',
        list: /^(?:us_ofac_sdn|un_sc)$/,
        dates_of_birth: ['1962-11-23'],
        nationalities: ['Venezuela'],
        title: 'President of the Bolivarian Republic of Venezuela',
      },
      { name: 'Nicolas Maduro Moros' },
      {},
      {},
    ],
    as_of: '2026-11-17',
    lists_checked: [
      { id: 'us_ofac_sdn', as_of: '2026-11-18', entries: 21, fetched_at: '2026-11-20T18:00:00.000Z' },
      { id: 'un_sc', as_of: '2026-11-17', published_at: '2026-11-17' },
    ],
    lists_not_checked: [{ id: 'uk_fcdo' }, { id: 'eu_fsf' }, { id: 'us_ofac_cons' }],
    notice: COMPLIANCE,
  })
  const first = Array.isArray(body['matches']) ? body['matches'].map((match: JsonObject) => match) : []
  t.strictSame(first.find(({ list }) => list === 'us_ofac_sdn')?.['programmes'], [
    'VENEZUELA',
    'IRAN-CON-ARMS-EO',
  ])
  t.match(source, [
    { name: /Foreign Assets/, licence: /Public domain/, published_at: '2026-11-18' },
    { name: /United Nations/ },
  ])
  t.strictSame(warnings, [])
  t.equal(fetchedAt?.toISOString(), '2026-11-20T18:00:00.000Z')
})

t.test('publishes an example of the answer’s form', async (t) => {
  const [body, example] = [await bodyFor('Mahan Air'), publishedExample('util/sanctions') as JsonObject]
  t.strictSame(shapeOf(example), shapeOf(body))
})

t.test('answers that there is no match, without a promise', async (t) => {
  const body = await bodyFor('Emma Johnson')
  t.match(body, { result: 'no_match', match_count: 0, matches: [], notice: COMPLIANCE })
  t.equal(Array.isArray(body['lists_checked']) && body['lists_checked'].length, 2)
})

t.test('avoids the word clear in every answer', async (t) => {
  for (const name of ['Mahan Air', 'Emma Johnson', 'Maduro', 'Ali'])
    t.notMatch(JSON.stringify(await ask(name)), /\bclear/i)
  t.notMatch(JSON.stringify(publishedExample('util/sanctions')), /\bclear/i)
})

t.test('warns about a single word, and matches a short one exactly only', async (t) => {
  t.match(await ask('Hezbollah'), {
    body: { result: 'match', threshold: 0.85 },
    warnings: [{ code: 'single_token_query' }],
  })
  t.match(await ask('Kim'), { body: { threshold: 0.95, match_count: 0 } })
  t.match(await ask('Eso'), { body: { matches: [{ name: 'HIZBALLAH', matched_name_weak: true }] } })
})

t.test('lists all bearers of a lone surname, and says that only a surname was given', async (t) => {
  const body = await bodyFor('Maduro')
  t.match(body, { result: 'possible_match', match_count: 4, threshold: 0.85 })
  const matches = Array.isArray(body['matches']) ? body['matches'].map((match: JsonObject) => match) : []
  t.strictSame(new Set(matches.map(({ band }) => band)), new Set(['surname_only']))
  for (const match of matches) {
    t.match(match, { name: /maduro/i })
    t.ok(Number(match['score']) < 0.85)
  }
  t.match(await bodyFor('Nicolas'), { result: 'no_match' }, 'a given name is too common')
  t.match(await bodyFor('Hizballah'), { result: 'match', matches: [{ name: 'HIZBALLAH', band: 'strong' }] })
})

t.test('finds the bearers of a surname with a particle', async (t) => {
  for (const [surname, bearer] of [
    ['Al-Assad', 'Bashar AL-ASSAD'],
    ['Bin Ladin', 'Usama bin Muhammad bin Awad BIN LADIN'],
  ] as const)
    t.match(await ask(surname), {
      body: { result: 'possible_match', matches: [{ name: bearer, band: 'surname_only' }] },
      warnings: [{ code: 'single_token_query' }],
    })
  t.match(await bodyFor('al Nicolas'), { result: 'no_match' }, 'a given name is too common')
})

t.test('finds the bearer of a surname who has another spelling of it in a shorter name', async (t) => {
  const file = OFAC.replace(
    /<lastName>PRIGOZHIN<\/lastName>(?=<firstName>Evgeny)/,
    '<lastName>PRIGOZHYN</lastName>',
  )
  t.not(file, OFAC)
  const published = await openPublisher(t, file)
  const others = openLists(t, { urls: { us_ofac_sdn: `${published.url}/ofac.xml` } }, clock)
  await others.update(() => {})
  const answer = await sanctions(others).run({ name: 'Prigozhin' }, fixedContext())
  const { body } = checkedAnswer('util/sanctions', answer)
  t.match(body, {
    matches: [{ matched_name: 'Yevgeniy Viktorovich PRIGOZHIN', band: 'surname_only' }],
    match_count: 1,
  })
})

t.test(
  'finds a person by title and surname, and a company by the one telling word of its name',
  async (t) => {
    const file = OFAC.replace(
      '<lastName>MAHAN AIR</lastName>',
      () => '<lastName>SBERBANK OF RUSSIA</lastName>',
    )
      .replace('<firstName>Jong Un</firstName>', '<firstName>Ali Hosseini</firstName>')
      .replace(/<lastName>KIM<\/lastName>/, '<lastName>KHAMENEI</lastName>')
    const published = await openPublisher(t, file)
    const others = openLists(t, { urls: { us_ofac_sdn: `${published.url}/ofac.xml` } }, clock)
    await others.update(() => {})
    const resultFor = async (name: string): Promise<JsonObject> =>
      checkedAnswer('util/sanctions', await sanctions(others).run({ name }, fixedContext())).body
    t.match(await resultFor('Ayatollah Khamenei'), { matches: [{ name: 'Ali Hosseini KHAMENEI' }] })
    t.match(await resultFor('Sberbank'), { matches: [{ name: 'SBERBANK OF RUSSIA' }] })
    t.match(await resultFor('Ali Hosseini'), { result: 'no_match' }, 'two common names and no other')
  },
)

t.test('shows the best match by name and list in the sample, and keeps the rest for buyers', async (t) => {
  const preview = handler.preview(await bodyFor('Nicolas Maduro'))
  t.match(preview, { result: 'possible_match', match_count: 4, notice: COMPLIANCE, as_of: '2026-11-17' })
  const [shown] = Array.isArray(preview['matches']) ? preview['matches'] : []
  t.strictSame(Object.keys(shown ?? {}), ['score', 'band', 'name', 'matched_name', 'type', 'list'])
  t.equal(Array.isArray(preview['matches']) && preview['matches'].length, 1)
  t.strictSame(handler.preview(await bodyFor('Emma Johnson'))['matches'], [])
})

t.test('refuses a name without letters, uncharged', async (t) => {
  for (const name of [
    '--',
    '\u202e\u200f',
    '\u0000\u0000',
    '   ',
    '💥💥',
    'a!',
    '\ud800\ud800',
    '.'.repeat(200),
  ])
    await t.rejects(ask(name), InvalidParameter, JSON.stringify(name).slice(0, 20))
})

t.test('answers hostile names', async (t) => {
  const bidi = `\u202e${'Nicolas MADURO MOROS'}\u202c\u0007`
  t.match(await bodyFor(bidi), { query: { normalized: 'nicolas maduro moros' }, result: 'match' })
  for (const name of [
    'a'.repeat(200),
    'ab '.repeat(66),
    'ﷺ'.repeat(200),
    'x\u0000y',
    "Robert'); DROP TABLE lists;--",
    '__proto__',
    '<script>alert(1)</script>',
    '${jndi:ldap://x}',
    '%n%s\r\nSet-Cookie: a=b',
    'Z̴̢̛͔a̷l̸g̵o̶'.repeat(15),
  ])
    t.match(await bodyFor(name), { query: { name }, result: 'no_match' }, JSON.stringify(name).slice(0, 30))
})

/** Names of members with the kinds of their values; lists by their first entry. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shapeOf(value[0])]
  if (typeof value !== 'object' || value === null) return typeof value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]))
}
