import t from 'tap'
import { InvalidParameter, type Context } from '../../../../../src/engine/handler.ts'
import { deliveryOrderby } from '../../../../../src/service/handlers/util/delivery-orderby.ts'
import { planDelivery } from '../../../../../src/service/handlers/util/delivery-orderby/plan.ts'
import { deliveryRules } from '../../../../../src/service/handlers/util/delivery-orderby/table.ts'
import { occasions } from '../../../../../src/service/handlers/util/occasion/table.ts'
import { openCalendar } from '../../../../../src/service/handlers/util/workday/calendar.ts'
import type { Parameters } from '../../../../../src/service/handlers/catalog.ts'
import { fixedContext, publishedExample } from '../../../../support/handler-context.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

type Service = Parameters['util/delivery-orderby']['service']

interface Terms {
  readonly service?: Service
  readonly country?: string
  /** The moment of the question; unless said, noon in New York on 20 November 2026. */
  readonly at?: string
}

async function ask(arriveBy: string, { service = 'parcel_domestic', country = 'US', at }: Terms = {}) {
  const context: Partial<Context> = at === undefined ? {} : { now: () => new Date(at) }
  return checkedAnswer(
    'util/delivery-orderby',
    await deliveryOrderby.run({ arrive_by: arriveBy, country, service }, fixedContext(context)),
  )
}

t.test('counts only days of work over Thanksgiving, as published', async (t) => {
  const { body } = await ask('2026-12-01')
  t.match(body, {
    timezone: 'America/New_York',
    estimate: true,
    deliver_on: '2026-12-01',
    safe_order_by: { date: '2026-11-20', cutoff_local: '16:00', at: '2026-11-20T21:00:00.000Z' },
    latest_order_by: { date: '2026-11-27', at: '2026-11-27T21:00:00.000Z' },
    transit_business_days: { min: 2, max: 5 },
    buffer_days: 1,
    peak_season: false,
    days_left: 0,
    feasible: 'yes',
    alternatives: [],
    skipped_days: [
      { date: '2026-11-21', reason: 'weekend' },
      { date: '2026-11-22', reason: 'weekend' },
      { date: '2026-11-26', reason: 'holiday: Thanksgiving Day' },
      { date: '2026-11-28', reason: 'weekend' },
      { date: '2026-11-29', reason: 'weekend' },
    ],
  })
  t.strictSame(body, publishedExample('util/delivery-orderby'))
})

t.test('says in each answer that no carrier has published these dates', async (t) => {
  for (const service of ['parcel_domestic', 'parcel_express', 'digital'] as const)
    t.match((await ask('2026-12-01', { service })).warnings, [{ code: 'not_from_a_carrier' }])
})

t.test('applies the cut-off to the second, on the clocks of the country', async (t) => {
  t.match((await ask('2026-12-01', { at: '2026-11-20T21:00:00Z' })).body, { feasible: 'yes' })
  t.match((await ask('2026-12-01', { at: '2026-11-20T21:00:01Z' })).body, { feasible: 'at_risk' })
  t.match((await ask('2026-12-01', { at: '2026-11-27T21:00:00Z' })).body, { feasible: 'at_risk' })
  const late = (await ask('2026-12-01', { at: '2026-11-27T21:00:01Z' })).body
  t.match(late, { feasible: 'no', days_left: -7 })
  t.match(late['alternatives'], [
    { service: 'parcel_express', feasible: 'yes', latest_order_by: { date: '2026-11-30' } },
    { service: 'parcel_same_day', feasible: 'yes', latest_order_by: { date: '2026-12-01' } },
    { service: 'digital' },
  ])
  t.match((await ask('2026-12-01', { country: 'JP' })).body, {
    timezone: 'Asia/Tokyo',
    safe_order_by: { date: '2026-11-20', at: '2026-11-20T07:00:00.000Z' },
    feasible: 'at_risk',
  })
})

t.test('adds two days to every shipment before Christmas', async (t) => {
  t.match((await ask('2026-12-18')).body, {
    peak_season: true,
    safe_order_by: { date: '2026-12-08' },
    latest_order_by: { date: '2026-12-16' },
  })
  t.match((await ask('2026-12-09')).body, { peak_season: false })
  t.match((await ask('2026-12-10')).body, { peak_season: true })
  t.match((await ask('2026-12-26')).body, { peak_season: true })
  t.match((await ask('2026-12-27')).body, { peak_season: false })
  t.match((await ask('2026-12-18', { service: 'digital' })).body, { peak_season: false })
})

t.test('delivers flowers on the Sunday of Mother’s Day only', async (t) => {
  t.match((await ask('2027-05-09', { service: 'flowers' })).body, {
    deliver_on: '2027-05-09',
    peak_season: true,
    safe_order_by: { date: '2027-05-06', cutoff_local: '13:00' },
    latest_order_by: { date: '2027-05-09', at: '2027-05-09T17:00:00.000Z' },
  })
  t.match((await ask('2027-06-27', { service: 'flowers', country: 'DE' })).body, {
    deliver_on: '2027-06-26',
    peak_season: false,
  })
  t.match((await ask('2027-03-07', { service: 'flowers', country: 'GB' })).body, {
    deliver_on: '2027-03-07',
  })
})

