import type { Sentence } from './sentences.ts'

const DAMPING = 0.85
const ROUNDS = 30

/**
 * TextRank: how much each sentence shares with the others, 0 to 1, the best being 1. Two sentences are as near as the
 * words they share, over the logarithms of their lengths. Takes time and memory by the square: the caller bounds them.
 */
export function rankSentences(sentences: readonly Sentence[], stopWords: ReadonlySet<string>): number[] {
  const count = sentences.length
  const topics = sentences.map(
    ({ words }) => new Set(words.map(({ word }) => word).filter((word) => !stopWords.has(word))),
  )
  const near = new Float64Array(count * count)
  const places = new Map<string, number[]>()
  for (const [place, words] of topics.entries()) {
    for (const word of words) {
      const others = places.get(word) ?? []
      for (const other of others) {
        near[place * count + other] = (near[place * count + other] ?? 0) + 1
        near[other * count + place] = (near[other * count + place] ?? 0) + 1
      }
      others.push(place)
      places.set(word, others)
    }
  }
  const sums = new Float64Array(count)
  for (let from = 0; from < count; from++) {
    for (let to = 0; to < count; to++) {
      const shared = near[from * count + to] ?? 0
      if (shared === 0) continue
      const length = Math.log1p(topics[from]?.size ?? 0) + Math.log1p(topics[to]?.size ?? 0)
      near[from * count + to] = shared / length
      sums[from] = (sums[from] ?? 0) + shared / length
    }
  }
  let ranks = new Float64Array(count).fill(1)
  for (let round = 0; round < ROUNDS; round++) {
    const next = new Float64Array(count).fill(1 - DAMPING)
    for (let from = 0; from < count; from++) {
      const share = (DAMPING * (ranks[from] ?? 0)) / (sums[from] || 1)
      for (let to = 0; to < count; to++) next[to] = (next[to] ?? 0) + share * (near[from * count + to] ?? 0)
    }
    ranks = next
  }
  const best = ranks.reduce((most, rank) => Math.max(most, rank), 0)
  return Array.from(ranks, (rank) => (best === 0 ? 0 : rank / best))
}
