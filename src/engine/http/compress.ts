import type { Middleware } from 'koa'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip, type BrotliOptions } from 'node:zlib'

/** Size of a body that fits into one packet. */
const SMALL = 1_024

const COMPRESSIBLE = /^text\/|[/+](?:json|xml|javascript)\b/

const ENCODERS = {
  br: (body: Buffer): Promise<Buffer> =>
    brotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  gzip: promisify<Buffer, Buffer>(gzip),
}

const brotli = promisify<Buffer, BrotliOptions, Buffer>(brotliCompress)

/** The default of 11 takes seconds for a megabyte. */
const BROTLI_QUALITY = 5

/** Compresses documents (RFC 9110 §8.4), each page once for all its readers. */
export function compressDocuments(): Middleware {
  const compressed = new WeakMap<Buffer, Map<string, Promise<Buffer>>>()
  return async (ctx, next) => {
    ctx.vary('Accept-Encoding')
    await next()
    const body: unknown = ctx.body
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    if (!Buffer.isBuffer(bytes) || bytes.length < SMALL || !COMPRESSIBLE.test(ctx.type)) return
    const encoding = ctx.acceptsEncodings('br', 'gzip', 'identity')
    if (encoding !== 'br' && encoding !== 'gzip') return
    const made = compressed.get(bytes) ?? new Map<string, Promise<Buffer>>()
    compressed.set(bytes, made)
    const compressing = made.get(encoding) ?? ENCODERS[encoding](bytes)
    made.set(encoding, compressing)
    ctx.body = await compressing
    ctx.set('Content-Encoding', encoding)
  }
}
