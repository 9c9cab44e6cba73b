/**
 * node --import tsx test/bench/retrieval.mjs
 *
 * How well an embedder finds 120 memories (five domains, four languages) by their own words, by other forms of these, and by
 * other words of the same meaning. EMBEDDING_MODEL, OPENAI_BASE_URL and OPENAI_API_KEY measure a model next to those that ship.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { chooseEmbedder } from '../../src/service/memory/choose-embedder.ts'
import { hashEmbedder } from '../../src/service/memory/hash-embedder.ts'
import { findSentenceModel } from '../../src/service/sentences/sentence-model.ts'
import { MetricsBySource } from '../../src/service/sources/source-metrics.ts'
import { measure, readMemories } from './retrieval/measure.ts'

const now = () => new Date()
const world = {
  fetch,
  now,
  sleep: (ms, signal) => delay(ms, undefined, { signal }),
  random: Math.random,
}
const { EMBEDDING_MODEL, OPENAI_BASE_URL = 'https://api.openai.com/v1', OPENAI_API_KEY } = process.env
const model = { baseUrl: OPENAI_BASE_URL, apiKey: OPENAI_API_KEY, embeddingModel: EMBEDDING_MODEL }

const memories = readMemories()
const embedders = [
  hashEmbedder,
  chooseEmbedder(undefined, findSentenceModel(), world, new MetricsBySource(now)),
  ...(EMBEDDING_MODEL === undefined
    ? []
    : [chooseEmbedder(model, undefined, world, new MetricsBySource(now))]),
]
for (const embedder of embedders) {
  console.log(`${embedder.name}, ${memories.length} memories`)
  console.table(Object.fromEntries(await measure(embedder, memories)))
}
