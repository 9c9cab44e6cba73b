import type { Sentence } from './sentences.ts'

export interface Keyword {
  readonly term: string
  /** 0 to 1, the best being 1. */
  readonly score: number
}

const LONGEST_PHRASE = 2

/**
 * Phrases are what stands between little words and punctuation; one scores by how often it is said, and its words are.
 * No two that are kept share a word.
 */
export function keywordsOf(
  text: string,
  sentences: readonly Sentence[],
  stopWords: ReadonlySet<string>,
  most: number,
): Keyword[] {
  const phrases = sentences.flatMap((sentence) => phrasesOf(text, sentence, stopWords))
  const said = new Map<string, number>()
  for (const word of phrases.flat()) said.set(word, (said.get(word) ?? 0) + 1)
  const scores = new Map<string, number>()
  for (const phrase of phrases) {
    const words = phrase.reduce((sum, word) => sum + (said.get(word) ?? 0), 0)
    const term = phrase.join(' ')
    scores.set(term, (scores.get(term) ?? 0) + words / phrase.length ** 0.7)
  }
  const sorted = [...scores].sort((one, other) => other[1] - one[1] || one[0].localeCompare(other[0]))
  const best = sorted[0]?.[1] ?? 1
  const kept: Keyword[] = []
  const used = new Set<string>()
  for (const [term, score] of sorted) {
    if (kept.length === most) break
    const words = term.split(' ')
    if (words.some((word) => used.has(word))) continue
    for (const word of words) used.add(word)
    kept.push({ term, score: Math.round((score / best) * 1000) / 1000 })
  }
  return kept
}

function phrasesOf(text: string, { words }: Sentence, stopWords: ReadonlySet<string>): string[][] {
  const phrases: string[][] = []
  let phrase: string[] = []
  let end = -1
  for (const word of words) {
    const apart = end >= 0 && /[^\s]/.test(text.slice(end, word.start))
    if (apart || phrase.length === LONGEST_PHRASE) {
      phrases.push(phrase)
      phrase = []
    }
    end = word.end
    if (stopWords.has(word.word) || word.word.length < 2 || /^\p{N}/u.test(word.word)) {
      phrases.push(phrase)
      phrase = []
    } else {
      phrase.push(word.word)
    }
  }
  phrases.push(phrase)
  return phrases.filter(({ length }) => length > 0)
}

/** `#LevelDesign`; `undefined` where no letter is left. */
export function hashtagOf(term: string): string | undefined {
  const words = term.split(/[^\p{L}\p{N}\p{M}]/u).filter((word) => word !== '')
  const joined = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  return joined === '' ? undefined : `#${joined}`
}
