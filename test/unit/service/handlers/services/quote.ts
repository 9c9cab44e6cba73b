import t from 'tap'
import {
  Failure,
  InvalidParameter,
  isJsonObject,
  type Json,
  type JsonObject,
} from '../../../../../src/engine/handler.ts'
import { quote } from '../../../../../src/service/handlers/services/quote.ts'
import { servicePrices } from '../../../../../src/service/handlers/services/quote/table.ts'
import { deliveryRules } from '../../../../../src/service/handlers/util/delivery-orderby/table.ts'
import type { Parameters } from '../../../../../src/service/handlers/catalog.ts'
import { fixedContext, publishedExample } from '../../../../support/handler-context.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

async function ask(
  need: string,
  others: Partial<Parameters['services/quote']> = {},
  at = '2026-11-20T20:00:00Z',
) {
  const usual = { need, budget: 100, occasion: '', country: 'US', recipient: '' }
  return checkedAnswer(
    'services/quote',
    await quote.run({ ...usual, ...others }, fixedContext({ now: () => new Date(at) })),
  )
}

function objects(list: Json | undefined): readonly JsonObject[] {
  if (!Array.isArray(list)) throw new Error('expected an array')
  return list.map((entry: JsonObject) => entry)
}

function cents(price: Json | undefined): number {
  return Math.round(Number(price) * 100)
}

async function categoryOf(need: string): Promise<Json> {
  const { category } = (await ask(need)).body
  return isJsonObject(category) ? (category['id'] ?? null) : null
}

t.test(
  'quotes flowers for a mother with category, price, fit and three ways to buy, as published',
  async (t) => {
    const { body, warnings } = await ask("Flowers for my mother's birthday", {
      occasion: 'birthday',
      recipient: 'my mother',
    })
    t.match(body, {
      category: { id: 'flowers' },
      budget: { amount: 100, currency: 'USD' },
      estimate: { low: 35, typical: 60, high: 120, currency: 'USD', binding: false },
      fit: 'within',
      options: [
        { tier: 'budget', total: 35, fits_budget: true },
        { tier: 'standard', total: 60, fits_budget: true },
        { tier: 'premium', total: 120, fits_budget: false },
      ],
      occasion: { name: 'birthday', next_date: null, order_by: null },
      recipient: 'my mother',
      valid_until: '2026-11-27',
      quote_id: /^q_[0-9a-f]{12}$/,
      disclaimer: 'Indicative; not an offer.',
    })
    t.strictSame(warnings, [])
    t.strictSame(body, publishedExample('services/quote'))
  },
)

t.test('finds the category of a need', async (t) => {
  const needs = {
    flowers: 'a bouquet of roses',
    cake: 'Birthday cake for twelve children',
    cleaning: 'clean my flat before the landlord comes',
    moving: 'movers from Berlin to Hamburg',
    translation: 'translate a contract into French',
    logo_design: 'Logo for a coffee shop',
    web_page: 'landing page for my start-up',
    photography: 'wedding photographer',
    handyman: 'fix a leaking tap',
    tutoring: 'maths tutor for my daughter',
    pet_care: 'someone to walk the dog',
    travel: 'weekend trip to Lisbon',
    hotel: 'hotel near the station',
    restaurant: 'dinner for two',
    jewellery: 'silver necklace',
  }
  for (const [id, need] of Object.entries(needs)) t.equal(await categoryOf(need), id, need)
})

t.test('adds up every option to the cent, at every price level and for every category', async (t) => {
  for (const { id, words } of servicePrices().categories) {
    for (const country of ['US', 'IN', 'CH', 'DE', 'LK']) {
      const { body } = await ask(words.split(' ')[0]?.replace('*', '') ?? '', { country, budget: 77.77 })
      for (const option of objects(body['options'])) {
        const items = objects(option['items']).reduce((sum, { price }) => sum + cents(price), 0)
        if (items !== cents(option['total'])) t.fail(`${id} ${country}`)
        t.equal(option['fits_budget'], cents(option['total']) <= 7777)
      }
    }
  }
})

t.test('fits a budget exactly at the price, and misses it by a cent', async (t) => {
  t.match((await ask('bouquet', { budget: 35 })).body, {
    fit: 'tight',
    options: [{ fits_budget: true }, {}, {}],
  })
  t.match((await ask('bouquet', { budget: 34.99 })).body, {
    fit: 'below_minimum',
    options: [{ fits_budget: false }, {}, {}],
  })
  t.match((await ask('bouquet', { budget: 60 })).body, { fit: 'within' })
  t.match((await ask('bouquet', { budget: 0.01 })).body, { budget: { amount: 0.01 }, fit: 'below_minimum' })
  t.match((await ask('bouquet', { budget: 1_000_000 })).body, { fit: 'within' })
})

