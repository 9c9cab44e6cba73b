import { toUnit, type Embedder } from './embedder.ts'
import { fold, termsOf } from './terms.ts'

const DIMENSIONS = 384
/** Together, the pieces of a word weigh as much as this against the word itself. */
const PIECES = 0.5

/**
 * Texts by their words and by pieces of these, so that spelling variants and other forms of a word are found; nothing is
 * known of meanings. Needs no model and no network. Stored vectors depend on it: what it gives is pinned by a test, and a
 * change is `hash-v2`.
 */
export const hashEmbedder: Embedder = {
  name: 'hash-v1',
  semantic: false,
  languages: [],
  // Of 28,925 pairs of texts without a common word, one in a thousand is nearer than 0.18.
  floor: 0.2,
  weight: 0.3,
  embed: async (texts) => texts.map(hashText),
}

function hashText(text: string): Float32Array {
  const weights = new Map<string, number>()
  const count = (feature: string, weight: number): void => {
    weights.set(feature, (weights.get(feature) ?? 0) + weight)
  }
  for (const term of termsOf(text)) {
    count(`w:${term}`, 1)
    const pieces = piecesOf(`^${term}$`)
    for (const piece of pieces) count(`c:${piece}`, PIECES / Math.sqrt(pieces.length))
  }
  // Nothing but signs: still a direction of its own, for a vector of zeros is near to nothing.
  if (weights.size === 0) count(`t:${fold(text)}`, 1)
  const vector = new Float32Array(DIMENSIONS)
  for (const [feature, weight] of weights) {
    const hash = hashOf(feature)
    const place = hash % DIMENSIONS
    vector[place] = (vector[place] ?? 0) + (hash & 0x8000_0000 ? -1 : 1) * Math.sqrt(weight)
  }
  return toUnit(vector)
}

function piecesOf(word: string): string[] {
  const signs = Array.from(word)
  return [3, 4].flatMap((length) =>
    signs.slice(length - 1).map((_, place) => signs.slice(place, place + length).join('')),
  )
}

/** FNV-1a over UTF-8 with the last step of MurmurHash3, which spreads similar texts: 32 bits, unsigned. */
function hashOf(text: string): number {
  let hash = 0x811c_9dc5
  for (const byte of Buffer.from(text, 'utf8')) hash = Math.imul(hash ^ byte, 0x0100_0193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
