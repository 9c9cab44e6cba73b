import t from 'tap'
import { InvalidParameter, type Json, type JsonObject } from '../../../../../src/engine/handler.ts'
import { occasion } from '../../../../../src/service/handlers/util/occasion.ts'
import { daysOfOccasion } from '../../../../../src/service/handlers/util/occasion/table.ts'
import { fixedContext, publishedExample } from '../../../../support/handler-context.ts'
import { compareOccasions } from '../../../../support/service/reference-data.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

interface Terms {
  readonly from?: string
  readonly days?: number
  readonly personal?: string
}

async function ask(country: string, { from = '', days = 60, personal = '' }: Terms = {}) {
  return checkedAnswer(
    'util/occasion',
    await occasion.run({ country, from_date: from, days, personal }, fixedContext()),
  )
}

function dateOf({ date }: JsonObject): string {
  return typeof date === 'string' ? date : 'none'
}

function entries(list: Json | undefined): readonly JsonObject[] {
  if (!Array.isArray(list)) throw new Error('expected an array')
  return list.map((entry: JsonObject) => entry)
}

async function datesOf(name: string, country: string, year: number): Promise<Json[]> {
  const { body } = await ask(country, { from: `${year}-01-01`, days: 365 })
  return entries(body['occasions']).flatMap((each) => (each['name'] === name ? [each['date'] ?? null] : []))
}

t.test(
  'lists the weeks around Christmas in the United States with the caller’s own days, as published',
  async (t) => {
    const { body, warnings } = await ask('US', {
      days: 40,
      personal: 'Mum birthday:12-12;Wedding:2001-12-20',
    })
    t.match(body, { country: 'US', from_date: '2026-11-20', days: 40, to_date: '2026-12-29', count: 8 })
    t.strictSame(
      entries(body['occasions']).map(({ date, name, type }) => [date, name, type]),
      [
        ['2026-11-26', 'Thanksgiving Day', 'public'],
        ['2026-11-27', 'Black Friday', 'commercial'],
        ['2026-11-30', 'Cyber Monday', 'commercial'],
        ['2026-12-05', 'First day of Hanukkah', 'religious'],
        ['2026-12-12', 'Mum birthday', 'personal'],
        ['2026-12-20', 'Wedding', 'personal'],
        ['2026-12-24', 'Christmas Eve', 'religious'],
        ['2026-12-25', 'Christmas Day', 'public'],
      ],
    )
    t.match(entries(body['occasions'])[3], { begins_at_sunset_on: '2026-12-04', gift_relevant: true })
    t.match(entries(body['occasions'])[5], { years: 25, note: 'silver anniversary', days_until: 30 })
    t.match(entries(body['occasions'])[7], { is_public_holiday: true, suggested_order_by: '2026-12-14' })
    t.strictSame(warnings, [])
    t.strictSame(body, publishedExample('util/occasion'))
  },
)

t.test('dates Mother’s Day by the country', async (t) => {
  const expected = {
    US: '2026-05-10',
    DE: '2026-05-10',
    GB: '2026-03-15',
    IE: '2026-03-15',
    FR: '2026-05-31',
    ES: '2026-05-03',
    NO: '2026-02-08',
    SE: '2026-05-31',
    PL: '2026-05-26',
    AE: '2026-03-21',
    TH: '2026-08-12',
    MX: '2026-05-10',
    IN: '2026-05-10',
    JP: '2026-05-10',
    AR: '2026-10-18',
    RU: '2026-11-29',
    RO: '2026-05-03',
  }
  for (const [country, day] of Object.entries(expected)) {
    t.strictSame(await datesOf("Mother's Day", country, 2026), [day], country)
  }
  // 31 May 2020 was Pentecost, and so is 28 May 2023
  t.strictSame(await datesOf("Mother's Day", 'FR', 2020), ['2020-06-07'])
  t.strictSame(await datesOf("Mother's Day", 'FR', 2023), ['2023-06-04'])
})

t.test('dates Father’s Day and Valentine’s Day by the country', async (t) => {
  const fathers = { US: '2026-06-21', AU: '2026-09-06', BR: '2026-08-09', DE: '2026-05-14', IT: '2026-03-19' }
  for (const [country, day] of Object.entries(fathers)) {
    t.strictSame(await datesOf("Father's Day", country, 2026), [day], country)
  }
  t.strictSame(await datesOf("Valentine's Day", 'BR', 2026), ['2026-06-12'])
  t.strictSame(await datesOf("Valentine's Day", 'FR', 2026), ['2026-02-14'])
  t.strictSame(await datesOf('White Day', 'JP', 2026), ['2026-03-14'])
  t.strictSame(await datesOf('White Day', 'US', 2026), [])
})

