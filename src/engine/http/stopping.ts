import { problem } from './reply.ts'

/**
 * `draining`: requests are answered, and proxies are asked to send further ones to other processes. `stopping`: the stores are
 * about to be closed, and requests are refused.
 */
export type Phase = 'serving' | 'draining' | 'stopping'

/** The answer of a process that no longer serves. */
export const STOPPING = problem('service_stopping', 'the service is stopping', {
  charged: 'no',
  headers: { 'Retry-After': '1' },
})