t.test('follows the country in price level and currency', async (t) => {
  t.match((await ask('bouquet', { country: 'IN' })).body, {
    local_currency: 'INR',
    estimate: { low: 12.25, price_level: 0.35 },
  })
  t.match((await ask('bouquet', { country: 'UK' })).body, { country: 'GB', local_currency: 'GBP' })
  t.match((await ask('bouquet', { country: 'SE' })).body, { local_currency: 'SEK' })
  t.match((await ask('bouquet', { country: 'LK' })).body, {
    local_currency: null,
    estimate: { price_level: 0.7 },
  })
  await t.rejects(
    ask('bouquet', { country: 'AQ' }),
    new InvalidParameter('country', "country 'AQ' is not supported"),
  )
})

t.test('gives the next day of a known occasion and the day to order', async (t) => {
  const occasionOf = async (occasion: string, at?: string) =>
    (await ask('bouquet', { occasion }, at)).body['occasion']
  t.match(await occasionOf("Valentine's Day"), {
    name: "Valentine's Day",
    next_date: '2027-02-14',
    order_by: '2027-02-11',
  })
  t.match(await occasionOf('christmas'), { name: 'Christmas Day', next_date: '2026-12-25' })
  t.match(await occasionOf('mothers day', '2027-05-09T10:00:00Z'), {
    next_date: '2027-05-09',
    order_by: null,
  })
  t.match(await occasionOf('her graduation'), { name: 'her graduation', next_date: null })
  t.equal(await occasionOf(''), null)
})

t.test('repeats a quote on the same day, and varies it on the next', async (t) => {
  const idOf = async (need: string, at?: string) => (await ask(need, {}, at)).body['quote_id']
  t.equal(await idOf('bouquet'), await idOf('bouquet'))
  t.not(await idOf('bouquet'), await idOf('bouquets'))
  t.not(await idOf('bouquet'), await idOf('bouquet', '2026-11-21T20:00:00Z'))
})

t.test('refuses a need of unknown price, for any text', async (t) => {
  for (const need of [
    'xyzzy',
    'iPhone 17 as a gift',
    '  ',
    '!!',
    '__proto__',
    'constructor',
    'a'.repeat(500),
    '花束をください',
    '\u0000\u0001',
    'a-'.repeat(250),
  ]) {
    const refused = await ask(need, { occasion: need.slice(0, 100) }).catch((fault: unknown) => fault)
    if (!(refused instanceof Failure)) t.fail(JSON.stringify(need).slice(0, 30))
    else t.match(refused, { code: 'not_found', extra: { categories: ['flowers'] } })
  }
  t.match((await ask('gift for my dad')).warnings, [{ code: 'low_confidence' }])
})

t.test('prices follow the quantity that the need names', async (t) => {
  t.match((await ask('translate 10,000 words into French')).body, {
    estimate: { low: 400, typical: 1200, unit: 'thousand words', quantity: 10_000, units: 10 },
  })
  t.match((await ask('translate 1000 words')).body, {
    estimate: { low: 40, units: 1 },
    options: [
      { title: 'Basic translation' },
      { title: 'Standard translation' },
      { title: 'Premium translation' },
    ],
  })
  t.strictSame((await ask('translate 1000 words')).body['questions'], ['Which languages?', 'Certified?'])
  t.match((await ask('translate a letter')).body['questions'], [
    'Which languages?',
    'How many words?',
    'Certified?',
  ])
  t.match((await ask('dinner for six')).body, { estimate: { low: 150, quantity: 6, units: 3 } })
  t.match((await ask('hotel for three nights')).body, { estimate: { low: 210, quantity: 3 } })
  t.match((await ask('catering for 50 guests')).body, { estimate: { low: 625, quantity: 50 } })
  t.match((await ask('a bouquet of roses')).body, { estimate: { low: 35, quantity: null, units: 1 } })
})

t.test('names the table of its prices and the day they were recorded', async (t) => {
  const { source, body } = await ask('bouquet')
  t.match(source, [{ name: 'Prices: editorial rules of thumb', version: /^20\d\d-/ }])
  t.match(body, { estimate: { recorded_at: /^20\d\d-\d\d-\d\d$/ } })
})

t.test('ships a complete table: rising prices, shares that add up, existing services', async (t) => {
  t.ok(servicePrices().categories.length >= 24)
  for (const { id, low, typical, high, items, delivery } of servicePrices().categories) {
    t.ok(low < typical && typical < high, id)
    t.ok(Math.abs(Object.values(items).reduce((sum, share) => sum + share, 0) - 1) < 1e-9, id)
    if (delivery) t.ok(delivery in deliveryRules().services, id)
  }
})

t.test('shows category, estimate and fit in the free sample', async (t) => {
  t.strictSame(Object.keys(quote.preview((await ask('bouquet')).body)), [
    'need',
    'category',
    'budget',
    'estimate',
    'fit',
  ])
})

t.test('refuses other services and measures, and counts what is repeated', async (t) => {
  for (const need of ['repaint a 20 square meter room', 'proofread a 90,000 word novel'])
    await t.rejects(ask(need), { code: 'not_found' }, need)
  t.match((await ask('dog walking 5 days a week for a month')).body, {
    category: { id: 'pet_care' },
    estimate: { quantity: 22, units: 22 },
  })
  await t.rejects(ask('dog walking 5 days a week'), { message: /for how long/ })
})
