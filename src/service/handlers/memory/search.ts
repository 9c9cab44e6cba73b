import type { Hit } from '../../memory/memory-store.ts'
import type { Memories } from '../../memory/memories.ts'
import { namespaceOf } from '../../memory/namespace.ts'
import type { Handler } from '../catalog.ts'
import { LARGEST_BYTES, sizeOf, serializeMemory } from './serialize.ts'
import { payerOf, SOURCE, validateTags, validateText } from './validate.ts'

/** The memories of the paying wallet that fit a question best. */
export function search(memories: Memories): Handler<'memory/search'> {
  return async ({ query, k, tags, since }, { payment, signal }) => {
    const question = {
      wallet: namespaceOf(payerOf(payment)),
      query: validateText('query', query),
      most: k,
      tags: validateTags(tags),
      since: since === undefined ? undefined : new Date(since),
    }
    const store = await memories.store()
    const hits = await store.search(question, signal)
    const fitted = fitting(hits)
    const results = fitted.map(({ score, ...memory }) => ({ ...serializeMemory(memory), score }))
    const body = {
      results,
      count: fitted.length,
      embedder: store.embedder.name,
      semantic: store.embedder.semantic,
    }
    return { source: SOURCE, body, ...(fitted.length < hits.length ? { warnings: [CUT] } : {}) }
  }
}

const CUT = {
  code: 'cut',
  message: 'an answer has at most 1 MB: the memories that fit less well were left out',
} as const

function fitting(hits: readonly Hit[]): readonly Hit[] {
  let bytes = 0
  return hits.filter((hit) => (bytes += sizeOf(hit)) <= LARGEST_BYTES)
}