t.test('dates days of the moon and of other calendars, as published', async (t) => {
  const newYears = [
    '2026-02-17',
    '2027-02-06',
    '2028-01-26',
    '2029-02-13',
    '2030-02-03',
    '2031-01-23',
    '2032-02-11',
    '2033-01-31',
    '2034-02-19',
    '2035-02-08',
  ]
  const autumns = ['2026-09-25', '2027-09-15', '2028-10-03', '2029-09-22', '2030-09-12']
  for (const [index, day] of newYears.entries()) {
    // once from the library's own reckoning, once from the table alone
    t.strictSame(await datesOf('Lunar New Year', 'CN', 2026 + index), [day], `CN ${day}`)
    t.strictSame(await datesOf('Lunar New Year', 'US', 2026 + index), [day], `US ${day}`)
  }
  for (const [index, day] of autumns.entries()) {
    t.strictSame(await datesOf('Mid-Autumn Festival', 'CN', 2026 + index), [day], day)
    t.strictSame(await datesOf('Mid-Autumn Festival', 'MY', 2026 + index), [day], day)
  }
  t.strictSame(await datesOf('Eid al-Fitr', 'US', 2026), ['2026-03-20'])
  t.strictSame(await datesOf('Eid al-Fitr', 'US', 2027), ['2027-03-09'])
  t.strictSame(await datesOf('Eid al-Adha', 'US', 2026), ['2026-05-27'])
  t.strictSame(await datesOf('First day of Ramadan', 'US', 2030), ['2030-01-05', '2030-12-26'])
  t.strictSame(await datesOf('Rosh Hashanah', 'US', 2026), ['2026-09-12'])
  t.strictSame(await datesOf('Passover', 'US', 2026), ['2026-04-02'])
  t.strictSame(await datesOf('First day of Hanukkah', 'US', 2026), ['2026-12-05'])
  t.strictSame(await datesOf('Diwali', 'IN', 2026), ['2026-11-08'])
  t.strictSame(await datesOf('Holi', 'IN', 2027), ['2027-03-22'])
})

t.test('dates festivals of one country as published from 2024 to 2030', async (t) => {
  const published: readonly (readonly [id: string, name: string, country: string, days: string])[] = [
    ['thanksgiving', 'Thanksgiving Day', 'CA', '10-14 10-13 10-12 10-11 10-09 10-08 10-14'],
    ['thanksgiving', 'Thanksgiving Day', 'US', '11-28 11-27 11-26 11-25 11-23 11-22 11-28'],
    ['chuseok', 'Chuseok', 'KR', '09-17 10-06 09-25 09-15 10-03 09-22 09-12'],
    ['eid_al_adha', 'Eid al-Adha', 'SA', '06-16 06-06 05-27 05-16 05-05 04-24 04-13'],
    ['eid_al_adha', 'Eid al-Adha', 'AE', '06-16 06-06 05-27 05-16 05-05 04-24 04-13'],
    ['mothers_day', "Mother's Day", 'RU', '11-24 11-30 11-29 11-28 11-26 11-25 11-24'],
    ['mothers_day', "Mother's Day", 'RO', '05-05 05-04 05-03 05-02 05-07 05-06 05-05'],
    ['raksha_bandhan', 'Raksha Bandhan', 'IN', '08-19 08-09 08-28 08-17 08-05 08-23 08-13'],
    ['ganesh_chaturthi', 'Ganesh Chaturthi', 'IN', '09-07 08-27 09-14 09-04 08-23 09-11 09-01'],
    ['dussehra', 'Dussehra', 'IN', '10-12 10-02 10-20 10-09 09-27 10-16 10-06'],
    ['diwali', 'Diwali', 'IN', '10-31 10-20 11-08 10-29 10-17 11-05 10-26'],
    ['holi', 'Holi', 'IN', '03-25 03-14 03-04 03-22 03-11 03-01 03-20'],
    ['qixi', 'Qixi Festival', 'CN', '08-10 08-29 08-19 08-08 08-26 08-16 08-05'],
    ['loy_krathong', 'Loy Krathong', 'TH', '11-15 11-05 11-24 11-13 11-01 11-20 11-09'],
    ['purim', 'Purim', 'IL', '03-24 03-14 03-03 03-23 03-12 03-01 03-19'],
    ['bonfire_night', 'Bonfire Night', 'GB', '11-05 11-05 11-05 11-05 11-05 11-05 11-05'],
    ['day_of_the_dead', 'Day of the Dead', 'MX', '11-02 11-02 11-02 11-02 11-02 11-02 11-02'],
  ]
  const listed = new Map<string, readonly JsonObject[]>()
  for (const [id, name, country, days] of published) {
    const expected = days.split(' ').map((day, index) => `${2024 + index}-${day}`)
    const dated = expected.flatMap((day) => daysOfOccasion(id, country, Number(day.slice(0, 4))))
    t.strictSame(dated, expected, `${name} in ${country}`)
    // The holiday library has some of them on another day: each is listed once, on the right one.
    const year =
      listed.get(country) ??
      entries((await ask(country, { from: '2026-01-01', days: 365 })).body['occasions'])
    listed.set(country, year)
    const found = year.filter((each) => each['name'] === name).map(dateOf)
    t.strictSame(found, [expected[2]], `${name} as listed in ${country}`)
  }
})

