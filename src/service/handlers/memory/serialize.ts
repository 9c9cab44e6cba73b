import type { JsonObject } from 'ratecard/handler'
import type { Memory } from '../../memory/memory-store.ts'

/** Limit of texts and tags in one answer: the engine sells at most 1 MB. */
export const LARGEST_BYTES = 800_000

/** A memory as its owner reads it. */
export function serializeMemory({ id, text, tags, createdAt }: Memory): JsonObject {
  return { id, text, tags, created_at: createdAt.toISOString() }
}

/** Bytes of JSON. */
export function sizeOf(memory: Memory): number {
  return Buffer.byteLength(JSON.stringify(serializeMemory(memory)))
}
