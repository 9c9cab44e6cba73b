import { createHmac } from 'node:crypto'

/**
 * Headers of a webhook by Standard Webhooks (standardwebhooks.com, specification 1.0.0): HMAC-SHA256 over id, time in
 * seconds and body, by which the receiver knows the sender and recognises copies and old requests.
 */
export function signatureHeaders(
  secret: Uint8Array,
  { id, at, body }: { readonly id: string; readonly at: number; readonly body: string },
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000))
  const signature = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')
  return {
    'Content-Type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  }
}

/** Reads `whsec_` and 24 to 64 bytes in base64; undefined for another text. */
export function readWebhookSecret(text: string): Uint8Array | undefined {
  const [, base64] = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/.exec(text) ?? []
  if (base64 === undefined) return undefined
  const bytes = Buffer.from(base64, 'base64')
  return bytes.length >= 24 && bytes.length <= 64 ? bytes : undefined
}
