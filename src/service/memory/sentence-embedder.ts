import { languageOf } from '../handlers/util/repurpose/language.ts'
import type { SentenceModel } from '../sentences/sentence-model.ts'
import type { Embedder } from './embedder.ts'
import { hashEmbedder } from './hash-embedder.ts'
import { relatedTerms } from './related.ts'
import { termsOf } from './terms.ts'

/** The share of meaning in the nearness of two English texts; spelling has the rest. */
const MEANING = 0.9

/**
 * English texts by their meaning and their spelling, others by their spelling alone. A vector is the one of `hash-v1`
 * followed by the one of the model, so that a product of two vectors is the weighted sum of both products.
 */
export function sentenceEmbedder(model: SentenceModel): Embedder {
  return {
    name: `${hashEmbedder.name}+${model.name}`,
    semantic: true,
    languages: ['en'],
    floor: 0.2,
    weight: 0.65,
    embed: async (texts, signal) => {
      const english = texts.filter(isEnglish)
      const [spellings, meanings] = await Promise.all([
        hashEmbedder.embed(texts, signal),
        english.length === 0 ? [] : model.embed(english, signal),
      ])
      const meaningOf = new Map(english.map((text, index) => [text, meanings[index]]))
      return texts.map((text, index) => joined(spellings[index] ?? new Float32Array(), meaningOf.get(text)))
    },
  }
}

/** Of length 1, as both parts are. */
function joined(spelling: Float32Array, meaning: Float32Array | undefined): Float32Array {
  const vector = new Float32Array(spelling.length + DIMENSIONS)
  const share = meaning === undefined ? 0 : MEANING
  vector.set(spelling.map((value) => value * Math.sqrt(1 - share)))
  if (meaning !== undefined)
    vector.set(
      meaning.map((value) => value * Math.sqrt(share)),
      spelling.length,
    )
  return vector
}

const DIMENSIONS = 512

/** A question is often too short to have little words: then half of its words have to be in WordNet. */
export function isEnglish(text: string): boolean {
  const language = languageOf(text)
  if (language !== 'und') return language === 'en'
  const terms = termsOf(text)
  const known = terms.filter((term) => relatedTerms(term).length > 0).length
  return known > 0 && known * 2 >= terms.length
}
