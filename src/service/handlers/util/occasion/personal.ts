import { InvalidParameter } from 'ratecard/handler'
import { addDays, yearOf, type Day } from '../workday/day.ts'

const MOST_ENTRIES = 25
const FORM = "personal must be a list of 'name:MM-DD' or 'name:YYYY-MM-DD' separated by ';'"

/** A day of one's own, every year. */
export interface PersonalDay {
  readonly name: string
  /** MM-DD. */
  readonly day: string
  /** Year of the first one, if known. */
  readonly since: number | undefined
}

/** One of them in a certain year. */
export interface Anniversary {
  readonly name: string
  readonly date: Day
  /** How many years after the first one. */
  readonly years: number | undefined
  readonly note: string | undefined
}

/**
 * Reads days of one's own; a malformed list is refused as a whole.
 *
 * @example
 * parsePersonal('Mum birthday:04-12;Wedding:2015-06-20')
 */
export function parsePersonal(text: string): PersonalDay[] {
  const entries = text
    .split(/[;,]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
  if (entries.length > MOST_ENTRIES) {
    throw new InvalidParameter('personal', `personal must have at most ${MOST_ENTRIES} entries`)
  }
  return entries.map((entry) => {
    // Names may hold colons, dates do not.
    const colon = entry.lastIndexOf(':')
    const name = entry.slice(0, Math.max(0, colon)).trim()
    const date = entry.slice(colon + 1).trim()
    const [, year, day = ''] = /^(?:(\d{4})-)?(\d\d-\d\d)$/.exec(date) ?? []
    // A leap year stands for a year that is not given: 29 February is a birthday, too.
    if (name === '' || !isDay(`${year ?? '2000'}-${day}`)) throw new InvalidParameter('personal', FORM)
    return { name, day, since: year === undefined ? undefined : Number(year) }
  })
}

function isDay(text: string): boolean {
  const instant = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(instant) && new Date(instant).toISOString().startsWith(text)
}

/** The anniversaries between two days, both included. */
export function anniversariesOf({ name, day, since }: PersonalDay, first: Day, last: Day): Anniversary[] {
  const found: Anniversary[] = []
  for (let year = yearOf(first); year <= yearOf(last); year++) {
    const exact = `${year}-${day}`
    const moved = !isDay(exact)
    const date = moved ? addDays(`${year}-03-01`, -1) : exact
    const years = since === undefined ? undefined : year - since
    if (date < first || date > last || (years !== undefined && years < 0)) continue
    const note = moved ? '29 February, kept on the 28th in common years' : undefined
    found.push({ name, date, years, note })
  }
  return found
}

const MATERIALS: Readonly<Record<number, string>> = {
  1: 'paper',
  2: 'cotton',
  3: 'leather',
  4: 'flowers',
  5: 'wood',
  6: 'iron',
  7: 'wool',
  8: 'bronze',
  9: 'pottery',
  10: 'tin',
  15: 'crystal',
  20: 'china',
  25: 'silver',
  30: 'pearl',
  35: 'coral',
  40: 'ruby',
  45: 'sapphire',
  50: 'gold',
  55: 'emerald',
  60: 'diamond',
  70: 'platinum',
}

/** What a wedding anniversary is called after; `undefined` for other days and years without a name. */
export function materialOf({ name, years }: Anniversary): string | undefined {
  const wedding = /wedding|marriage|anniversary|hochzeit|mariage|boda|matrimonio|casamento/i.test(name)
  return wedding && years !== undefined ? MATERIALS[years] : undefined
}
