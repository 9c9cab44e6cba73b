import { Failure, InvalidParameter, digestJson, type JsonObject } from 'ratecard/handler'
import type { HandlerWithPreview } from '../catalog.ts'
import { planDelivery } from '../util/delivery-orderby/plan.ts'
import { daysOfOccasion, occasions, type Occasion } from '../util/occasion/table.ts'
import { openCalendar, type Calendar } from '../util/workday/calendar.ts'
import { addDays, dayIn, yearOf, type Day } from '../util/workday/day.ts'
import { HOLIDAYS } from '../util/workday/source.ts'
import { isUnpriced, matchCategories, occurrencesIn, quantityIn } from './quote/category.ts'
import { optionsFor } from './quote/quote-options.ts'
import { currencyOf, factorOf, servicePrices, type Category } from './quote/table.ts'

const VALID_DAYS = 7
const MOST_ALTERNATIVES = 3
/** Below it no price is given: 404, uncharged. */
const LEAST_CONFIDENCE = 0.4
const UNCERTAIN_BELOW = 0.6

const UNCERTAIN = {
  code: 'low_confidence',
  message: 'The need could not be assigned to one category with confidence: see category.alternatives',
}

const UNBOUNDED = 'need says how often, so it must say for how long, such as "for a month"'
const UNKNOWN_NEED = 'No price is known for this need: name a service or gift of one of the categories'

function categoryIds(): string[] {
  return servicePrices().categories.map(({ id }) => id)
}

/** What a service or gift costs by rule of thumb, and three ways to spend a budget on it; nothing is ordered. */
export const quote: HandlerWithPreview<'services/quote'> = {
  run: async (parameters, { now }) => {
    const { need, budget, occasion, recipient } = parameters
    const country = parameters.country === 'UK' ? 'GB' : parameters.country
    const calendar = await openCalendar(country)
    if (calendar === undefined) throw new InvalidParameter('country', `country '${country}' is not supported`)
    const today = dayIn(calendar.timezone, now())
    const [best, ...others] = matchCategories(need, occasion)
    const occurrences = occurrencesIn(need)
    if (best === undefined || best.confidence < LEAST_CONFIDENCE || isUnpriced(need))
      throw new Failure('not_found', UNKNOWN_NEED, { extra: { categories: categoryIds() } })
    const { category, confidence } = best
    const factor = factorOf(country)
    if (occurrences === 'unbounded') throw new InvalidParameter('need', UNBOUNDED)
    const counted = quantityIn(need, category)
    // "3 lessons a week for a month" counts lessons once.
    const quantity = occurrences ?? counted
    const units = occurrences ?? (counted === undefined ? 1 : counted / (category.counted?.size ?? 1))
    const [low, typical, high] = [category.low, category.typical, category.high].map((price) =>
      Math.round(price * factor * units * 100),
    )
    const cents = { budget: Math.round(budget * 100), low: low ?? 0, typical: typical ?? 0, high: high ?? 0 }
    return {
      source: [
        { name: `Prices: ${servicePrices().source}`, version: servicePrices().version },
        ...(occasion === '' ? [] : [HOLIDAYS]),
      ],
      warnings: confidence < UNCERTAIN_BELOW ? [UNCERTAIN] : [],
      body: {
        need,
        category: {
          id: category.id,
          confidence,
          alternatives: others.slice(0, MOST_ALTERNATIVES).map((match) => ({
            id: match.category.id,
            confidence: match.confidence,
          })),
        },
        country,
        local_currency: currencyOf(country) ?? null,
        budget: { amount: dollars(cents.budget), currency: 'USD' },
        estimate: {
          low: dollars(cents.low),
          typical: dollars(cents.typical),
          high: dollars(cents.high),
          currency: 'USD',
          unit: category.unit,
          quantity: quantity ?? null,
          units,
          recorded_at: category.recorded_at,
          price_level: factor,
          binding: false,
        },
        fit: cents.budget < cents.low ? 'below_minimum' : cents.budget < cents.typical ? 'tight' : 'within',
        options: optionsFor(category, cents),
        occasion: occasion === '' ? null : occasionFor(occasion, calendar, today, category),
        recipient: recipient === '' ? null : recipient,
        questions: openQuestions(category, quantity),
        valid_until: addDays(today, VALID_DAYS),
        quote_id: `q_${idOf({ ...parameters, day: today, version: servicePrices().version })}`,
        disclaimer: 'Indicative; not an offer.',
      },
    }
  },

  preview: ({ need = null, category = null, budget = null, estimate = null, fit = null }) => ({
    need,
    category,
    budget,
    estimate,
    fit,
  }),
}

/** Questions that a seller would ask, except for a quantity that the need states. */
function openQuestions({ questions, counted }: Category, quantity: number | undefined): string[] {
  if (quantity === undefined || counted == null) return [...questions]
  const known = counted.words.split(' ')
  return questions.filter(
    (question) =>
      !/how many/i.test(question) || !(question.match(/\w+/g) ?? []).some((word) => known.includes(word)),
  )
}

function dollars(cents: number): number {
  return cents / 100
}

/** Twelve hexadecimal digits: the same question on the same day has the same quote. */
function idOf(question: JsonObject): string {
  return Buffer.from(digestJson(question), 'base64url').toString('hex').slice(0, 12)
}

/** The next day of a known occasion; without a date for birthdays and similar ones. */
function occasionFor(said: string, calendar: Calendar, today: Day, category: Category): JsonObject {
  const known = findOccasion(said)
  const next = known && nextDay(known, calendar.country, today)
  const safe =
    next && category.delivery ? planDelivery(calendar, category.delivery, next)?.safe.date : undefined
  return {
    name: known?.name ?? said,
    next_date: next ?? null,
    order_by: safe !== undefined && safe >= today ? safe : null,
  }
}

function findOccasion(said: string): Occasion | undefined {
  const wanted = lettersOf(said)
  return occasions().list.find(({ name, names }) =>
    [name, ...names].some((each) => {
      const letters = lettersOf(each)
      return wanted.includes(letters) || (wanted.length >= 4 && letters.startsWith(wanted))
    }),
  )
}

function lettersOf(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}]/gu, '')
}

function nextDay({ id }: Occasion, country: string, today: Day): Day | undefined {
  const year = yearOf(today)
  return [year, year + 1, year + 2]
    .flatMap((each) => [...daysOfOccasion(id, country, each)])
    .find((day) => day >= today)
}
