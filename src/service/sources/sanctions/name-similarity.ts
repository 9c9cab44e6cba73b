import { isInitial } from './word-similarity.ts'
import { COMMON, GENERIC, PARTICLES } from './spelling.ts'

/** Two words taken for the same. */
export interface Pair {
  readonly asked: string
  readonly listed: string
  readonly likeness: number
}

/** The words that were asked for and those of a listed name, with what is alike between them. */
export interface Comparison {
  readonly asked: readonly string[]
  readonly listed: readonly string[]
  /** Likeness of two words, 0 where they have nothing to do with each other. */
  readonly likeness: (asked: string, listed: string) => number
  /** The list itself doubts this name. */
  readonly weak: boolean
  /** Organisations share many words; those of people are all their own. */
  readonly organisation: boolean
}

export interface NameSimilarity {
  readonly score: number
  readonly pairs: readonly Pair[]
}

/** How much of a listed name that nobody asked for counts against it. */
const SURPLUS_COST = 0.2
const GENERIC_SHARE = 0.3
const ONE_LISTED_WORD = 0.85
const ONE_ASKED_WORD = 0.9
const NO_OWN_WORD = 0.8
const WEAK_NAME = 0.97
/** Words left out next to initials: a name that is shortened is shortened throughout. */
const INITIALS_SURPLUS = 0.5
const INITIALS_MOST = 0.94
const OTHER_INITIAL = 0.9
/** People of common names are many: the one who is meant is not known. */
const COMMON_MOST = 0.89
const COMMON_PART = 0.9

/**
 * How much a listed name resembles the one asked for, 0 to 1. Words are paired, the most alike first, each one once:
 *
 *     sum of likeness × letters of both words in the pair
 *     ÷ (letters asked for + letters of the listed words in pairs)
 *     × (1 − 0.2 × share of the listed letters in no pair; of generic words 30 % count, of particles none)
 *     × 0.80 when a listed name has words of its own and only generic ones are in pairs
 *     × 0.85 when a single word of a listed name of several is in a pair
 *     × 0.90 when a single word of several asked for is in a pair
 *     × 0.97 for a name that the list itself calls weak
 *
 * A person of whom only common names are in pairs scores 0.89 at most, and × 0.90 when the listed name has another word of
 * its own.
 *
 * Particles (al, bin, de …) asked for and in no pair do not count.
 *
 * An initial of a person's name pairs with a word that begins with it: both count as one letter, words in no pair cost
 * half, and the score is 0.94 at most. A given name alone makes no initial count: "Igor S." is nobody. An initial in no
 * pair, while the listed name has a word that begins otherwise: × 0.90.
 */
export function nameSimilarity(comparison: Comparison): NameSimilarity {
  const { asked, listed, weak, organisation } = comparison
  const { pairs, unasked, unlisted } = pairUp(comparison)
  const byInitial = pairs.filter((pair) => !organisation && isInitial(pair.asked, pair.listed))
  const lettersOf = (pair: Pair): Pair =>
    byInitial.includes(pair) ? { ...pair, asked: pair.asked.charAt(0), listed: pair.listed.charAt(0) } : pair
  const weighed = pairs.map(lettersOf)
  const paired = sum(
    weighed,
    ({ asked: one, listed: other, likeness }) => likeness * (one.length + other.length),
  )
  const askedLetters = letters(weighed.map((pair) => pair.asked)) + letters(unlisted.filter(isTelling))
  const pairedLetters = letters(weighed.map((pair) => pair.listed))
  if (paired === 0) return { score: 0, pairs }
  const surplus = sum(unasked, (word) => word.length * surplusShare(word, organisation))
  const costing = byInitial.length > 0 ? surplus * INITIALS_SURPLUS : surplus
  const share = costing / (costing + pairedLetters)
  // Listed names begin with the given name.
  const isNamed = pairs.some((pair) => !byInitial.includes(pair) && listed.lastIndexOf(pair.listed) > 0)
  const counting = isNamed ? pairs : pairs.filter((pair) => !byInitial.includes(pair))
  const telling = counting.filter((pair) => isTelling(pair.listed)).length
  const isOwn = (word: string): boolean => isTelling(word) && !(organisation && GENERIC.has(word))
  const own = listed.filter(isOwn).length
  const isCommon = !organisation && pairs.every((pair) => !isTelling(pair.listed) || COMMON.has(pair.listed))
  const isOtherwise =
    !organisation &&
    unlisted.some((word) => /^[a-z]$/.test(word) && isTelling(word)) &&
    unasked.some(isTelling)
  const score =
    (paired / (askedLetters + pairedLetters)) *
    (1 - SURPLUS_COST * share) *
    (own > 0 && !pairs.some((pair) => isOwn(pair.listed)) ? NO_OWN_WORD : 1) *
    (telling <= 1 && own > 1 ? ONE_LISTED_WORD : 1) *
    (telling <= 1 && asked.filter(isTelling).length > 1 ? ONE_ASKED_WORD : 1) *
    (isOtherwise ? OTHER_INITIAL : 1) *
    (weak ? WEAK_NAME : 1) *
    (isCommon && unasked.some((word) => isTelling(word) && !COMMON.has(word)) ? COMMON_PART : 1)
  const most = Math.min(byInitial.length > 0 ? INITIALS_MOST : 1, isCommon ? COMMON_MOST : 1)
  return { score: Math.min(score, most), pairs }
}

export function isTelling(word: string): boolean {
  return !PARTICLES.has(word)
}

function surplusShare(word: string, organisation: boolean): number {
  if (!isTelling(word)) return 0
  return organisation && GENERIC.has(word) ? GENERIC_SHARE : 1
}

interface Pairing {
  readonly pairs: Pair[]
  /** Listed words in no pair. */
  readonly unasked: readonly string[]
  /** Words asked for in no pair. */
  readonly unlisted: readonly string[]
}

function pairUp({ asked, listed, likeness }: Comparison): Pairing {
  const possible = asked.flatMap((one, from) =>
    listed.map((other, to) => ({ from, to, asked: one, listed: other, likeness: likeness(one, other) })),
  )
  const from = new Set(asked.keys())
  const to = new Set(listed.keys())
  const pairs: Pair[] = []
  const weight = (pair: Pair): number => pair.likeness * (pair.asked.length + pair.listed.length)
  const best = possible
    .filter((pair) => pair.likeness > 0)
    .sort((a, b) => b.likeness - a.likeness || weight(b) - weight(a))
  for (const pair of best) {
    if (!from.has(pair.from) || !to.has(pair.to)) continue
    from.delete(pair.from)
    to.delete(pair.to)
    pairs.push({ asked: pair.asked, listed: pair.listed, likeness: pair.likeness })
  }
  return {
    pairs,
    unasked: [...to].flatMap((place) => listed[place] ?? []),
    unlisted: [...from].flatMap((place) => asked[place] ?? []),
  }
}

function letters(words: readonly string[]): number {
  return sum(words, (word) => word.length)
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0)
}
