import type { Game } from '../../sources/igdb/shapes.ts'

/** How sure it is that a game is the one that was asked for, from 0 to 1. */
export interface Match {
  readonly game: Game
  readonly confidence: number
}

const SAME_NUMBERED = 0.98
const SAME_OTHERWISE = 0.95
/** The most that names can have in common without being the same. */
const LIKE = 0.9
/** Names with other numbers are other parts of a series. */
const OTHER_NUMBER = 0.6
/** What a place further down in the source's own order costs, and what is no game of its own. */
const PLACE = 0.02
const NO_MAIN_GAME = 0.05
/** IGDB's id for what is a game of its own: no edition, pack or port. */
const MAIN_GAME = 0

/**
 * Candidates by how well they fit a name. Those of the same name come first: games of their own before parts of others,
 * then those that more people have rated. The others keep the order of the source unless their words fit clearly better.
 *
 * @example
 * rankMatches('portal 2', games)[0] // { game: { name: 'Portal 2', … }, confidence: 1 }
 */
export function rankMatches(name: string, games: readonly Game[]): readonly Match[] {
  return games
    .map((game, place) => ({ game, place, confidence: confidenceOf(name, game) }))
    .toSorted((one, other) => {
      const isOrdered = name !== '' && Math.max(one.confidence, other.confidence) < SAME_OTHERWISE
      if (isOrdered) return weigh(other) - weigh(one)
      return other.confidence - one.confidence || fameOf(other.game) - fameOf(one.game)
    })
    .map(({ game, confidence }) => ({ game, confidence }))
}

function weigh({ game, place, confidence }: Match & { readonly place: number }): number {
  return confidence - PLACE * place - (isMainGame(game) ? 0 : NO_MAIN_GAME)
}

/** A count of ratings, after the kind: no game has as many ratings as this. */
function fameOf(game: Game): number {
  return (isMainGame(game) ? 1e12 : 0) + (game.total_rating_count ?? 0)
}

function isMainGame({ game_type }: Game): boolean {
  return (game_type?.id ?? MAIN_GAME) === MAIN_GAME
}

function confidenceOf(name: string, game: Game): number {
  if (fold(name) === fold(game.name)) return 1
  const [asked, found] = [wordsOf(name), wordsOf(game.name)]
  if (asked.length === 0) return 0
  const said = asked.join(' ')
  if (said === found.join(' ')) return SAME_NUMBERED
  const others = (game.alternative_names ?? []).map((other) => wordsOf(other.name).join(' '))
  if (others.includes(said) || wordsOf((game.slug ?? '').replaceAll('-', ' ')).join(' ') === said)
    return SAME_OTHERWISE
  const [one, other] = [new Set(asked), new Set(found)]
  const common = [...one].filter((word) => other.has(word)).length
  const likeness = (LIKE * 2 * common) / (one.size + other.size)
  const isOther = numbersOf(asked) !== '' && numbersOf(asked) !== numbersOf(found)
  return Number((likeness * (isOther ? OTHER_NUMBER : 1)).toFixed(2))
}

/** Equal for names that people take for equal. */
export function fold(name: string): string {
  return name.normalize('NFKC').trim().replace(/\s+/g, ' ').toLowerCase()
}

/** II to XX; a lone I is a word. */
const ROMAN = 'ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx'.split(' ')

/** Words without accents and apostrophes, Roman numerals as figures. */
function wordsOf(name: string): string[] {
  const plain = name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(/['’]/g, '')
  return (plain.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => {
    const numeral = ROMAN.indexOf(word)
    return numeral < 0 ? word : String(numeral + 2)
  })
}

function numbersOf(words: readonly string[]): string {
  return words
    .filter((word) => /^\d+$/.test(word))
    .toSorted()
    .join(' ')
}
