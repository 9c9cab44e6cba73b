import type { Reply, ReplyBody } from './source-runtime.ts'

export type JsonBody =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'fault'; readonly fault: 'not JSON' | 'empty' | 'too large' | 'a refusal' }

/** SteamSpy's refusal, sent with status 200. */
const REFUSAL = /^[^{[]{0,200}too many (?:connections|requests)/i

/**
 * Reads a JSON body of at most `maxBytes`, counted while it streams in, whatever its media type: some sources name
 * another one. Throws what the stream throws when the connection breaks.
 */
export async function readJson(reply: Reply, maxBytes: number): Promise<JsonBody> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of reply.body ?? []) {
    bytes += chunk.byteLength
    // Leaving the loop cancels the stream.
    if (bytes > maxBytes) return { kind: 'fault', fault: 'too large' }
    chunks.push(chunk)
  }
  return parse(Buffer.concat(chunks))
}

/** Frees the connection of an unread response. */
export async function discard(body: ReplyBody | null): Promise<void> {
  try {
    await body?.cancel()
  } catch {
    // The connection is closed already.
  }
}

function parse(bytes: Uint8Array): JsonBody {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    if (text.trim() === '') return { kind: 'fault', fault: 'empty' }
    if (REFUSAL.test(text)) return { kind: 'fault', fault: 'a refusal' }
    return { kind: 'json', value: JSON.parse(text) }
  } catch {
    return { kind: 'fault', fault: 'not JSON' }
  }
}
