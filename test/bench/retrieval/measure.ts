import { readFileSync } from 'node:fs'
import type { Embedder } from '../../../src/service/memory/embedder.ts'

/** What was stored, and three ways to ask for it. */
export interface Remembered {
  readonly domain: string
  readonly language: string
  readonly text: string
  readonly lexical: string
  readonly morphology: string
  readonly paraphrase: string
}

export const KINDS = ['lexical', 'morphology', 'paraphrase'] as const

export function readMemories(): readonly Remembered[] {
  return readLines('./memories.jsonl')
}

/** Written before any model was tried on them, and never tuned on. */
export function readNotes(): readonly Pick<Remembered, 'text' | 'paraphrase'>[] {
  return readLines('./notes.jsonl')
}

function readLines<Line>(path: string): readonly Line[] {
  const lines = readFileSync(new URL(path, import.meta.url), 'utf8')
    .trim()
    .split('\n')
  return lines.map((line): Line => JSON.parse(line))
}

export interface Score {
  readonly 'R@1': number
  readonly 'R@5': number
  readonly MRR: number
}

/** Of each kind of question: how often the memory meant comes first, among five, and the mean of 1 / its place. */
export async function measure(
  embedder: Embedder,
  memories: readonly Remembered[],
): Promise<ReadonlyMap<string, Score>> {
  const embed = async (texts: readonly string[]): Promise<Float32Array[]> => {
    const vectors: Float32Array[] = []
    for (let from = 0; from < texts.length; from += 30)
      vectors.push(...(await embedder.embed(texts.slice(from, from + 30), new AbortController().signal)))
    return vectors
  }
  const placed = await embed(memories.map(({ text }) => text))
  const scores = new Map<string, Score>()
  for (const kind of KINDS) {
    const asked = await embed(memories.map((memory) => memory[kind]))
    scores.set(kind, score(asked.map((vector, meant) => placeOf(meant, vector, placed))))
  }
  return scores
}

/** From the place each memory had among the answers to its question: 1 is the first, Infinity is none. */
export function score(places: readonly number[]): Score {
  const share = (most: number): number => places.filter((place) => place <= most).length / places.length
  const reciprocal = places.reduce((sum, place) => sum + 1 / place, 0) / places.length
  return { 'R@1': round(share(1)), 'R@5': round(share(5)), MRR: round(reciprocal) }
}

function placeOf(meant: number, asked: Float32Array, placed: readonly Float32Array[]): number {
  const nearness = placed.map((vector) =>
    vector.reduce((sum, value, at) => sum + value * (asked[at] ?? 0), 0),
  )
  // Of equals the one meant comes last: luck is no merit.
  return nearness.filter((near) => near >= (nearness[meant] ?? 0)).length
}

function round(number: number): number {
  return Math.round(number * 1000) / 1000
}
