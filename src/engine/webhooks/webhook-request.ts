import { messageOf } from '../base/errors.ts'
import type { Runtime } from '../base/runtime.ts'
import { signatureHeaders } from './webhook-signature.ts'

/** How long a receiver may take. */
const WITHIN_MS = 8_000

export type Delivery =
  | { readonly kind: 'delivered' }
  /** Taken by nobody: the same event is sent again later. `reached`: whether anybody has answered. */
  | { readonly kind: 'failed'; readonly reason: string; readonly reached: boolean }

export interface SignedRequest {
  readonly url: string
  readonly secret: Uint8Array
  readonly id: string
  readonly body: string
  /** Time of sending, in milliseconds since the epoch. */
  readonly at: number
}

/** Sends one event to a receiver. The address is the operator’s own, and may be an internal one. */
export async function sendWebhook(
  { http, deadline }: Pick<Runtime, 'http' | 'deadline'>,
  { url, secret, id, body, at }: SignedRequest,
): Promise<Delivery> {
  try {
    const headers = signatureHeaders(secret, { id, at, body })
    const answer = await http(url, { method: 'POST', headers, body, signal: deadline(WITHIN_MS) })
    for await (const _ of answer.body) break
    if (answer.status >= 200 && answer.status < 300) return { kind: 'delivered' }
    return { kind: 'failed', reason: `it answers ${answer.status}`, reached: true }
  } catch (fault) {
    return { kind: 'failed', reason: messageOf(fault), reached: false }
  }
}
