import { isJsonObject, type JsonObject } from 'ratecard/handler'
import type { Memories } from '../../memory/memories.ts'
import { QUOTA, type Usage } from '../../memory/memory-store.ts'
import { namespaceOfKey } from '../../memory/namespace.ts'
import type { Handler } from '../catalog.ts'
import { SOURCE } from './validate.ts'

/** Counting goes over all rows, and anybody may ask for it. */
const COUNTED = { ttl: 60_000, staleIfError: 0 }

interface Totals {
  readonly memories: number
  readonly wallets: number
}

/** Size and limits of the memory of a wallet; a wallet sees only its own figures. */
export function stats(memories: Memories): Handler<'memory/stats'> {
  return async (_parameters, { keep, signer }) => {
    const store = await memories.store()
    const { value } = await keep('memory-totals', COUNTED, isTotals, () => store.totals())
    const { name: embedder, semantic, languages = null } = store.embedder
    const own = signer === undefined ? {} : { wallet: tellUsage(await store.usage(namespaceOfKey(signer))) }
    return {
      source: SOURCE,
      body: { ...value, embedder, semantic, languages, retention: 'permanent', limits: LIMITS, ...own },
    }
  }
}

const LIMITS = { memories_per_wallet: QUOTA.memories, bytes_per_wallet: QUOTA.bytes }

function tellUsage({ memories, bytes, span }: Usage): JsonObject {
  return {
    memories,
    bytes,
    first_at: span?.first.toISOString() ?? null,
    last_at: span?.last.toISOString() ?? null,
  }
}

function isTotals(value: unknown): value is Totals {
  return isJsonObject(value) && typeof value['memories'] === 'number' && typeof value['wallets'] === 'number'
}