t.test('lists the feasts of a religion only where many people keep it', async (t) => {
  for (const [country, name, kept] of [
    ['KR', 'Yom Kippur', false],
    ['KR', 'Diwali', false],
    ['JP', 'Eid al-Fitr', false],
    ['DE', 'Eid al-Fitr', true],
    ['GB', 'Diwali', true],
    ['US', 'Purim', true],
    ['IL', 'Yom Kippur', true],
  ] as const)
    t.equal((await datesOf(name, country, 2026)).length > 0, kept, `${name} in ${country}`)
})

t.test('dates the occasions of 86 countries as two other tables do, but for listed days', async (t) => {
  const { countries, equal, differing, explained } = await compareOccasions()
  t.equal(countries, 86)
  t.strictSame(differing.toSorted(), explained.toSorted())
  t.ok(equal > 1_900, String(equal))
})

t.test('dates Easter and Christmas by the church of the country', async (t) => {
  for (const [country, easter, christmas] of [
    ['RU', '2027-05-02', '2027-01-07'],
    ['RS', '2027-05-02', '2027-01-07'],
    ['GE', '2027-05-02', '2027-01-07'],
    ['ET', '2027-05-02', '2027-01-07'],
    ['GR', '2027-05-02', '2027-12-25'],
    ['UA', '2027-05-02', '2027-12-25'],
    ['DE', '2027-03-28', '2027-12-25'],
  ] as const) {
    const listed = entries((await ask(country, { from: '2027-01-01', days: 365 })).body['occasions'])
    const gifts = listed.filter(({ gift_relevant: gift }) => gift)
    const dates = (name: string): readonly Json[] => gifts.filter((each) => each['name'] === name).map(dateOf)
    t.strictSame(dates('Easter Sunday'), [easter], country)
    t.strictSame(dates('Christmas Day'), [christmas], country)
  }
})

t.test('counts a feast within a holiday of several days as a public holiday', async (t) => {
  for (const [country, from, date, name] of [
    ['KR', '2026-09-20', '2026-09-25', 'Chuseok'],
    ['SA', '2026-05-20', '2026-05-27', 'Eid al-Adha'],
    // Announced for the day after the one that the holiday library reckons.
    ['MY', '2025-06-01', '2025-06-07', 'Eid al-Adha'],
  ] as const) {
    const { body } = await ask(country, { from, days: 10 })
    const found = entries(body['occasions']).filter((each) => each['name'] === name)
    t.match(found, [{ date, type: 'public', is_public_holiday: true }], country)
  }
})

t.test('lists a day that the country itself dates once, as its holiday', async (t) => {
  t.strictSame(await datesOf('Eid al-Fitr', 'SG', 2026), ['2026-03-21'], 'a day later than elsewhere')
  const { body } = await ask('SG', { from: '2026-11-01', days: 10 })
  t.match(entries(body['occasions']), [
    {
      date: '2026-11-08',
      name: 'Diwali',
      local_name: 'Deepavali',
      type: 'public',
      is_public_holiday: true,
      date_is_approximate: true,
    },
    { date: '2026-11-09', name: 'Deepavali' },
  ])
  const feast = entries((await ask('AE', { from: '2026-05-20', days: 15 })).body['occasions'])
  t.equal(feast.filter(({ date }) => date === '2026-05-27' || date === '2026-05-28').length, 1)
})

