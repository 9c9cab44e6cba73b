import type { Memories } from '../../memory/memories.ts'
import { namespaceOf } from '../../memory/namespace.ts'
import type { StoringHandler } from '../catalog.ts'
import { payerOf, SOURCE, validateTags, validateText } from './validate.ts'

/** Keeps a text for the wallet that pays; it is found from the moment the payment has settled. */
export function write(memories: Memories): StoringHandler<'memory/write'> {
  return {
    prepare: async ({ text, tags, idempotency_key: key }, { payment, now, signal }) => {
      const payer = payerOf(payment)
      const draft = {
        wallet: namespaceOf(payer),
        text: validateText('text', text),
        tags: validateTags(tags),
        key: key === undefined ? undefined : validateText('idempotency_key', key),
      }
      const store = await memories.store()
      const { id, createdAt, bytes, repeated } = await store.prepare(payer.id, draft, now(), signal)
      const body = { id, created_at: createdAt.toISOString(), bytes, repeated, embedder: store.embedder.name }
      return { source: SOURCE, body }
    },
    commit: async (payment) => (await memories.store()).commit(payment),
    abort: async (payment) => (await memories.store()).abort(payment),
  }
}
