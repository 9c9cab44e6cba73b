import type { IncomingMessage } from 'node:http'
import type { Cache } from '../cache/cache.ts'
import type { RateLimit } from '../cache/rate-limit.ts'
import { Failure } from '../base/errors.ts'
import { clientOf } from './client-address.ts'

/** Enough for a minute of a reader’s clicks, and for an index that requests every sample once. */
const FREE: RateLimit = { burst: 60, interval: 1_000 }

export interface ClientLimitDeps {
  readonly cache: Cache
  readonly trustProxy: boolean
}

/** Why a client has to wait: unpaid calls of outside sources could otherwise block this service for all. */
export async function overspent(
  { cache, trustProxy }: ClientLimitDeps,
  request: IncomingMessage,
  detail: string,
): Promise<Failure | undefined> {
  const client = clientOf(request, trustProxy)
  const wait = client === undefined ? 0 : await cache.spend(client, FREE)
  return wait === 0 ? undefined : new Failure('too_many_requests', detail, { retryAfter: wait / 1_000 })
}

/** Each try of a credential that the upstream has not accepted lately makes us ask it. */
export const TOO_MANY_TRIES =
  'this address has sent too many credentials that the upstream does not know; without one, this call is for sale'