t.test('computes Easter Sunday through a century, with the extremes of the published rule', async (t) => {
  const published = {
    1981: '04-19',
    2000: '04-23',
    2008: '03-23',
    2011: '04-24',
    2026: '04-05',
    2038: '04-25',
    2049: '04-18',
    2076: '04-19',
    2100: '03-28',
  }
  for (const [year, day] of Object.entries(published)) {
    t.strictSame(await datesOf('Easter Sunday', 'IN', Number(year)), [`${year}-${day}`])
  }
})

t.test(
  'handles the caller’s own days: leap days, both ends of a year’s window, and none before the first',
  async (t) => {
    const own = async (personal: string, from: string, days: number) =>
      entries((await ask('US', { from, days, personal })).body['occasions'])
        .filter(({ type }) => type === 'personal')
        .map(({ date, name, years, note }) => [date, name, years, note])
    t.strictSame(await own('Leap:02-29', '2027-02-27', 3), [
      ['2027-02-28', 'Leap', null, '29 February, kept on the 28th in common years'],
    ])
    t.strictSame(await own('Leap:2024-02-29', '2028-02-28', 3), [['2028-02-29', 'Leap', 4, null]])
    t.strictSame(await own('x:01-01', '2027-01-01', 366), [
      ['2027-01-01', 'x', null, null],
      ['2028-01-01', 'x', null, null],
    ])
    t.strictSame(await own('Launch:2027-06-01', '2026-06-01', 1), [])
    t.strictSame(await own('Launch:2027-06-01', '2027-06-01', 1), [['2027-06-01', 'Launch', 0, null]])
    t.strictSame(await own(' a: b :06-01 , ;c:06-01;', '2027-06-01', 1), [
      ['2027-06-01', 'a: b', null, null],
      ['2027-06-01', 'c', null, null],
    ])
  },
)

t.test('refuses an unreadable list of own days as a whole', async (t) => {
  const form = new InvalidParameter(
    'personal',
    "personal must be a list of 'name:MM-DD' or 'name:YYYY-MM-DD' separated by ';'",
  )
  for (const personal of [
    'Mum',
    'Mum:',
    ':04-12',
    'Mum:4-12',
    'Mum:13-01',
    'Mum:2027-02-29',
    'a:01-01;b:02-30',
  ]) {
    await t.rejects(ask('US', { personal }), form, personal)
  }
  await t.rejects(ask('US', { personal: 'x:01-01;'.repeat(26) }), { message: /at most 25/ })
  t.equal(
    entries(
      (await ask('US', { from: '2027-01-01', days: 1, personal: 'x:01-01;'.repeat(25) })).body['occasions'],
    ).length,
    26,
  )
  await t.rejects(ask('AQ'), new InvalidParameter('country', "country 'AQ' is not supported"))
})

t.test('marks years of unknown days as incomplete', async (t) => {
  const { warnings } = await ask('IN', { from: '2031-01-01', days: 1 })
  t.match(warnings, [
    { code: 'holidays_incomplete', message: /set by its states/ },
    ...['Holi', 'Raksha Bandhan', 'Ganesh Chaturthi', 'Dussehra', 'Diwali'].map((name) => ({
      code: 'occasions_incomplete',
      message: `${name} is known from 2024 to 2030 only`,
    })),
  ])
})

t.test('answers the first and the last possible day, in every kind of country', async (t) => {
  for (const country of ['US', 'AE', 'CN', 'IL', 'IR', 'ET']) {
    for (const from of ['1970-01-01', '2100-12-31']) {
      const { body } = await ask(country, { from, days: 366 })
      const dates = entries(body['occasions']).map(dateOf)
      t.ok(dates.length > 5, `${country} ${from}`)
      t.strictSame(dates, dates.toSorted(), 'in order')
    }
  }
})

t.test('shows the first three in the free sample', async (t) => {
  const { body } = await ask('US')
  const preview = occasion.preview(body)
  t.strictSame(preview['occasions'], entries(body['occasions']).slice(0, 3))
  t.equal(preview['count'], body['count'])
})
