import t from 'tap'
import {
  InvalidParameter,
  type Context,
  type Json,
  type JsonObject,
} from '../../../../../src/engine/handler.ts'
import { workday } from '../../../../../src/service/handlers/util/workday.ts'
import { fixedContext, publishedExample } from '../../../../support/handler-context.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

interface Question {
  readonly date?: string
  readonly days?: number
  readonly context?: Partial<Context>
}

async function ask(country: string, { date = '', days = 14, context = {} }: Question = {}) {
  return checkedAnswer(
    'util/workday',
    await workday.run({ country, region: '', date, days }, fixedContext(context)),
  )
}

async function bodyFor(country: string, date: string, days = 1): Promise<JsonObject> {
  return (await ask(country, { date, days })).body
}

function entries(list: Json | undefined): readonly JsonObject[] {
  if (!Array.isArray(list)) throw new Error('expected an array')
  return list.map((entry: JsonObject) => entry)
}

/** The days of the range that would be days of work, were it not for a holiday. */
function weekdaysOff(body: JsonObject): Json[] {
  return entries(body['calendar'])
    .filter((day) => day['is_workday'] === false && day['is_weekend'] === false)
    .map((day) => day['date'] ?? null)
}

const MONTH_LENGTHS_2026 = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

t.test('lists the federal holidays of the United States in 2026, month by month', async (t) => {
  const expected = [
    ['2026-01-01', '2026-01-19'],
    ['2026-02-16'],
    [],
    [],
    ['2026-05-25'],
    ['2026-06-19'],
    ['2026-07-03'],
    [],
    ['2026-09-07'],
    ['2026-10-12'],
    ['2026-11-11', '2026-11-26'],
    ['2026-12-25'],
  ]
  let workdays = 0
  for (const [index, days] of MONTH_LENGTHS_2026.entries()) {
    const first = `2026-${String(index + 1).padStart(2, '0')}-01`
    const body = await bodyFor('US', first, days)
    t.strictSame(weekdaysOff(body), expected[index], first)
    workdays += Number(body['workdays_in_range'])
  }
  t.equal(workdays, 365 - 104 - 11)
})

t.test('takes Friday 3 July 2026 off in the United States because the 4th is a Saturday', async (t) => {
  t.match(await bodyFor('US', '2026-07-03', 14), {
    country: 'US',
    country_name: 'United States of America',
    timezone: 'America/New_York',
    weekend: ['saturday', 'sunday'],
    is_workday: false,
    reason: 'holiday',
    holiday: { name: 'Independence Day (substitute day)', type: 'public', substitute: true, day_off: true },
    next_workday: '2026-07-06',
    previous_workday: '2026-07-02',
    add_workdays: { days: 14, result: '2026-07-23' },
    workdays_in_range: 9,
  })
})

t.test(
  'counts Christmas Eve in Germany as a working day with half a bank holiday, as published',
  async (t) => {
    const { body } = await ask('DE', { date: '2026-12-23', days: 3 })
    t.match(body, {
      is_workday: true,
      reason: null,
      holiday: null,
      next_workday: '2026-12-24',
      add_workdays: { days: 3, result: '2026-12-29' },
      workdays_in_range: 2,
      calendar: [
        { date: '2026-12-23', weekday: 'wednesday', is_workday: true, is_bank_holiday: false, holiday: null },
        { date: '2026-12-24', weekday: 'thursday', is_workday: true, is_bank_holiday: true },
        { date: '2026-12-25', weekday: 'friday', is_workday: false, is_bank_holiday: false },
      ],
      holidays_in_range: [
        {
          date: '2026-12-24',
          name: 'Christmas Eve',
          local_name: 'Heiliger Abend',
          type: 'bank',
          half_day: true,
        },
        { date: '2026-12-25', name: 'Christmas Day', local_name: '1. Weihnachtstag', type: 'public' },
      ],
      next_holidays: [
        { date: '2026-12-25' },
        { date: '2026-12-26' },
        { date: '2027-01-01', name: "New Year's Day", local_name: 'Neujahr' },
      ],
    })
    t.strictSame(body, publishedExample('util/workday'))
  },
)

t.test('uses the date of the country’s clocks', async (t) => {
  const context = { now: () => new Date('2026-12-31T16:00:00Z') }
  t.match((await ask('JP', { context })).body, {
    timezone: 'Asia/Tokyo',
    date: '2027-01-01',
    is_workday: false,
    reason: 'holiday',
  })
  t.match((await ask('US', { context })).body, { date: '2026-12-31', is_workday: true })
})

t.test('keeps a holiday on its own date that begins on the day before in UTC', async (t) => {
  t.match(await bodyFor('JP', '2025-12-31'), {
    is_workday: true,
    is_bank_holiday: true,
    next_workday: '2026-01-02',
  })
  t.match(await bodyFor('JP', '2026-01-01'), { reason: 'holiday', holiday: { local_name: '元日' } })
})

t.test('covers exactly the days of a holiday of several days, also when clocks change', async (t) => {
  t.strictSame(weekdaysOff(await bodyFor('BA', '2025-03-28', 7)), ['2025-03-31', '2025-04-01'])
  t.match(await bodyFor('AT', '2025-10-26'), { reason: 'holiday', next_workday: '2025-10-27' })
  t.strictSame(weekdaysOff(await bodyFor('AE', '2026-05-25', 7)), [
    '2026-05-26',
    '2026-05-27',
    '2026-05-28',
    '2026-05-29',
  ])
})

