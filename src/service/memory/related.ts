import { readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'

/** A term of similar meaning, and its share of a match: above 0, below 1. */
export interface RelatedTerm {
  readonly term: string
  readonly share: number
}

/** Compiled to another folder than the data. */
const FILE = new URL('../../../src/service/data/wordnet-related.txt.br', import.meta.url)

let table: string | undefined

/**
 * English terms that WordNet relates to this one: synonyms, derived words, kinds and parts. Terms are stems, as `termsOf`
 * cuts them. Empty for what WordNet does not have. Reads the table (5 MB of text) when it is first asked.
 *
 * @example
 * relatedTerms('automobil') // [{ term: 'car', share: 0.8 }, …]
 */
export function relatedTerms(term: string): readonly RelatedTerm[] {
  if (!/^[a-z]{3,}$/.test(term)) return []
  table ??= `\n${brotliDecompressSync(readFileSync(FILE)).toString('latin1')}`
  const line = lineOf(table, term)
  return line.map((entry) => ({ term: entry.slice(0, -1), share: Number(entry.at(-1)) / 10 }))
}

/** The lines are sorted: a term is found by halving. Each line is the term, then its related ones with a digit. */
function lineOf(text: string, term: string): readonly string[] {
  let [low, high] = [0, text.length]
  while (low < high) {
    const start = text.lastIndexOf('\n', (low + high) >> 1)
    const end = text.indexOf('\n', start + 1)
    if (start < low || end < 0) break
    const [found = '', ...related] = text.slice(start + 1, end).split(' ')
    if (found === term) return related
    if (found < term) low = end
    else high = start
  }
  return []
}
