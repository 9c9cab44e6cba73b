import type { Served } from '../cache/cache.ts'
import type { Face, Route } from '../catalog/catalog.ts'
import { Failure } from '../errors.ts'
import { staleWarning, type Answer } from '../handler.ts'
import { compact, type JsonObject } from '../json.ts'
import type { StoredAnswer } from '../ledger/entry.ts'
import { formatPrice } from '../money.ts'

/** Largest answer that is sold: what is kept for redelivery must stay small. */
const LARGEST_BYTES = 1_000_000

export type Preview = (body: JsonObject) => JsonObject

/** The answer as it is sent: the service's envelope around an endpoint's own fields, or the text as it is. */
export function wrapResponse(
  face: Face,
  served: Served<Answer>,
  preview: Preview | undefined,
  now: number,
): StoredAnswer {
  const { value: answer, stale } = served
  const at = new Date(served.at)
  if ('content' in answer)
    return sized({ kind: 'text', ...answer.content }, Buffer.byteLength(answer.content.text))
  const sample = face.kind === 'sample' ? face : undefined
  const body = sample !== undefined && preview !== undefined ? preview(answer.body) : answer.body
  const older = stale ? [staleWarning(at, new Date(now))] : []
  const warnings = [...(answer.warnings ?? []), ...older]
  const value: JsonObject = {
    endpoint: face.path,
    source: answer.source.map((source) => compact({ ...source })),
    fetched_at: at.toISOString(),
    cached: served.cached,
    cache_ttl_seconds: Math.round((face.operation.cache?.ttl ?? 0) / 1000),
    warnings: warnings.map((warning) => compact({ ...warning })),
    ...body,
    ...(sample === undefined ? {} : previewMembers(sample, body !== answer.body)),
  }
  return sized({ kind: 'json', value }, Buffer.byteLength(JSON.stringify(value)))
}

function previewMembers(route: Route, cut: boolean): JsonObject {
  const { price } = route.operation
  const truncated = cut || route.bindings.some(({ kind }) => kind === 'fixed')
  const full =
    price === undefined || route.full === undefined
      ? {}
      : { full: { path: route.full, price: { amount: formatPrice(price), currency: 'USD' } } }
  return { preview: true, truncated, ...full }
}

function sized(answer: StoredAnswer, bytes: number): StoredAnswer {
  if (bytes <= LARGEST_BYTES) return answer
  throw new Failure('answer_too_large', 'the answer is larger than 1 MB')
}
