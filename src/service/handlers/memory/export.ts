import { InvalidParameter } from 'ratecard/handler'
import type { Memories } from '../../memory/memories.ts'
import { namespaceOf } from '../../memory/namespace.ts'
import type { Handler } from '../catalog.ts'
import { LARGEST_BYTES, serializeMemory } from './serialize.ts'
import { payerOf, SOURCE } from './validate.ts'

const START = '0'

/** Everything the paying wallet has written, in the order of writing, page by page. */
export function exportAll(memories: Memories): Handler<'memory/export'> {
  return async ({ cursor = START }, { payment }) => {
    const wallet = namespaceOf(payerOf(payment))
    if (!/^\d{1,18}$/.test(cursor))
      throw new InvalidParameter('cursor', 'cursor should be the next_cursor of the page before')
    const store = await memories.store()
    const page = await store.page(wallet, cursor, LARGEST_BYTES)
    const body = {
      memories: page.memories.map(serializeMemory),
      count: page.memories.length,
      remaining: page.remaining,
      next_cursor: page.next ?? null,
    }
    return { source: SOURCE, body }
  }
}
