import t from 'tap'
import type { ListedEntry } from '../../../../src/service/sources/sanctions/entry.ts'
import { readList, type Format } from '../../../../src/service/sources/sanctions/reading.ts'
import { listFile, OFAC } from '../../../support/lists.ts'

const breathe = async () => {}

function read(format: Format, main: string | Buffer, aliases?: string | Buffer) {
  const bytes = (text: string | Buffer) => (typeof text === 'string' ? Buffer.from(text) : text)
  return readList(
    format,
    { main: bytes(main), aliases: aliases === undefined ? undefined : bytes(aliases) },
    breathe,
  )
}

function find(entries: readonly ListedEntry[], uid: string): ListedEntry | undefined {
  return entries.find((entry) => entry.uid === uid)
}

const texts = (entry: ListedEntry | undefined) => entry?.names.map(({ text }) => text)

t.test('who is on OFAC’s list, with what tells them from others, in both of its forms', async (t) => {
  const forms = {
    xml: await read('ofac', OFAC),
    csv: await read('ofac', listFile('ofac.csv'), listFile('ofac.alt.csv')),
  }
  t.equal(forms.xml.publishedAt, '2026-11-18')
  t.equal(forms.csv.publishedAt, null, 'the CSV files do not say')
  for (const [form, { entries }] of Object.entries(forms)) {
    t.equal(entries.length, 21, form)
    t.match(find(entries, '22790'), {
      kind: 'individual',
      names: [{ text: 'Nicolas MADURO MOROS', kind: 'primary', weak: false }],
      programmes: ['VENEZUELA', 'IRAN-CON-ARMS-EO'],
      datesOfBirth: ['1962-11-23'],
      nationalities: ['Venezuela'],
      title: 'President of the Bolivarian Republic of Venezuela',
      url: 'https://sanctionssearch.ofac.treas.gov/Details.aspx?id=22790',
    })
    t.strictSame(find(entries, '6861')?.datesOfBirth, ['1954-12-25', 'circa 1957'], form)
    t.match(find(entries, '4234'), { kind: 'vessel', names: [{ text: 'HERMANN' }] })
    t.ok(find(entries, '4234')?.identifiers.includes('Call sign CL2685'), form)
    const hizballah = find(entries, '4697')
    t.equal(hizballah?.kind, 'entity')
    t.strictSame(
      hizballah?.names.filter(({ weak }) => weak).map(({ text }) => text),
      ['LH', 'ESO'],
      form,
    )
    const wagner = find(entries, '22543')
    t.ok(
      wagner?.names.some(({ text, kind }) => text === 'VAGNER & SONS' && kind === 'former'),
      form,
    )
  }
})

t.test(
  'who is on the UN’s list, with aliases, birth years in its three forms and other scripts',
  async (t) => {
    const { publishedAt, entries } = await read('un', listFile('un.xml'))
    t.equal(publishedAt, '2026-11-17')
    t.match(find(entries, 'CDi.001'), {
      kind: 'individual',
      datesOfBirth: ['circa 1971'],
      programmes: ['DRC'],
    })
    t.strictSame(texts(find(entries, 'CDi.001')), ['ERIC BADEGE'], 'an alias without a name is none')
    t.strictSame(texts(find(entries, 'CDe.001')), ['ADF', 'Allied Democratic Forces'])
    t.strictSame(find(entries, 'TEi.6365')?.datesOfBirth, ['1957-07-30', '1957 to 1958'])
    t.strictSame(find(entries, 'TEi.20157')?.names[1], {
      text: '김정은',
      kind: 'original_script',
      weak: false,
    })
    t.ok(find(entries, 'TEe.4697')?.names.some(({ text, weak }) => text === 'LH' && weak))
  },
)

t.test('an entry of the UK’s list is made of all its rows', async (t) => {
  const { publishedAt, entries } = await read('uk', listFile('uk.csv'))
  t.equal(publishedAt, '2026-11-14')
  t.equal(entries.length, 21)
  t.match(find(entries, 'TST22790'), {
    kind: 'individual',
    datesOfBirth: ['1962-11-23'],
    nationalities: ['Venezuela'],
    programmes: ['Test regime VENEZUELA'],
    remarks: 'Written for tests,\nover two lines.',
  })
  t.strictSame(find(entries, 'TST06861')?.datesOfBirth, ['1954-12-25', '1957'])
  t.strictSame(texts(find(entries, 'TST21171')), [
    'Yevgeniy Viktorovich PRIGOZHIN',
    'Евгений Викторович ПРИГОЖИН',
    'Evgeny PRIGOZHIN',
  ])
  t.match(find(entries, 'TST04234'), { kind: 'vessel', identifiers: ['IMO 7406784'] })
})

