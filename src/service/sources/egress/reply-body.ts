import { pipeline, type Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip } from 'node:zlib'

/** How much of a body is read, and what becomes of one that has more: it is given up, or its beginning is taken. */
export interface Measure {
  /** Limit on the wire, and again after decompression. */
  readonly bytes: number
  readonly beyond: 'refuse' | 'cut'
}

export type Body =
  | { readonly kind: 'read'; readonly bytes: Uint8Array; readonly cut: boolean }
  | { readonly kind: 'failed'; readonly reason: 'too_large' | 'encoding' }

/** Value of Accept-Encoding; other codings, and nested ones, are not decoded. */
export const ENCODINGS = 'gzip, br'

/**
 * Reads a body within its measure, counted while it streams in. Throws what the stream throws when the connection
 * breaks; damaged compression is a failure.
 */
export async function readBody(
  wire: Readable,
  encoding: string,
  { bytes: most, beyond }: Measure,
): Promise<Body> {
  const meter = new Meter(most)
  const plain = unpack(wire, encoding, meter)
  if (plain === undefined) return { kind: 'failed', reason: 'encoding' }
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of plain as AsyncIterable<Uint8Array>) {
      chunks.push(chunk.subarray(0, most - size))
      size += chunk.byteLength
      // Leaving the loop ends the stream and with it the connection.
      if (size > most) break
    }
  } catch (cause) {
    if (plain === wire || !isDamage(cause)) throw cause
    // Cut off by us, it cannot be whole.
    if (!meter.full) return { kind: 'failed', reason: 'encoding' }
  }
  const cut = size > most || meter.full
  if (cut && beyond === 'refuse') return { kind: 'failed', reason: 'too_large' }
  return { kind: 'read', bytes: Buffer.concat(chunks), cut }
}

function unpack(wire: Readable, encoding: string, meter: Meter): Readable | undefined {
  const name = encoding.trim().toLowerCase()
  if (name === '' || name === 'identity') return wire
  if (name !== 'gzip' && name !== 'x-gzip' && name !== 'br') return undefined
  const unpacker = name === 'br' ? createBrotliDecompress() : createGunzip()
  // The reader of the result sees every fault.
  pipeline(
    wire,
    (source: AsyncIterable<Uint8Array>) => meter.pass(source),
    unpacker,
    () => undefined,
  )
  return unpacker
}

/** Lets so many bytes through and no more. */
class Meter {
  readonly #most: number
  full = false

  constructor(most: number) {
    this.#most = most
  }

  async *pass(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let room = this.#most
    for await (const chunk of source) {
      this.full = chunk.byteLength > room
      yield chunk.subarray(0, room)
      if (this.full) return
      room -= chunk.byteLength
    }
  }
}

function isDamage(cause: unknown): boolean {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' && /^Z_|^ERR__|BROTLI/.test(code)
}
