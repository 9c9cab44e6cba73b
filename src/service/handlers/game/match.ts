import type { Game } from '../../sources/igdb/shapes.ts'

/** How sure it is that a game is the one that was asked for, from 0 to 1. */
export interface Match {
  readonly game: Game
  readonly confidence: number
}

const SAME_SLUG = 0.95
/** The most that names can have in common without being the same. */
const LIKE = 0.9
/** IGDB's id for what is a game of its own: no edition, pack or port. */
const MAIN_GAME = 0

/**
 * Candidates by how well they fit a name: the same name, then the same address, then the most words in common; games of
 * their own before parts of others, then those that more people have rated.
 *
 * @example
 * rankMatches('portal 2', games)[0] // { game: { name: 'Portal 2', … }, confidence: 1 }
 */
export function rankMatches(name: string, games: readonly Game[]): readonly Match[] {
  const rank = ({ game_type, total_rating_count }: Game): number =>
    // A count, after the kind: no game has as many ratings as this.
    ((game_type?.id ?? MAIN_GAME) === MAIN_GAME ? 1e12 : 0) + (total_rating_count ?? 0)
  return games
    .map((game): Match => ({ game, confidence: confidenceOf(name, game) }))
    .toSorted((one, other) => other.confidence - one.confidence || rank(other.game) - rank(one.game))
}

function confidenceOf(name: string, game: Game): number {
  if (fold(name) === fold(game.name)) return 1
  const [asked, found] = [wordsOf(name), wordsOf(game.name)]
  if (asked.length > 0 && asked.join('-') === game.slug) return SAME_SLUG
  const common = asked.filter((word) => found.includes(word)).length
  return Number(((LIKE * 2 * common) / Math.max(1, asked.length + found.length)).toFixed(2))
}

/** Equal for names that people take for equal. */
export function fold(name: string): string {
  return name.normalize('NFKC').trim().replace(/\s+/g, ' ').toLowerCase()
}

function wordsOf(name: string): string[] {
  const plain = name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(/['’]/g, '')
  return [...new Set(plain.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])]
}
