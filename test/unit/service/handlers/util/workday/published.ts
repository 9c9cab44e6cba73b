import { readFileSync } from 'node:fs'
import t from 'tap'
import { isJsonObject, type Json } from '../../../../../../src/engine/handler.ts'
import { parse } from 'yaml'
import { workday } from '../../../../../../src/service/handlers/util/workday.ts'
import { fixedContext } from '../../../../../support/handler-context.ts'
import { checkedAnswer } from '../../../../../support/service/answer-shape.ts'

const published: Readonly<Record<string, Readonly<Record<string, string>>>> = parse(
  readFileSync(new URL('../../../../../fixtures/authority/holidays.yaml', import.meta.url), 'utf8'),
)

interface Day {
  readonly date: string
  readonly works: boolean
  readonly weekend: boolean
}

async function daysOf(country: string, date: string, days: number): Promise<readonly Day[]> {
  const { body } = checkedAnswer(
    'util/workday',
    await workday.run({ country, region: '', date, days }, fixedContext()),
  )
  const calendar: Json | undefined = body['calendar']
  if (!Array.isArray(calendar)) throw new Error('expected a calendar')
  return calendar.filter(isJsonObject).map((day) => ({
    date: typeof day['date'] === 'string' ? day['date'] : '',
    works: day['is_workday'] === true,
    weekend: day['is_weekend'] === true,
  }))
}

const isSaturdayOrSunday = (date: string): boolean =>
  [0, 6].includes(new Date(`${date}T00:00:00Z`).getUTCDay())

t.test('equals the days of work that the authorities published for three years', async (t) => {
  t.ok(Object.keys(published).length >= 12)
  for (const [country, years] of Object.entries(published)) {
    for (const [year, list] of Object.entries(years)) {
      const holidays = list.split(' ').map((day) => `${year}-${day}`)
      const calendar = await daysOf(country, `${year}-01-01`, 365)
      t.strictSame(
        calendar.filter((day) => !day.works && !day.weekend).map((day) => day.date),
        holidays.filter((date) => !isSaturdayOrSunday(date)),
        `${country} ${year}`,
      )
      const weekdays = calendar.filter(({ date }) => !isSaturdayOrSunday(date))
      t.equal(
        calendar.filter((day) => day.works).length,
        weekdays.length - holidays.filter((date) => !isSaturdayOrSunday(date)).length,
        `${country} ${year}: days of work`,
      )
    }
  }
})

t.test('names a holiday that the authority lists on a weekend', async (t) => {
  for (const [country, years] of Object.entries(published)) {
    for (const [year, list] of Object.entries(years)) {
      for (const date of list
        .split(' ')
        .map((day) => `${year}-${day}`)
        .filter(isSaturdayOrSunday)) {
        const { body } = checkedAnswer(
          'util/workday',
          await workday.run({ country, region: '', date, days: 1 }, fixedContext()),
        )
        t.equal(body['reason'], 'holiday', `${country} ${date}`)
      }
    }
  }
})

t.test('follows the State Council of China in moved weekends and lengths of holidays', async (t) => {
  // Notice of 4 November 2025 (gmw.cn, Xinhua): 15 to 23 February off, 14 and 28 February worked
  const february = await daysOf('CN', '2026-02-12', 18)
  t.strictSame(
    february.filter((day) => day.works).map((day) => day.date.slice(8)),
    ['12', '13', '14', '24', '25', '26', '27', '28'],
  )
  const autumn = await daysOf('CN', '2026-09-18', 24)
  t.strictSame(
    autumn.filter((day) => day.works).map((day) => day.date.slice(5)),
    '09-18 09-20 09-21 09-22 09-23 09-24 09-28 09-29 09-30 10-08 10-09 10-10'.split(' '),
  )
  const { body } = checkedAnswer(
    'util/workday',
    await workday.run({ country: 'CN', region: '', date: '2026-02-14', days: 1 }, fixedContext()),
  )
  t.match(body, { is_workday: true, is_weekend: true, reason: null, next_workday: '2026-02-24' })
})

t.test('begins the Lunar New Year of Korea on the day before', async (t) => {
  // Regulations on holidays of public offices, article 2
  const off = async (date: string) =>
    (await daysOf('KR', date, 6)).filter((day) => !day.works && !day.weekend).map((day) => day.date.slice(5))
  t.strictSame(await off('2025-01-27'), ['01-27', '01-28', '01-29', '01-30'])
  t.strictSame(await off('2026-02-16'), ['02-16', '02-17', '02-18'])
})

t.test('says that a calendar is known in part', async (t) => {
  const codesOf = async (country: string, date: string) =>
    (
      checkedAnswer('util/workday', await workday.run({ country, region: '', date, days: 1 }, fixedContext()))
        .warnings ?? []
    ).map(({ code }) => code)
  t.strictSame(await codesOf('CN', '2026-05-01'), [])
  t.strictSame(await codesOf('CN', '2027-05-01'), ['holidays_unverified'])
  t.strictSame(await codesOf('IN', '2026-05-01'), ['holidays_incomplete', 'holidays_unverified'])
})
