import { Failure } from 'ratecard/handler'
import { JsonSource } from '../sources/json-source.ts'
import { compileShape } from '../sources/answer-shape.ts'
import type { MetricsBySource } from '../sources/source-metrics.ts'
import type { Runtime } from '../sources/source-runtime.ts'
import { toUnit, type Embedder } from './embedder.ts'

export interface ModelEmbedderOptions {
  /** Any endpoint that speaks as OpenAI does, up to `/embeddings`. */
  readonly baseUrl: string
  readonly apiKey: string | undefined
  readonly model: string
  readonly timeoutMs: number
}

/** A write has fifteen seconds in all. */
export const LIVE_MODEL_EMBEDDER = { timeoutMs: 8_000 } as const

const REPLY = compileShape<{
  readonly data: readonly { readonly index: number; readonly embedding: readonly number[] }[]
}>({
  type: 'object',
  required: ['data'],
  properties: {
    data: {
      type: 'array',
      items: {
        type: 'object',
        required: ['index', 'embedding'],
        properties: {
          index: { type: 'integer' },
          // What pgvector takes.
          embedding: { type: 'array', minItems: 1, maxItems: 16_000, items: { type: 'number' } },
        },
      },
    },
  },
})

/** Texts by their meaning, from a model. Throws `Failure` as `JsonSource` does. */
export class ModelEmbedder implements Embedder {
  readonly name: string
  readonly semantic = true
  readonly languages = undefined
  // Models place unrelated texts at different distances, so only what is far in each of them is left out.
  readonly floor = 0.1
  readonly weight = 0.6
  readonly #options: ModelEmbedderOptions
  readonly #source: JsonSource

  constructor(options: ModelEmbedderOptions, runtime: Runtime, records: MetricsBySource) {
    this.name = `openai:${options.model}`
    this.#options = options
    this.#source = new JsonSource(
      {
        name: 'The embedding model',
        baseUrl: options.baseUrl,
        rate: { perSecond: 50, burst: 50 },
        timeoutMs: options.timeoutMs,
      },
      runtime,
      records.of('embeddings'),
    )
  }

  async embed(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]> {
    const { apiKey, model } = this.#options
    const { data } = await this.#source.get(
      {
        path: '/embeddings',
        query: {},
        shape: REPLY,
        ...(apiKey === undefined ? {} : { headers: { authorization: `Bearer ${apiKey}` } }),
        post: {
          type: 'application/json',
          text: JSON.stringify({ model, input: texts, encoding_format: 'float' }),
        },
      },
      signal,
    )
    const vectors = new Map(data.map(({ index, embedding }) => [index, embedding]))
    return texts.map((_, index) => {
      const vector = vectors.get(index)
      if (vector !== undefined) return toUnit(Float32Array.from(vector))
      throw new Failure('source_error', 'The embedding model left out a text')
    })
  }
}
