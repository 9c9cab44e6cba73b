import type { MetricsBySource } from '../sources/source-metrics.ts'
import type { Runtime } from '../sources/runtime.ts'
import type { Embedder } from './embedder.ts'
import { hashEmbedder } from './hash-embedder.ts'
import { LIVE_MODEL_EMBEDDER, ModelEmbedder } from './model-embedder.ts'

export interface EmbeddingModel {
  readonly baseUrl: string
  readonly apiKey: string | undefined
  readonly embeddingModel: string | undefined
}

/** The model the operator has named; else words have to do. */
export function chooseEmbedder(
  model: EmbeddingModel | undefined,
  runtime: Runtime,
  records: MetricsBySource,
): Embedder {
  if (model?.embeddingModel === undefined) return hashEmbedder
  const { baseUrl, apiKey, embeddingModel } = model
  return new ModelEmbedder(
    { ...LIVE_MODEL_EMBEDDER, baseUrl, apiKey, model: embeddingModel },
    runtime,
    records,
  )
}
