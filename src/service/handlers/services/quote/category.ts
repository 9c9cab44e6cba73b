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
