import type { ListedEntry, ListedName } from './entry.ts'
import {
  isInitial,
  LEAST_SIMILARITY,
  skeletonSimilarity,
  wordOf,
  wordSimilarity,
  type Word,
} from './word-similarity.ts'
import { readName, wordsFor, type Name } from './name.ts'
import { isTelling, nameSimilarity, type Pair } from './name-similarity.ts'

/** An entry that resembles the name asked for, by the name of it that does so most. */
export interface Hit {
  readonly entry: ListedEntry
  readonly name: ListedName
  readonly score: number
  readonly pairs: readonly Pair[]
}

interface IndexedName {
  readonly entry: ListedEntry
  readonly name: ListedName
  readonly words: readonly string[]
}

/** Words that differ more in length are not compared. */
const LENGTH_REACH = 4

/**
 * The names of one list, found by words that are alike. Words are shared by many names: each is compared once with
 * each word asked for, and only names that have one of those alike are scored.
 *
 * @example
 * const index = new NameIndex()
 * for (const entry of entries) index.add(entry)
 * index.search(readName('Nicolas Maduro'), 0.85) // [{ entry, name, score: 0.94, pairs }]
 */
export class NameIndex {
  readonly #byLength: Map<string, Word>[] = []
  readonly #named = new Map<string, IndexedName[]>()
  /** Names by two neighbouring words of theirs written as one. */
  readonly #joined = new Map<string, IndexedName[]>()

  add(entry: ListedEntry): void {
    for (const name of entry.names) {
      const words = wordsFor(entry.kind, readName(name.text))
      const indexed = { entry, name, words }
      for (const word of new Set(words)) {
        note(this.#named, word, indexed)
        const alike = (this.#byLength[word.length] ??= new Map())
        if (!alike.has(word)) alike.set(word, wordOf(word))
      }
      for (const joined of neighbours(words)) note(this.#joined, joined, indexed)
    }
  }

  /** Every entry with a name that scores `threshold` or more and is a hit in other respects, too; the best first. */
  search(name: Name, threshold: number, isHit: (hit: Hit) => boolean = () => true): Hit[] {
    const forms = [
      ...new Map([name.person, name.organisation].map((form) => [form.join(' '), form])).values(),
    ]
    const known = new Map<string, ReadonlyMap<string, number>>()
    for (const word of new Set(forms.flat())) known.set(word, this.#alike(word, name))
    const best = new Map<ListedEntry, Hit>()
    for (const form of forms) {
      for (const indexed of this.#candidates(form, known)) {
        if (wordsFor(indexed.entry.kind, name) !== form && forms.length > 1) continue
        const hit = score(form, indexed, known)
        if (hit.score >= threshold && hit.score > (best.get(indexed.entry)?.score ?? 0) && isHit(hit))
          best.set(indexed.entry, hit)
      }
    }
    return [...best.values()].sort((a, b) => b.score - a.score || compare(a.entry.uid, b.entry.uid))
  }

  /** Words of the list that are alike, with their likeness. */
  #alike(text: string, { vowelless }: Name): ReadonlyMap<string, number> {
    const asked = wordOf(text)
    const found = new Map<string, number>()
    for (
      let length = Math.max(1, text.length - LENGTH_REACH);
      length <= text.length + LENGTH_REACH;
      length++
    ) {
      for (const word of this.#byLength[length]?.values() ?? []) {
        const spelled = wordSimilarity(asked, word)
        const alike = vowelless ? Math.max(spelled, skeletonSimilarity(asked, word)) : spelled
        if (alike >= LEAST_SIMILARITY) found.set(word.text, alike)
      }
    }
    return found
  }

  #candidates(form: readonly string[], known: ReadonlyMap<string, ReadonlyMap<string, number>>) {
    const names = new Set<IndexedName>()
    const take = (found: readonly IndexedName[] | undefined): void =>
      found?.forEach((each) => names.add(each))
    // Initials and particles are in too many names to find one by.
    const telling = form.filter((word) => isTelling(word) && word.length > 1)
    for (const word of telling.length === 0 ? form : telling) {
      for (const alike of known.get(word)?.keys() ?? []) take(this.#named.get(alike))
      take(this.#joined.get(word))
    }
    for (const joined of neighbours(form)) take(this.#named.get(joined))
    return names
  }
}

function score(
  form: readonly string[],
  { entry, name, words }: IndexedName,
  known: ReadonlyMap<string, ReadonlyMap<string, number>>,
): Hit {
  const isPerson = entry.kind === 'individual'
  const asked = joinAs(form, words)
  const listed = joinAs(words, asked)
  const found = nameSimilarity({
    asked,
    listed,
    likeness: (one, other) => {
      if (one === other) return 1
      return isPerson && isInitial(one, other) ? LEAST_SIMILARITY : (known.get(one)?.get(other) ?? 0)
    },
    weak: name.weak,
    organisation: !isPerson,
  })
  return { entry, name, ...found }
}

/** Neighbouring words are one wherever the other side writes them as one: Jong Un, Jongun. */
function joinAs(words: readonly string[], other: readonly string[]): readonly string[] {
  const place = neighbours(words).findIndex((joined) => other.includes(joined))
  const [first, second] = [words[place], words[place + 1]]
  if (first === undefined || second === undefined) return words
  return joinAs([...words.slice(0, place), first + second, ...words.slice(place + 2)], other)
}

function neighbours(words: readonly string[]): string[] {
  return words.slice(1).map((word, place) => `${words[place]}${word}`)
}

function note(map: Map<string, IndexedName[]>, word: string, name: IndexedName): void {
  const names = map.get(word)
  if (names === undefined) map.set(word, [name])
  else names.push(name)
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
