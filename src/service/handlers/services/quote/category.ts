import { servicePrices, type Category } from './table.ts'

export interface Match {
  readonly category: Category
  /** 0 to 1: how much of what was found speaks for it. */
  readonly confidence: number
}

/** The categories that the words of a need speak for, the best first; `other` alone when there is none. */
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
  // One word alone may mean something else.
  const matches = scores.map(({ category, score }) => ({
    category,
    confidence: round((score / total) * (1 - 0.1 / score)),
  }))
  return matches.length > 0
    ? matches
    : servicePrices()
        .categories.filter(({ id }) => id === 'other')
        .map((category) => ({ category, confidence: 0.1 }))
}

function scoreOf(category: Category, words: readonly string[], weight: (place: number) => number): number {
  const own = category.words.split(' ').filter((word) => word !== '')
  return words.reduce((sum, word, place) => {
    const speaks = own.some((each) =>
      each.endsWith('*') ? word.startsWith(each.slice(0, -1)) : word === each,
    )
    return speaks ? sum + weight(place) : sum
  }, 0)
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]{1,60}(?:-[\p{L}\p{N}]{1,60})?/gu) ?? []
}

function round(share: number): number {
  return Math.max(0.1, Math.round(share * 100) / 100)
}
