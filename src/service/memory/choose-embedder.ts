import type { SentenceModel } from '../sentences/sentence-model.ts'
import type { MetricsBySource } from '../sources/source-metrics.ts'
import type { Runtime } from '../sources/source-runtime.ts'
import type { Embedder } from './embedder.ts'
import { hashEmbedder } from './hash-embedder.ts'
import { LIVE_MODEL_EMBEDDER, ModelEmbedder } from './model-embedder.ts'
import { sentenceEmbedder } from './sentence-embedder.ts'

export interface EmbeddingModel {
  readonly baseUrl: string
  readonly apiKey: string | undefined
  readonly embeddingModel: string | undefined
}

/** The model the operator has named; else the one that is installed; else words have to do. */
export function chooseEmbedder(
  model: EmbeddingModel | undefined,
  sentences: SentenceModel | undefined,
  runtime: Runtime,
  records: MetricsBySource,
): Embedder {
  if (model?.embeddingModel === undefined)
    return sentences === undefined ? hashEmbedder : sentenceEmbedder(sentences)
  const { baseUrl, apiKey, embeddingModel } = model
  return new ModelEmbedder(
    { ...LIVE_MODEL_EMBEDDER, baseUrl, apiKey, model: embeddingModel },
    runtime,
    records,
  )
}