t.test('follows the country on Saturdays and weekends', async (t) => {
  // 2027-01-16 is a Saturday
  t.match((await ask('2027-01-16')).body, { deliver_on: '2027-01-16' })
  t.match((await ask('2027-01-16', { country: 'ES' })).body, { deliver_on: '2027-01-15' })
  t.match((await ask('2027-01-16', { service: 'parcel_express' })).body, { deliver_on: '2027-01-15' })
  t.match((await ask('2027-01-15', { country: 'SA' })).body, { deliver_on: '2027-01-14' })
  t.match((await ask('2027-01-17', { service: 'grocery' })).body, {
    deliver_on: '2027-01-17',
    transit_business_days: null,
    transit_calendar_days: { min: 0, max: 1 },
    safe_order_by: { date: '2027-01-16' },
    skipped_days: [],
  })
})

t.test('slows shipments from China around the Lunar New Year', async (t) => {
  const abroad = { service: 'parcel_international', country: 'CN' } as const
  t.match((await ask('2027-02-20', abroad)).body, { peak_season: true })
  t.match((await ask('2027-02-21', abroad)).body, { peak_season: false })
  t.match((await ask('2027-02-10', { ...abroad, country: 'US' })).body, { peak_season: false })
})

t.test('refuses a day that is over or too far away, and names it', async (t) => {
  t.match((await ask('2026-11-20')).body, { feasible: 'no' })
  await t.rejects(ask('2026-11-19'), new InvalidParameter('arrive_by', 'arrive_by must not be in the past'))
  t.match((await ask('2027-11-21')).body, { feasible: 'yes' })
  await t.rejects(
    ask('2027-11-22'),
    new InvalidParameter('arrive_by', 'arrive_by must be at most 366 days ahead'),
  )
  await t.rejects(
    ask('2026-12-01', { country: 'AQ' }),
    new InvalidParameter('country', "country 'AQ' is not supported"),
  )
})

t.test('uses the date of the country: over in Tokyo while it lasts in New York', async (t) => {
  const at = '2026-11-20T20:00:00Z'
  t.match((await ask('2026-11-20', { at, service: 'digital' })).body, { feasible: 'yes' })
  await t.rejects(
    ask('2026-11-20', { at, country: 'JP' }),
    new InvalidParameter('arrive_by', 'arrive_by must not be in the past'),
  )
})

/** Prime to the week, so that every weekday occurs in every season; `npm run quality` tries each day. */
const DAYS_APART = process.env['EVERY_DAY'] === undefined ? 11 : 1

t.test(
  'keeps the order of days for every service in every kind of country, all through a year',
  async (t) => {
    for (const country of ['US', 'AE', 'IL', 'CN', 'NP', 'JP', 'BN', 'UG', 'IR']) {
      const calendar = await openCalendar(country)
      if (calendar === undefined) continue
      for (const [name, service] of Object.entries(deliveryRules().services)) {
        for (let day = Date.UTC(2026, 10, 20); day < Date.UTC(2027, 10, 20); day += DAYS_APART * 86_400_000) {
          const arriveBy = new Date(day).toISOString().slice(0, 10)
          const plan = planDelivery(calendar, name, arriveBy)
          if (plan === undefined) throw new Error(name)
          const inOrder =
            plan.safe.date <= plan.latest.date &&
            plan.latest.date <= plan.deliverOn &&
            plan.deliverOn <= arriveBy &&
            plan.safe.at <= plan.latest.at
          if (!inOrder) t.fail(`${country} ${name} ${arriveBy}: ${JSON.stringify(plan)}`)
        }
        t.ok(service.transit.min <= service.transit.max, name)
      }
    }
  },
)

t.test('names only existing services and occasions in its table', async (t) => {
  const services = Object.keys(deliveryRules().services)
  for (const service of Object.values(deliveryRules().services)) {
    for (const name of service.faster) t.ok(services.includes(name), name)
    for (const id of service.sundays_on ?? [])
      t.ok(
        occasions().list.some((each) => each.id === id),
        id,
      )
  }
  for (const peak of deliveryRules().peaks) {
    for (const name of peak.services) t.ok(services.includes(name), name)
    t.ok(
      occasions().list.some(({ id }) => id === peak.occasion),
      peak.occasion,
    )
  }
  for (const { gift } of occasions().list) if (gift !== undefined) t.ok(services.includes(gift), gift)
})

t.test('shows the two days and whether the order is possible in the free sample', async (t) => {
  const preview = deliveryOrderby.preview((await ask('2026-12-01', { service: 'flowers' })).body)
  t.strictSame(Object.keys(preview), [
    'arrive_by',
    'country',
    'service',
    'estimate',
    'safe_order_by',
    'latest_order_by',
    'feasible',
  ])
})
