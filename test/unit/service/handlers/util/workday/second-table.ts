import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { isJsonObject, type JsonObject } from '../../../../../../src/engine/handler.ts'
import { workday } from '../../../../../../src/service/handlers/util/workday.ts'
import { openCalendar } from '../../../../../../src/service/handlers/util/workday/calendar.ts'
import { addDays } from '../../../../../../src/service/handlers/util/workday/day.ts'
import { isWeekend, isWorkday } from '../../../../../../src/service/handlers/util/workday/working-day.ts'
import { fixedContext } from '../../../../../support/handler-context.ts'
import { checkedAnswer } from '../../../../../support/service/answer-shape.ts'

/** Public holidays of national scope by country and year; a plus marks a weekend day on which people work. */
const secondTable: Readonly<Record<string, Readonly<Record<string, string>>>> = parse(
  readFileSync(
    new URL('../../../../../fixtures/authority/second-holiday-table.yaml', import.meta.url),
    'utf8',
  ),
)

/** Days on which a decree that the second table does not have yet decides. */
const DECREED: Readonly<Record<string, readonly string[]>> = {
  // Decree 1466 of 2025; 9 May 2026 is a Saturday (Labour Code, article 112).
  RU: ['2026-01-09', '2026-05-11', '2026-12-31'],
}

async function ask(country: string, date: string, days = 1, today = '2026-11-22') {
  const context = fixedContext({ now: () => new Date(`${today}T12:00:00Z`) })
  return checkedAnswer('util/workday', await workday.run({ country, region: '', date, days }, context))
}

t.test('agrees with a second table on every day it calls verified, 2024 to 2030', async (t) => {
  t.equal(Object.keys(secondTable).length, 66)
  let verified = 0
  let doubted = 0
  for (const [country, years] of Object.entries(secondTable)) {
    const calendar = await openCalendar(country)
    if (calendar === undefined) throw new Error(`${country} is not known`)
    const marks = new Set(
      Object.entries(years).flatMap(([year, days]) =>
        days.split(' ').map((day) => day.replace(/^(\+?)/, `$1${year}-`)),
      ),
    )
    const wrong: string[] = []
    for (let day = '2024-01-01'; day <= '2030-12-31'; day = addDays(day, 1)) {
      if (calendar.doubtOf(day) !== undefined) {
        doubted += 1
        continue
      }
      verified += 1
      const works = isWeekend(calendar, day) ? marks.has(`+${day}`) : !marks.has(day)
      if (isWorkday(calendar, day) !== works) wrong.push(day)
    }
    t.strictSame(wrong, DECREED[country] ?? [], country)
  }
  // Twenty countries of which three years were compared with an official calendar, and single decreed days.
  t.ok(verified > 20_000, `${verified} days verified, ${doubted} not`)
})

t.test('names each day on which the two tables still differ with its reason', async (t) => {
  for (const [country, date] of [
    ['NL', '2026-04-03'],
    ['CH', '2026-04-06'],
    ['MA', '2026-01-14'],
    ['RU', '2026-03-09'],
  ] as const) {
    const { body, warnings } = await ask(country, date)
    t.equal(body['verified'], false, country)
    t.match(warnings, [{ code: 'holidays_unverified', message: /.{30}/ }], country)
  }
})

t.test(
  'is verified where an official calendar was compared, and warns outside the compared countries and years',
  async (t) => {
    t.match(await ask('DE', '2026-12-23', 7), { body: { verified: true }, warnings: [] })
    t.match((await ask('CZ', '2026-12-21')).warnings, [
      { code: 'holidays_unverified', message: /only a second table/ },
    ])
    t.match(await ask('DE', '2031-05-01'), { body: { verified: false } })
    t.match((await ask('BA', '2026-05-01')).warnings, [{ code: 'holidays_unverified' }])
  },
)

t.test('takes days off that were decreed during the year', async (t) => {
  const off = { is_workday: false }
  t.match((await ask('KR', '2026-05-01')).body, { ...off, holiday: { name: 'Labor Day' } })
  t.match((await ask('KR', '2027-07-19')).body, { ...off, holiday: { substitute: true } })
  t.match((await ask('MY', '2026-03-20')).body, { is_workday: false })
  t.match((await ask('ZA', '2026-11-04')).body, { ...off, holiday: { name: 'Local government elections' } })
})

t.test('keeps the days off that the United States move away from a weekend', async (t) => {
  const off = { is_workday: false, holiday: { day_off: true } }
  t.match((await ask('US', '2028-11-10')).body, off)
  t.match((await ask('US', '2029-11-12')).body, off)
  t.match((await ask('US', '2026-09-07')).body, { holiday: { name: 'Labor Day' } })
})

t.test('flags days that depend on the moon, and warns of those that are still to come', async (t) => {
  const holidays = ({ body }: { body: JsonObject }) =>
    (Array.isArray(body['holidays_in_range']) ? body['holidays_in_range'] : []).filter(isJsonObject)
  const coming = await ask('TR', '2027-03-08', 7)
  t.ok(holidays(coming).some((day) => day['moon_dependent'] === true))
  const moonOf = ({ warnings = [] }: Awaited<ReturnType<typeof ask>>) =>
    warnings.filter(({ code }) => code === 'holidays_moon_dependent')
  t.match(moonOf(coming), [{ message: /2027-03/ }])
  t.same(moonOf(await ask('TR', '2026-03-19', 5)), [], 'what is past has been announced')
})

t.test('applies the decrees of Russia, and does not call verified what no source decides', async (t) => {
  for (const date of ['2026-01-09', '2026-05-11', '2026-12-31'])
    t.match((await ask('RU', date)).body, { is_workday: false }, date)
  for (const [country, date] of [
    ['VN', '2025-05-02'],
    ['VN', '2026-01-02'],
    ['VN', '2026-08-31'],
    ['KE', '2026-05-27'],
  ] as const)
    t.match((await ask(country, date)).body, { is_workday: false, verified: false }, `${country} ${date}`)
})

t.test('names the regions that differ, and answers for one of them', async (t) => {
  for (const [country, date, region, differing] of [
    ['CA', '2026-10-12', 'ON', /Ontario/],
    ['CA', '2026-05-18', 'ON', /Ontario/],
    ['AU', '2026-06-08', 'NSW', /New South Wales/],
    ['DE', '2026-08-15', 'BY', undefined],
  ] as const) {
    const whole = await ask(country, date)
    if (differing !== undefined)
      t.match(
        whole.warnings?.find(({ code }) => code === 'regions_differ'),
        { message: differing },
      )
    const context = fixedContext({ now: () => new Date('2026-11-22T12:00:00Z') })
    const { body } = checkedAnswer(
      'util/workday',
      await workday.run({ country, region, date, days: 1 }, context),
    )
    t.match(body, { is_workday: false, verified: false }, `${country}-${region} ${date}`)
    t.not(body['scope'], 'national')
  }
  await t.rejects(workday.run({ country: 'DE', region: 'ZZ', date: '', days: 1 }, fixedContext()), {
    message: /region 'ZZ' is not known in DE/,
  })
})
