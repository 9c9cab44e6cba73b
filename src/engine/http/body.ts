import { hash } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { isJsonMedia, LARGEST_BYTES } from '../catalog/body.ts'
import type { Body } from '../catalog/catalog.ts'
import type { RawParameters } from '../catalog/validator.ts'
import type { Refusal } from '../errors.ts'
import { parseStrictJson } from '../json.ts'

/** What has come of the body of a request. */
export type Received =
  | {
      readonly kind: 'body'
      readonly value: RawParameters['body']
      /** Bytes. */
      readonly size: number
      /** RFC 9530. */
      readonly digest: string
    }
  /** Left unread: it is larger than what is read of it without a payment. */
  | { readonly kind: 'unread' }
  /** Cannot be taken. */
  | { readonly kind: 'fault'; readonly refusal: Refusal }

/** As much is read without a payment, and bound to the challenge. */
export const UNPAID_BYTES = 1_000_000

/** At least as fast a body has to come, in bytes a millisecond, after the time a request has in any case. */
const SLOWEST = 128
const PATIENCE_MS = 10_000

/** Milliseconds in which a body of this size has to arrive. */
export function readingTime(bytes: number): number {
  return PATIENCE_MS + Math.ceil(bytes / SLOWEST)
}

/** Reads and parses a body of at most `limit` bytes; what is left unread is discarded once the answer is sent. */
export async function receiveBody(
  request: IncomingMessage,
  response: ServerResponse,
  body: Body,
  limit: number,
): Promise<Received> {
  const { headers } = request
  const unsupported = hasBody(headers) ? checkMediaType(body, headers) : undefined
  const read = unsupported === undefined ? await readBytes(request, limit, readingTime(limit)) : 'refused'
  if (Buffer.isBuffer(read)) return parse(body, read)
  discardBody(request, response)
  if (unsupported !== undefined) return { kind: 'fault', refusal: unsupported }
  if (read === 'slow') return fault('request_timeout', 'the body did not arrive in time')
  if (declaredSize(headers) <= body.maxSize && limit < body.maxSize) return { kind: 'unread' }
  return fault('body_too_large', `the body is larger than the ${body.maxSize} bytes this route takes`)
}

function fault(code: Refusal['code'], detail: string): Received {
  return { kind: 'fault', refusal: { code, detail } }
}

/** 0 where it is not declared. */
export function declaredSize(headers: IncomingHttpHeaders): number {
  return Number(headers['content-length'] ?? 0)
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || declaredSize(headers) > 0
}

function checkMediaType({ mediaType, kind }: Body, headers: IncomingHttpHeaders): Refusal | undefined {
  const code = 'media_type_unsupported'
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity')
    return { code, detail: 'the body must come without Content-Encoding' }
  const [essence = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';')
  const given = essence.trim()
  if (given !== mediaType && !(mediaType === 'application/json' && isJsonMedia(given)))
    return { code, detail: `this route takes ${mediaType}` }
  const charset = parameters.map((each) => /^\s*charset="?([^"\s]+)/.exec(each)?.[1]).find(Boolean) ?? 'utf-8'
  return kind === 'bytes' || /^(?:utf-?8|us-ascii)$/.test(charset)
    ? undefined
    : { code, detail: 'text must be encoded as UTF-8' }
}

/** Never destroys the request, whose connection has an answer to carry. A client that has gone away reads as `slow`. */
function readBytes(
  request: IncomingMessage,
  limit: number,
  within: number,
): Promise<Buffer | 'large' | 'slow'> {
  if (declaredSize(request.headers) > limit) return Promise.resolve('large')
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const end = (result: Buffer | 'large' | 'slow'): void => {
      clearTimeout(timer)
      request.off('data', take).off('end', finish).off('close', leave).pause()
      resolve(result)
    }
    const take = (chunk: Buffer): void => {
      size += chunk.length
      if (size > limit) end('large')
      else chunks.push(chunk)
    }
    const finish = (): void => end(Buffer.concat(chunks, size))
    const leave = (): void => end('slow')
    const timer = setTimeout(leave, within)
    request.on('data', take).once('end', finish).once('close', leave)
  })
}

/** What is discarded of one body, and how long a client may go on with it after its answer. */
const DISCARDED_MS = 5_000
const LINGER_MS = 1_000

/** Takes the rest of a body off the connection, within bounds: a client that only writes would not read its answer. */
export function discardBody(request: IncomingMessage, response: ServerResponse): void {
  if (request.complete) return
  let room = LARGEST_BYTES
  request.on('data', (chunk: Buffer) => {
    room -= chunk.length
    if (room < 0) request.pause()
  })
  request.resume()
  response.once('finish', () => {
    const timer = setTimeout(
      () => {
        if (!request.complete) request.socket.destroy()
      },
      room < 0 ? LINGER_MS : DISCARDED_MS,
    )
    timer.unref()
    request.once('close', () => clearTimeout(timer))
  })
}

function parse(body: Body, bytes: Buffer): Received {
  const { kind, form } = body
  const digest = `sha-256=:${hash('sha256', bytes, 'base64')}:`
  const received = { kind: 'body', size: bytes.length, digest } as const
  if (kind === 'bytes') return { ...received, value: bytes.length === 0 ? undefined : new Uint8Array(bytes) }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return fault('body_malformed', 'the body is not UTF-8')
  }
  switch (kind) {
    case 'text':
      return { ...received, value: text }
    case 'form': {
      const entries = [...new URLSearchParams(text)]
      const value = Object.fromEntries(entries)
      return Object.keys(value).length < entries.length
        ? fault('body_malformed', 'the form has a key twice')
        : { ...received, value }
    }
    case 'json': {
      if (bytes.length === 0) return { ...received, value: form === 'properties' ? {} : undefined }
      const parsed = parseStrictJson(text)
      return parsed.kind === 'json'
        ? { ...received, value: parsed.value }
        : fault('body_malformed', `the body ${parsed.sentence}`)
    }
  }
}
