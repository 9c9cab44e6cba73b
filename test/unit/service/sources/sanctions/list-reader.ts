import t from 'tap'
import type { ListedEntry } from '../../../../../src/service/sources/sanctions/entry.ts'
import { readList, type Format } from '../../../../../src/service/sources/sanctions/list-reader.ts'
import { listFile, OFAC } from '../../../../support/service/sanctions-lists.ts'

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

t.test('reads OFAC’s list with identifying details, in both of its forms', async (t) => {
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

t.test('reads the UN’s list with aliases, birth years in three forms and other scripts', async (t) => {
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
})

t.test('joins all rows of an entry of the UK’s list', async (t) => {
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

t.test('reads the EU’s list, which leaves many attributes empty', async (t) => {
  const { publishedAt, entries } = await read('eu', listFile('eu.xml'))
  t.equal(publishedAt, '2026-11-16')
  t.equal(entries.length, 20)
  t.match(find(entries, 'EU.6861.1'), { datesOfBirth: ['1954-12-25', 'circa 1957'], nationalities: ['MX'] })
  t.strictSame(texts(find(entries, 'EU.12735.1')), ['Bashar AL-ASSAD', 'Bashar ASSAD'])
  t.strictSame(find(entries, 'EU.2676.1')?.title, 'Dr.')
  t.strictSame(find(entries, 'EU.2676.1')?.nationalities, ['EG'])
})

/** In the form and with the names of the EU's list of 5 August 2026, EU.3092.36, as public copies of it show them. */
const ASIRI = `<export generationDate="2026-08-05T16:47:04.449+02:00">
  <sanctionEntity euReferenceNumber="EU.3092.36" logicalId="6177">
    <subjectType code="person" classificationCode="P"/>
    <nameAlias firstName="" lastName="" wholeName="إبراهيم حسن طالع العسيري" nameLanguage="AR" strong="true"/>
    <nameAlias firstName="Abu" lastName="Saleh" wholeName="Abu Saleh" nameLanguage="EN" strong="true">
      <remark>low quality alias</remark>
    </nameAlias>
    <nameAlias firstName="Ibrahim" middleName="Hassan" lastName="Al Asiri" wholeName="Ibrahim Hassan Al Asiri" nameLanguage="EN" strong="true">
      <remark>good quality alias</remark>
    </nameAlias>
    <nameAlias firstName="" lastName="" wholeName="Abu Saleh" nameLanguage="FR" strong="true">
      <remark>low quality alias</remark>
    </nameAlias>
  </sanctionEntity>
</export>`

t.test('takes from the EU’s remarks which aliases it doubts, and each name once', async (t) => {
  const { entries } = await read('eu', ASIRI)
  t.strictSame(find(entries, 'EU.3092.36')?.names, [
    { text: 'Ibrahim Hassan Al Asiri', kind: 'primary', weak: false },
    { text: 'إبراهيم حسن طالع العسيري', kind: 'alias', weak: false },
    { text: 'Abu Saleh', kind: 'alias', weak: true },
  ])
})

/** The columns of the UK's list as public copies of the files of February, June and October 2026 have them. */
const UK_COLUMNS =
  'Last Updated,Unique ID,OFSI Group ID,UN Reference Number,Name 6,Name 1,Name 2,Name 3,Name 4,Name 5,Name type,Alias strength,Title,Name non-latin script,Non-latin script type,Non-latin script language,Regime Name,Designation Type,Designation source,Sanctions Imposed,Other Information,UK Statement of Reasons,Address Line 1,Address Line 2,Address Line 3,Address Line 4,Address Line 5,Address Line 6,Address Postal Code,Address Country,Phone number,Website,Email address,Date Designated,D.O.B,Nationality(/ies),National Identifier number,National Identifier additional information,Passport number,Passport additional information,Position,Gender,Town of birth,Country of birth,Type of entity,Subsidiaries,Parent company,Business registration number (s),IMO number,Current owner/operator (s),Previous owner/operator (s),Current believed flag of ship,Previous flags,Type of ship,Tonnage of ship,Length of ship,Year Built,Hull identification number (HIN)'

t.test('finds every field in the columns that the UK publishes', async (t) => {
  const row = (fields: Readonly<Record<string, string>>): string =>
    UK_COLUMNS.split(',')
      .map((column) => fields[column] ?? '')
      .join(',')
  const table = [
    'Report Date: 08-Oct-2026',
    UK_COLUMNS,
    row({
      'Unique ID': 'RUS2176',
      'Name 6': 'KOROLEV PROSPECT',
      'Name type': 'Primary Name',
      'Regime Name': 'The Russia (Sanctions) (EU Exit) Regulations 2019',
      'Designation Type': 'Ship',
      'IMO number': 'IMO9826902',
    }),
    row({
      'Unique ID': 'AFG0001',
      'Name 6': 'HAJI KHAIRULLAH HAJI SATTAR MONEY EXCHANGE',
      'Name type': 'Primary Name',
      'Name non-latin script': 'حاجی خيرالله و حاجی ستار صرافی',
      'Regime Name': 'The Afghanistan (Sanctions) (EU Exit) Regulations 2020',
      'Designation Type': 'Entity',
      'Other Information': 'Afghan Money Service Provider License Number: 044.',
    }),
  ]
  const { publishedAt, entries, oddities } = await read('uk', `${table.join('\n')}\n`)
  t.equal(publishedAt, '2026-10-08')
  t.strictSame(oddities, [])
  t.match(find(entries, 'RUS2176'), {
    kind: 'vessel',
    names: [{ text: 'KOROLEV PROSPECT', kind: 'primary', weak: false }],
    identifiers: ['IMO 9826902'],
  })
  t.match(find(entries, 'AFG0001'), {
    kind: 'entity',
    names: [{ kind: 'primary' }, { text: 'حاجی خيرالله و حاجی ستار صرافی', kind: 'original_script' }],
    remarks: 'Afghan Money Service Provider License Number: 044.',
  })
})

const WHOLE: readonly (readonly [Format, string, string?])[] = [
  ['ofac', 'ofac.xml'],
  ['ofac', 'ofac.csv', 'ofac.alt.csv'],
  ['un', 'un.xml'],
  ['uk', 'uk.csv'],
  ['eu', 'eu.xml'],
]

t.test('refuses a list that was cut off anywhere', async (t) => {
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

t.test('refuses another kind of document, and tells the operator what it is', async (t) => {
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

t.test('refuses a list that contradicts itself or has changed its form', async (t) => {
  await t.rejects(read('ofac', OFAC.replace('11/18/2026', 'soon')), /does not say when/)
  await t.rejects(read('ofac', OFAC.replaceAll('lastName', 'surname')), /its form has changed/)
  const uk = listFile('uk.csv').toString()
  await t.rejects(read('uk', uk.replace('Regime Name', 'Regime')), /no column "Regime Name"/)
  await t.rejects(read('uk', uk.replace('Report Date', 'Date')), /does not say when/)
})

t.test('uses a list whose count differs from its entries, and tells the operator', async (t) => {
  const { entries, oddities } = await read('ofac', OFAC.replace('<Record_Count>21', '<Record_Count>22'))
  t.equal(entries.length, 21)
  t.strictSame(oddities, [{ where: 'Record_Count: not the number of entries', count: 1 }])
  t.strictSame((await read('ofac', OFAC)).oddities, [])
})

t.test('drops a row with a wrong number of columns from a long list, and refuses a short one', async (t) => {
  const [sdn, alt] = [listFile('ofac.csv').toString(), listFile('ofac.alt.csv')]
  const [first = ''] = sdn.split('\n')
  const long = Array.from({ length: 300 }, (_, place) => first.replace(/^\d+/, String(5000 + place)))
  const csv = (rows: readonly string[]) => `${rows.join('\n')}\n\u001a`
  const { entries, oddities } = await read('ofac', csv([...long, '1,2,3']), alt)
  t.equal(entries.length, 300)
  t.match(oddities, [{ where: 'row: number of columns', count: 1 }])
  await t.rejects(read('ofac', csv([first, '1,2,3']), alt), /other than 12 columns/)
})

t.test('reads the UK’s list as published, aliases first and ship numbers as written', async (t) => {
  // Header and rows as moov-io/watchman has them from the file of 13 February 2026.
  const header =
    'Last Updated,Unique ID,OFSI Group ID,UN Reference Number,Name 6,Name 1,Name 2,Name 3,Name 4,Name 5,Name type,Alias strength,Title,Name non-latin script,Non-latin script type,Non-latin script language,Regime Name,Designation Type,Designation source,Sanctions Imposed,Other Information,UK Statement of Reasons,Address Line 1,Address Line 2,Address Line 3,Address Line 4,Address Line 5,Address Line 6,Address Postal Code,Address Country,Phone number,Website,Email address,Date Designated,D.O.B,Nationality(/ies),National Identifier number,National Identifier additional information,Passport number,Passport additional information,Position,Gender,Town of birth,Country of birth,Type of entity,Subsidiaries,Parent company,Business registration number (s),IMO number,Current owner/operator (s),Previous owner/operator (s),Current believed flag of ship,Previous flags,Type of ship,Tonnage of ship,Length of ship,Year Built,Hull identification number (HIN)'
  const columns = header.split(',')
  const row = (values: Readonly<Record<string, string>>) =>
    columns.map((name) => values[name] ?? '').join(',')
  const person = {
    'Unique ID': 'AFG0006',
    'Regime Name': 'The Afghanistan (Sanctions) (EU Exit) Regulations 2020',
    'Designation Type': 'Individual',
    'D.O.B': 'dd/mm/1958',
  }
  const rows = [
    row({ ...person, 'Name 6': 'AKHUND', 'Name type': 'Alias', 'Alias strength': 'Good quality a.k.a' }),
    row({
      ...person,
      'Name 1': 'MOHAMMAD',
      'Name 2': 'HASSAN',
      'Name 6': 'AKHUND',
      'Name type': 'Primary Name',
    }),
    // The list has this name with its quotation mark.
    row({
      'Unique ID': 'GHR0126',
      'Name 6': 'Lehava',
      'Name type': 'Primary Name',
      'Name non-latin script': 'להב"ה',
      'Regime Name': 'The Global Human Rights Sanctions Regulations 2020',
      'Designation Type': 'Entity',
    }),
    row({ ...person, 'Name 6': 'AKHUND', 'Name type': 'Alias', 'D.O.B': '24/10/1972' }),
    row({
      'Unique ID': 'RUS2176',
      'Name 6': 'KOROLEV PROSPECT',
      'Name type': 'Primary Name',
      'Regime Name': 'The Russia (Sanctions) (EU Exit) Regulations 2019',
      'Designation Type': 'Ship',
      'IMO number': 'IMO9826902',
    }),
  ]
  const { publishedAt, entries } = await read(
    'uk',
    ['Report Date: 13-Feb-2026', header, ...rows, ''].join('\n'),
  )
  t.equal(publishedAt, '2026-02-13')
  t.match(find(entries, 'AFG0006'), { kind: 'individual', datesOfBirth: ['1958', '1972-10-24'] })
  t.strictSame(texts(find(entries, 'GHR0126')), ['Lehava', 'להב"ה'])
  t.strictSame(texts(find(entries, 'AFG0006')), ['MOHAMMAD HASSAN AKHUND', 'AKHUND'])
  t.match(find(entries, 'RUS2176'), { kind: 'vessel', identifiers: ['IMO 9826902'] })
  const older = header.replace('Designation Type', '"Individual, Entity, Ship"')
  const before = await read('uk', ['Report Date: 01/10/2026', older, ...rows, ''].join('\n'))
  t.match(find(before.entries, 'RUS2176'), { kind: 'vessel' }, 'in its other edition')
})

t.test('reads the EU’s list as published, with summaries inside names and unknown countries', async (t) => {
  // Export 184961 of 5 August 2026, as public parsers quote it.
  const xml = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<export xmlns="http://eu.europa.ec/fpi/fsd/export" generationDate="2026-08-05T16:47:04.449+02:00" globalFileId="184961">
  <sanctionEntity designationDetails="" unitedNationId="" euReferenceNumber="EU.77.33" logicalId="83">
    <remark>UNSC RESOLUTION 1483 BASIS</remark>
    <regulation regulationType="regulation" organisationType="commission" publicationDate="2003-07-08" entryIntoForceDate="2003-07-07" numberTitle="1210/2003 (OJ L169)" programme="IRQ" logicalId="348">
      <publicationUrl>http://eur-lex.europa.eu/</publicationUrl>
    </regulation>
    <subjectType code="person" classificationCode="P"/>
    <nameAlias firstName="Tarek" middleName="Mikhail" lastName="Aziz" wholeName="Tarek Mikhail Aziz" function="" gender="M" title="" nameLanguage="" strong="true" regulationLanguage="en" logicalId="1388">
      <regulationSummary regulationType="regulation" publicationDate="2003-07-08" numberTitle="1210/2003 (OJ L169)"/>
    </nameAlias>
    <nameAlias wholeName="T. Aziz" strong="false" logicalId="125"/>
    <citizenship region="" countryIso2Code="IQ" countryDescription="IRAQ" logicalId="30"/>
    <birthdate circa="false" calendarType="GREGORIAN" city="" zipCode="" birthdate="1937-04-28" year="1937" countryIso2Code="00" logicalId="1"/>
    <identification number="34409/129" identificationTypeCode="other" countryIso2Code="00" logicalId="1"/>
  </sanctionEntity>
  <sanctionEntity designationDate="2002-06-18" euReferenceNumber="EU.3502.46" logicalId="201">
    <subjectType code="enterprise" classificationCode="E"/>
    <nameAlias wholeName="Organização Abu Nidal" nameLanguage="PT" strong="true" logicalId="123121"/>
    <address countryIso2Code="00" countryDescription="UNKNOWN" logicalId="9"/>
  </sanctionEntity>
  <sanctionEntity designationDetails="" unitedNationId="" euReferenceNumber="EU.3579.2" logicalId="191">
    <subjectType code="person" classificationCode="P"/>
    <nameAlias firstName="" middleName="" lastName="" wholeName="Bin Khalid Fahd Bin Adballah" gender="M" nameLanguage="FR" strong="true" logicalId="161419"/>
    <nameAlias firstName="" middleName="" lastName="" wholeName="Henin Ashraf Refaat Nabith" gender="M" nameLanguage="" strong="true" logicalId="292"/>
    <nameAlias firstName="Khalid Sheikh" middleName="" lastName="MOHAMMED" wholeName="Khalid Sheikh MOHAMMED" gender="M" nameLanguage="EN" strong="true" logicalId="289"/>
    <birthdate circa="false" calendarType="GREGORIAN" city="-" birthdate="1965-04-14" dayOfMonth="14" monthOfYear="4" year="1965" countryIso2Code="PK" logicalId="183"/>
  </sanctionEntity>
</export>`
  const { publishedAt, entries } = await read('eu', xml)
  t.equal(publishedAt, '2026-08-05')
  t.match(find(entries, 'EU.77.33'), {
    kind: 'individual',
    programmes: ['IRQ'],
    datesOfBirth: ['1937-04-28'],
    nationalities: ['IQ'],
    names: [
      { text: 'Tarek Mikhail Aziz', weak: false },
      { text: 'T. Aziz', weak: true },
    ],
  })
  // Nothing marks a name as the entry's own, and a translation of an alias comes first.
  t.strictSame(texts(find(entries, 'EU.3579.2')), [
    'Khalid Sheikh MOHAMMED',
    'Henin Ashraf Refaat Nabith',
    'Bin Khalid Fahd Bin Adballah',
  ])
  t.match(find(entries, 'EU.3502.46'), { kind: 'entity', names: [{ text: 'Organização Abu Nidal' }] })
})

t.test('bounds memory for a hostile document: entities stay unexpanded, depth is limited', async (t) => {
  const bomb = `<!DOCTYPE sdnList [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>${OFAC.replace(/^<\?xml.*\?>/, '').replace('HERMANN', '&b;')}`
  await t.rejects(read('ofac', bomb), { name: 'ListFault' })
  const deep = OFAC.replace('HERMANN', `${'<x>'.repeat(50_000)}${'</x>'.repeat(50_000)}`)
  await t.rejects(read('ofac', deep), /nested deeper/)
})
