import type { Sentence } from './sentences.ts'

export interface Keyword {
  readonly term: string
  /** 0 to 1, the best being 1. */
  readonly score: number
}

/** Of a word longer than this, the length says no more about its weight. */
const LONG = 12

/** By root: the term as it is said first, and how much it stands for the text. */
export type Terms = ReadonlyMap<string, { readonly term: string; readonly score: number }>

/**
 * Words, and pairs of neighbours that are said more than once. A term scores by how often it is said, and a long one up to
 * twice as much: long words are the topics of a text more often than short ones.
 */
export function termsOf(text: string, sentences: readonly Sentence[], stopWords: ReadonlySet<string>): Terms {
  const said = new Map<string, { term: string; count: number }>()
  for (const term of sentences.flatMap((sentence) => saidIn(text, sentence, stopWords))) {
    const known = said.get(rootOf(term))
    if (known === undefined) said.set(rootOf(term), { term, count: 1 })
    else known.count += 1
  }
  return new Map(
    Array.from(said)
      .filter(([root, { count }]) => count > 1 || !root.includes(' '))
      .map(([root, { term, count }]) => [
        root,
        { term, score: count * (1 + Math.min(term.length, LONG) / LONG) },
      ]),
  )
}

/** The terms of some of the sentences, the best first and then as they are said; no two share a word. */
export function keywordsOf(
  text: string,
  sentences: readonly Sentence[],
  stopWords: ReadonlySet<string>,
  terms: Terms,
  most: number,
): Keyword[] {
  const roots = new Set(sentences.flatMap((sentence) => saidIn(text, sentence, stopWords)).map(rootOf))
  const sorted = Array.from(roots)
    .flatMap((root) => terms.get(root) ?? [])
    .sort((one, other) => other.score - one.score)
  const best = sorted[0]?.score ?? 1
  const kept: Keyword[] = []
  const used = new Set<string>()
  for (const { term, score } of sorted) {
    if (kept.length === most) break
    const words = rootOf(term).split(' ')
    if (words.some((word) => used.has(word))) continue
    for (const word of words) used.add(word)
    kept.push({ term, score: Math.round((score / best) * 1000) / 1000 })
  }
  return kept
}

/** Words that carry a topic, and pairs of them with nothing but space between. */
function saidIn(text: string, { words }: Sentence, stopWords: ReadonlySet<string>): string[] {
  const terms: string[] = []
  let before: Sentence['words'][number] | undefined
  for (const word of words) {
    if (stopWords.has(word.word) || word.word.length < 2 || /^\p{N}/u.test(word.word)) {
      before = undefined
      continue
    }
    if (before !== undefined && text.slice(before.end, word.start).trim() === '')
      terms.push(`${before.word} ${word.word}`)
    terms.push(word.word)
    before = word
  }
  return terms
}

/** Plurals in -s count with their singulars. */
function rootOf(term: string): string {
  return term.replace(/(?<=\p{L}{2}[^s\s])s(?= |$)/gu, '')
}

/** `#LevelDesign`; `undefined` where no letter is left. */
export function hashtagOf(term: string): string | undefined {
  const words = term.split(/[^\p{L}\p{N}\p{M}]/u).filter((word) => word !== '')
  const joined = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  return joined === '' ? undefined : `#${joined}`
}
