import type { Operation } from '../catalog/catalog.ts'
import type { Arguments } from '../handler.ts'
import { digestJson, type Json } from '../json.ts'

/** What a payment can be bound to: one operation with its arguments, however they were spelled. */
export function scopeOf({ id }: Operation, digest: string): string {
  return `${id}:${digest}`
}

/** Equal for equal arguments, whichever face of the operation they came through. */
export function digestArguments(operation: Operation, args: Arguments): string {
  const named: Record<string, Json> = {}
  for (const [name, value] of Object.entries(args)) if (value !== undefined) named[name] = value
  return digestJson({
    handler: operation.handler,
    upstream: operation.upstream?.url ?? null,
    arguments: named,
  })
}