t.test('who is on the EU’s list, which leaves many attributes empty', async (t) => {
  const { publishedAt, entries } = await read('eu', listFile('eu.xml'))
  t.equal(publishedAt, '2026-11-16')
  t.equal(entries.length, 20)
  t.match(find(entries, 'EU.6861.1'), { datesOfBirth: ['1954-12-25', 'circa 1957'], nationalities: ['MX'] })
  t.strictSame(texts(find(entries, 'EU.12735.1')), ['Bashar AL-ASSAD', 'Bashar ASSAD'])
  t.strictSame(find(entries, 'EU.2676.1')?.title, 'Dr.')
  t.strictSame(find(entries, 'EU.2676.1')?.nationalities, ['EG'])
})

const WHOLE: readonly (readonly [Format, string, string?])[] = [
  ['ofac', 'ofac.xml'],
  ['ofac', 'ofac.csv', 'ofac.alt.csv'],
  ['un', 'un.xml'],
  ['uk', 'uk.csv'],
  ['eu', 'eu.xml'],
]

t.test('a list that was cut off anywhere is never taken for the whole one', async (t) => {
  for (const [format, name, aliases] of WHOLE) {
    const whole = listFile(name)
    const beside = aliases === undefined ? undefined : listFile(aliases)
    const { entries } = await read(format, whole, beside)
    for (const share of [0.05, 0.3, 0.5, 0.77, 0.9, 0.999]) {
      const cut = whole.subarray(0, Math.floor(whole.length * share))
      // A table has no end mark: where it is cut between rows only the number of entries can tell.
      const outcome = await read(format, cut, beside).catch((fault: Error) => fault)
      if (name === 'uk.csv' && !(outcome instanceof Error)) t.ok(outcome.entries.length < entries.length)
      else t.match(outcome, { name: 'ListFault' }, `${name} at ${share}`)
    }
    if (beside !== undefined) {
      await t.rejects(read(format, whole, beside.subarray(0, 300)), { name: 'ListFault' })
      await t.rejects(read(format, whole), /without its aliases/)
    }
  }
})

t.test('what is no list is refused, and the operator told what it is', async (t) => {
  const page = '\uFEFF\n<!DOCTYPE html><title>Maintenance</title>'
  for (const format of ['ofac', 'un', 'uk', 'eu'] as const) {
    await t.rejects(read(format, ''), /is empty/)
    await t.rejects(read(format, ' \r\n\t'), /is empty/)
    await t.rejects(read(format, page), /is a web page/)
    await t.rejects(read(format, '<html><body>Sorry'), /is a web page/)
    await t.rejects(read(format, '{"error":"gone"}'), { name: 'ListFault' })
    await t.rejects(read(format, Buffer.from([0x1f, 0x8b, 0, 0, 255, 254])), { name: 'ListFault' })
    await t.rejects(read(format, '<other/>'), { name: 'ListFault' })
  }
  await t.rejects(read('un', OFAC), /begins with <sdnList>/)
  await t.rejects(read('eu', listFile('un.xml')), /begins with <CONSOLIDATED_LIST>/)
  await t.rejects(read('ofac', listFile('uk.csv'), listFile('ofac.alt.csv')), { name: 'ListFault' })
})

t.test('a list that contradicts itself or has changed its form is refused', async (t) => {
  await t.rejects(read('ofac', OFAC.replace('<Record_Count>21', '<Record_Count>22')), /says it holds 22/)
  await t.rejects(read('ofac', OFAC.replace('11/18/2026', 'soon')), /does not say when/)
  await t.rejects(read('ofac', OFAC.replaceAll('lastName', 'surname')), /its form has changed/)
  const uk = listFile('uk.csv').toString()
  await t.rejects(read('uk', uk.replace('Regime Name', 'Regime')), /no column "Regime Name"/)
  await t.rejects(read('uk', uk.replace('Report Date', 'Date')), /does not say when/)
})

t.test('a hostile document fills no memory: no entity is expanded, no depth followed', async (t) => {
  const bomb = `<!DOCTYPE sdnList [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>${OFAC.replace(/^<\?xml.*\?>/, '').replace('HERMANN', '&b;')}`
  await t.rejects(read('ofac', bomb), { name: 'ListFault' })
  const deep = OFAC.replace('HERMANN', `${'<x>'.repeat(50_000)}${'</x>'.repeat(50_000)}`)
  await t.rejects(read('ofac', deep), /nested deeper/)
})
