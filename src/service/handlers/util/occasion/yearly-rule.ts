import { addDays, WEEKDAYS, weekdayOf, yearOf, type Day } from '../workday/day.ts'
import { daysCalled, LUNAR, type Lunar } from './lunar.ts'

/** When something is, year by year. */
export type Rule =
  | { readonly kind: 'fixed'; readonly day: string }
  | {
      readonly kind: 'nth'
      readonly nth: number
      readonly weekday: string
      readonly month: string
      readonly offset: number
    }
  | { readonly kind: 'easter' | 'orthodox'; readonly offset: number }
  | { readonly kind: 'lunar'; readonly calendar: Lunar; readonly name: string }
  | { readonly kind: 'dates'; readonly dates: readonly Day[]; readonly others: Rule }
  | { readonly kind: 'never' }
  | { readonly kind: 'unless'; readonly rule: Rule; readonly clash: Rule; readonly instead: Rule }

/**
 * Reads a rule as the table of occasions writes it; throws for any other text.
 *
 * @example
 * parseRule('nth 2 sunday 05')
 * parseRule('nth -1 sunday 05 unless easter +49 then nth 1 sunday 06')
 */
export function parseRule(text: string): Rule {
  const [, first, clash, instead] = /^(.+) unless (.+) then (.+)$/.exec(text) ?? []
  if (first !== undefined && clash !== undefined && instead !== undefined) {
    return { kind: 'unless', rule: parseRule(first), clash: parseRule(clash), instead: parseRule(instead) }
  }
  const [known = '', others = 'never'] = text.split(' else ')
  const [kind = '', ...words] = known.split(' ')
  const [one = '', two = '', three = '', four = '+0'] = words
  if (kind === 'never' && words.length === 0) return { kind }
  if (kind === 'fixed' && /^\d\d-\d\d$/.test(one)) return { kind, day: one }
  if ((kind === 'easter' || kind === 'orthodox') && /^[+-]\d+$/.test(one))
    return { kind, offset: Number(one) }
  if (kind === 'dates' && words.every((date) => /^\d{4}-\d\d-\d\d$/.test(date))) {
    return { kind, dates: words, others: parseRule(others) }
  }
  if (
    kind === 'nth' &&
    /^-?[1-5]$/.test(one) &&
    isWeekday(two) &&
    /^\d\d$/.test(three) &&
    /^[+-]\d+$/.test(four)
  ) {
    return { kind, nth: Number(one), weekday: two, month: three, offset: Number(four) }
  }
  const calendar = LUNAR.find((each) => each === kind)
  if (calendar !== undefined && words.length > 0) return { kind: 'lunar', calendar, name: words.join(' ') }
  throw new Error(`no such rule: ${text}`)
}

function isWeekday(word: string): boolean {
  return WEEKDAYS.some((each) => each === word)
}

/** The days of a year that a rule means: one as a rule, none or two in some years. */
export function daysBy(rule: Rule, year: number): readonly Day[] {
  switch (rule.kind) {
    case 'fixed':
      return [`${year}-${rule.day}`]
    case 'nth':
      return [addDays(nthWeekday(rule.nth, rule.weekday, `${year}-${rule.month}`), rule.offset)]
    case 'easter':
      return [addDays(easterOf(year), rule.offset)]
    case 'orthodox':
      return [addDays(orthodoxEasterOf(year), rule.offset)]
    case 'lunar':
      return daysCalled(rule.calendar, rule.name, year)
    case 'dates': {
      const days = rule.dates.filter((day) => yearOf(day) === year)
      return days.length === 0 ? daysBy(rule.others, year) : days
    }
    case 'never':
      return []
    case 'unless': {
      const clashes = daysBy(rule.clash, year)
      const days = daysBy(rule.rule, year)
      return days.some((day) => clashes.includes(day)) ? daysBy(rule.instead, year) : days
    }
  }
}

/** `month` is YYYY-MM; a negative `nth` counts from its end. */
function nthWeekday(nth: number, weekday: string, month: string): Day {
  if (nth > 0) return addDays(firstFrom(`${month}-01`, weekday), (nth - 1) * 7)
  const next = addDays(`${month}-28`, 4).slice(0, 7)
  return addDays(firstFrom(`${next}-01`, weekday), nth * 7)
}

function firstFrom(day: Day, weekday: string): Day {
  let found = day
  while (weekdayOf(found) !== weekday) found = addDays(found, 1)
  return found
}

/** Western Easter Sunday (the anonymous Gregorian computus). */
function easterOf(year: number): Day {
  const a = year % 19
  const b = Math.floor(year / 100)
  const c = year % 100
  const d = (19 * a + b - Math.floor(b / 4) - Math.floor((b - Math.floor((b + 8) / 25) + 1) / 3) + 15) % 30
  const e = (32 + 2 * (b % 4) + 2 * Math.floor(c / 4) - d - (c % 4)) % 7
  const f = d + e - 7 * Math.floor((a + 11 * d + 22 * e) / 451) + 114
  const month = String(Math.floor(f / 31)).padStart(2, '0')
  return `${year}-${month}-${String((f % 31) + 1).padStart(2, '0')}`
}

/** Orthodox Easter Sunday: Meeus's rule for the Julian calendar, which is 13 days behind until 2099 and 14 in 2100. */
function orthodoxEasterOf(year: number): Day {
  const moon = (19 * (year % 19) + 15) % 30
  const sunday = (2 * (year % 4) + 4 * (year % 7) - moon + 34) % 7
  const julian = moon + sunday + 114
  const month = String(Math.floor(julian / 31)).padStart(2, '0')
  const behind = Math.floor(year / 100) - Math.floor(year / 400) - 2
  return addDays(`${year}-${month}-01`, (julian % 31) + behind)
}

/** The years that a list of dates covers; `undefined` for rules that hold in every year. */
export function knownYears(rule: Rule): { readonly first: number; readonly last: number } | undefined {
  if (rule.kind !== 'dates' || rule.others.kind !== 'never') return undefined
  const years = rule.dates.map(yearOf)
  return { first: Math.min(...years), last: Math.max(...years) }
}
