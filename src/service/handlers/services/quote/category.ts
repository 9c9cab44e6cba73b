import { servicePrices, type Category } from './table.ts'

export interface Match {
  readonly category: Category
  /** 0 to 1: how clearly the words speak for it, and for nothing else. */
  readonly confidence: number
}

/** What a word of a category's `weak` list counts, against one of its `words`. */
const WEAK = 0.2

/** The categories that the words of a need speak for, the best first; none when no word is known. */
export function matchCategories(need: string, occasion: string): Match[] {
  const words = wordsOf(need)
  const hints = wordsOf(occasion)
  const scores = servicePrices()
    .categories.map((category) => ({
      category,
      // What comes first in a request is what is wanted.
      score: scoreOf(category, words, (place) => 1 + 1 / (1 + place)) + scoreOf(category, hints, () => 0.25),
    }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
  const total = scores.reduce((sum, { score }) => sum + score, 0)
  return scores.map(({ category, score }) => ({
    category,
    // One word alone may mean something else.
    confidence: round((score / total) * (score / (score + 0.5))),
  }))
}

function scoreOf(
  { words, weak }: Category,
  said: readonly string[],
  weight: (place: number) => number,
): number {
  const strong = words.split(' ')
  const faint = weak?.split(' ') ?? []
  return said.reduce((sum, word, place) => {
    if (strong.some((each) => speaksFor(word, each))) return sum + weight(place)
    return faint.some((each) => speaksFor(word, each)) ? sum + WEAK * weight(place) : sum
  }, 0)
}

function speaksFor(word: string, pattern: string): boolean {
  return pattern.endsWith('*') ? word.startsWith(pattern.slice(0, -1)) : word === pattern
}

const NUMBERS = ['two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve']
const NUMBER = `(\\d{1,3}(?:[,.\u2009\u202f ]\\d{3})+|\\d{1,7}|${NUMBERS.join('|')})`
/** "10,000 words", "three short clips", "dinner for six". */
const COUNTED = new RegExp(`\\b${NUMBER}\\s+(?:\\p{L}{1,30}\\s+)?(\\p{L}{1,30})`, 'giu')
const FOR_PEOPLE = new RegExp(`\\bfor\\s+${NUMBER}(?![\\d.,]|\\s+(?:hour|day|night|week))`, 'iu')
const LARGEST = 1_000_000

const OFTEN = new RegExp(
  `\\b(?:${NUMBER}\\s*(?:times|x|days|nights|\\p{L}{1,20})?\\s+(?:a|per|each|every)|(once|twice)\\s+(?:a|per|each|every)|(every|each))\\s+(day|week|month)\\b|\\b(daily|weekly|monthly)\\b`,
  'iu',
)
const SPAN = new RegExp(`\\bfor\\s+(?:(a|an|one)|${NUMBER})\\s+(day|week|month|year)s?\\b`, 'iu')
const DAYS: Readonly<Record<string, number>> = { day: 1, week: 7, month: 365 / 12, year: 365 }

/**
 * How often in all: 22 for "5 days a week for a month". Undefined when nothing is said to be repeated, and
 * `unbounded` when it is, and nothing says for how long.
 */
export function occurrencesIn(need: string): number | 'unbounded' | undefined {
  const found = OFTEN.exec(need)
  if (found === null) return undefined
  const [, number, times, , period, adverb] = found
  const span = SPAN.exec(need)
  if (span === null) return 'unbounded'
  const often = number === undefined ? (times?.toLowerCase() === 'twice' ? 2 : 1) : (read(number) ?? 1)
  const every = DAYS[(period ?? ADVERBS[adverb?.toLowerCase() ?? ''] ?? 'day').toLowerCase()] ?? 1
  const long = (DAYS[span[3]?.toLowerCase() ?? ''] ?? 1) * (span[2] === undefined ? 1 : (read(span[2]) ?? 1))
  return Math.max(1, Math.round((often * long) / every))
}

const ADVERBS: Readonly<Record<string, string>> = { daily: 'day', weekly: 'week', monthly: 'month' }

/** Whether no price here covers what is asked for: another service, or a quantity in a measure that no price counts. */
export function isUnpriced(need: string): boolean {
  const { unpriced, measures, categories } = servicePrices()
  const words = wordsOf(need)
  const place = words.findIndex((word) => unpriced.split(' ').some((each) => speaksFor(word, each)))
  const priced = words.findIndex((word) =>
    categories.some((category) => category.words.split(' ').some((each) => speaksFor(word, each))),
  )
  if (place >= 0 && (priced < 0 || place < priced)) return true
  return [...need.matchAll(COUNTED)].some(([match]) =>
    wordsOf(match).some((word) => measures.split(' ').includes(word)),
  )
}

/** The quantity that a need asks for, in the unit of its category; undefined when it states none. */
export function quantityIn(need: string, { counted }: Category): number | undefined {
  if (counted === undefined || counted === null) return undefined
  const units = counted.words.split(' ')
  for (const [match, number = '', unit = ''] of need.matchAll(COUNTED)) {
    const said = match.toLowerCase().split(/\s+/)
    if (units.includes(unit.toLowerCase()) || said.some((word) => units.includes(word))) return read(number)
  }
  const people = units.includes('people') ? FOR_PEOPLE.exec(need)?.[1] : undefined
  return people === undefined ? undefined : read(people)
}

function read(number: string): number | undefined {
  const place = NUMBERS.indexOf(number.toLowerCase())
  const value = place === -1 ? Number(number.replace(/\D/g, '')) : place + 2
  return value >= 1 && value <= LARGEST ? value : undefined
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]{1,60}(?:-[\p{L}\p{N}]{1,60})?/gu) ?? []
}

function round(share: number): number {
  return Math.max(0.1, Math.round(share * 100) / 100)
}