t.test('counts a feast in January that began in the year before', async (t) => {
  t.match(await bodyFor('SZ', '2026-01-02'), {
    is_workday: false,
    reason: 'holiday',
    holiday: { name: 'Incwala Festival' },
  })
})

t.test('works on a public holiday for part of the people or for half a day', async (t) => {
  t.match(await bodyFor('CN', '2026-06-01'), {
    is_workday: true,
    reason: null,
    holiday: { name: "Children's Day", day_off: false, note: 'Children below the age of 14' },
  })
  t.match(await bodyFor('CN', '2023-05-04'), {
    is_workday: true,
    holiday: { name: 'Youth Day', half_day: true },
  })
})

t.test('handles the end of a year: holidays of both, and a substitute day in the old one', async (t) => {
  t.match(await bodyFor('US', '2026-12-31'), { next_workday: '2027-01-04' })
  t.match(await bodyFor('US', '2022-01-03'), { previous_workday: '2021-12-30' })
  t.match(await bodyFor('US', '2021-12-31'), { reason: 'holiday', holiday: { substitute: true } })
  t.strictSame(weekdaysOff(await bodyFor('DE', '2026-12-24', 9)), ['2026-12-25', '2027-01-01'])
})

t.test('accepts 29 February in leap years only', async (t) => {
  const datesOf = async (date: string, days: number) =>
    entries((await bodyFor('US', date, days))['calendar']).map((day) => day['date'])
  t.strictSame(await datesOf('2028-02-28', 3), ['2028-02-28', '2028-02-29', '2028-03-01'])
  t.strictSame(await datesOf('2026-02-28', 2), ['2026-02-28', '2026-03-01'])
  t.strictSame(await datesOf('2100-02-28', 2), ['2100-02-28', '2100-03-01'])
})

t.test('follows the country’s weekend', async (t) => {
  // 2026-11-06 is a Friday.
  const week = async (country: string) =>
    entries((await bodyFor(country, '2026-11-06', 3))['calendar']).map((day) => day['is_weekend'])
  t.strictSame(await week('AE'), [false, true, true])
  t.strictSame(await week('SA'), [true, true, false])
  t.strictSame(await week('IN'), [false, true, true])
  t.strictSame(await week('BN'), [true, false, true])
  t.strictSame(await week('BD'), [true, true, false])
  t.match(await bodyFor('SA', '2026-11-05'), { next_workday: '2026-11-08' })
})

t.test('names the holiday on a day that is weekend too', async (t) => {
  t.match(await bodyFor('US', '2026-07-04'), { is_weekend: true, reason: 'holiday' })
  t.match(await bodyFor('US', '2026-07-05'), { is_weekend: true, reason: 'weekend', holiday: null })
})

t.test('refuses a country without data, uncharged', async (t) => {
  for (const country of ['XX', 'NP', 'AQ']) {
    await t.rejects(ask(country), new InvalidParameter('country', `country '${country}' is not supported`))
  }
})

t.test('reads UK as the United Kingdom', async (t) => {
  t.match((await ask('UK')).body, {
    country: 'GB',
    country_name: 'United Kingdom',
    timezone: 'Europe/London',
  })
})

t.test('answers the first and the last date, a year long, in every kind of calendar', async (t) => {
  for (const country of ['US', 'AE', 'IL', 'CN', 'SZ', 'IR']) {
    t.equal(entries((await bodyFor(country, '1970-01-01', 366))['calendar']).length, 366)
    t.equal(entries((await bodyFor(country, '2100-12-31', 366))['calendar']).length, 366)
  }
})

t.test('warns about years whose lunar holidays are unknown', async (t) => {
  const warningsOf = async (country: string, date: string) =>
    ((await ask(country, { date })).warnings ?? []).filter(({ code }) => code === 'holidays_incomplete')
  t.match(await warningsOf('AE', '2090-01-01'), [
    { code: 'holidays_incomplete', message: /Islamic calendar are known from 1970 to 2076/ },
  ])
  t.match(await warningsOf('IL', '2100-01-01'), [{ code: 'holidays_incomplete', message: /Hebrew/ }])
  t.strictSame(await warningsOf('AE', '2026-01-01'), [])
  t.strictSame(await warningsOf('US', '2090-01-01'), [])
})

t.test('attributes its data as the licence requires', async (t) => {
  t.match((await ask('US')).source, [
    { name: 'date-holidays', url: /^https:/, licence: 'CC-BY-3.0', version: /^3\.\d+\.\d+$/ },
  ])
})

t.test('shows today, the next day of work and three holidays in the free sample', async (t) => {
  const { body } = await ask('US')
  const preview = workday.preview(body)
  t.match(preview, {
    country: 'US',
    date: '2026-11-20',
    is_workday: true,
    next_workday: '2026-11-23',
    next_holidays: [{ date: '2026-11-26' }, { date: '2026-12-25' }, { date: '2027-01-01' }],
  })
  t.notHas(preview, { calendar: {} })
  t.notHas(preview, { add_workdays: {} })
})
