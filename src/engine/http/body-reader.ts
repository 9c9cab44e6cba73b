import { hash } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { isJsonMedia, LARGEST_BYTES } from '../catalog/body.ts'
import type { Body } from '../catalog/catalog.ts'
import type { RawParameters } from '../catalog/validator.ts'
import type { Refusal } from '../base/errors.ts'
import { measureJson, parseStrictJson } from '../base/json.ts'

/** The result of reading a request body. */
export type Received =
  | {
      readonly kind: 'body'
      readonly value: RawParameters['body']
      /** Bytes. */
      readonly size: number
      /** RFC 9530. */
      readonly digest: string
    }
  /** Not read, because it is larger than what is read without a payment. */
  | { readonly kind: 'unread' }
  /** Cannot be accepted. */
  | { readonly kind: 'fault'; readonly refusal: Refusal }

/** Lowest speed of a body in bytes per millisecond, after the time that every request has. */
const SLOWEST = 128
const PATIENCE_MS = 10_000

/** Milliseconds within which a body of this size must arrive. */
export function readingTime(bytes: number): number {
  return PATIENCE_MS + Math.ceil(bytes / SLOWEST)
}

/** Limit of all bodies together, in bytes, from their arrival until their request is answered. */
const ROOM = 256_000_000
/** Part of it that only the first chunks of bodies may use, so that small bodies are read while large ones wait. */
const ROOM_OF_SMALL = 64_000_000
const SMALL = 65_536
/** Memory cost of a chunk besides its bytes: a client may send each byte separately. */
const CHUNK_COST = 256

/** Memory cost of a JSON value after parsing, in bytes, and the limit of values in a body. */
const VALUE_COST = 128
const MOST_VALUES = 1_000_000
/** Deeper values are refused, since recursive processing must not exhaust the stack. */
const DEEPEST = 200

/** Reads request bodies, within a memory limit for all requests of this process. */
export class BodyReader {
  #held = 0

  /** Reads and parses a body of at most `limit` bytes; the rest is discarded once the answer is sent. */
  async receive(
    request: IncomingMessage,
    response: ServerResponse,
    body: Body,
    limit: number,
  ): Promise<Received> {
    const { headers } = request
    const unsupported = hasBody(headers) ? checkMediaType(body, headers) : undefined
    const form = body.kind === 'json' ? 'json' : 'other'
    const read = unsupported === undefined ? await this.read(request, response, limit, form) : 'refused'
    if (Buffer.isBuffer(read)) return parse(body, read)
    discardBody(request, response)
    if (unsupported !== undefined) return { kind: 'fault', refusal: unsupported }
    if (read === 'slow') return fault('request_timeout', 'the body did not arrive in time')
    if (read === 'busy') return { kind: 'fault', refusal: BUSY }
    if (read === 'deep') return fault('body_malformed', `the body ${TOO_DEEP}`)
    if (read === 'many') return fault('body_too_large', `the body ${TOO_MANY}`)
    if (declaredSize(headers) <= body.maxSize && limit < body.maxSize) return { kind: 'unread' }
    return fault('body_too_large', `the body is larger than the ${body.maxSize} bytes this route takes`)
  }

  /**
   * Never destroys the request, whose connection carries the answer. A disconnected client counts as `slow`. For JSON
   * the memory of the parsed value counts too.
   */
  read(
    request: IncomingMessage,
    response: ServerResponse,
    limit: number,
    form: 'json' | 'other',
  ): Promise<Buffer | Unread> {
    if (declaredSize(request.headers) > limit) return Promise.resolve('large')
    return new Promise((resolve) => {
      const chunks: Buffer[] = []
      let [size, held] = [0, 0]
      const release = (): void => {
        this.#held -= held
        held = 0
      }
      const end = (result: Buffer | Unread): void => {
        clearTimeout(timer)
        request.off('data', take).off('end', finish).off('close', leave).pause()
        if (Buffer.isBuffer(result) && !response.closed) response.once('close', release)
        else release()
        resolve(result)
      }
      const hold = (bytes: number): boolean => {
        held += bytes
        this.#held += bytes
        return this.#held <= (held <= SMALL ? ROOM : ROOM - ROOM_OF_SMALL)
      }
      const take = (chunk: Buffer): void => {
        size += chunk.length
        const hasRoom = hold(chunk.length + CHUNK_COST)
        if (size > limit) end('large')
        else if (!hasRoom) end('busy')
        else chunks.push(chunk)
      }
      const finish = (): void => {
        const bytes = Buffer.concat(chunks, size)
        if (form === 'other') return end(bytes)
        const { depth, values } = measureJson(bytes)
        if (depth > DEEPEST) end('deep')
        else if (values > MOST_VALUES) end('many')
        else end(hold(values * VALUE_COST) ? bytes : 'busy')
      }
      const leave = (): void => end('slow')
      const timer = setTimeout(leave, readingTime(limit))
      request.on('data', take).once('end', finish).once('close', leave)
    })
  }
}

/** Why a body was not read; `busy`: other bodies use up the memory limit; `deep`, `many`: JSON beyond the limits. */
type Unread = 'large' | 'slow' | 'busy' | 'deep' | 'many'

export const TOO_DEEP = `is nested more than ${DEEPEST} levels deep`
export const TOO_MANY = `has more than ${MOST_VALUES.toLocaleString('en-US')} values`

export const BUSY = {
  code: 'service_busy',
  detail: 'the bodies of other requests take up the memory there is for them',
  retryAfter: 1,
} as const satisfies Refusal

function fault(code: Refusal['code'], detail: string): Received {
  return { kind: 'fault', refusal: { code, detail } }
}

/** 0 when it is not declared. */
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
  const { essence, charset } = readMediaType(headers['content-type'] ?? '')
  if (essence !== mediaType && !(mediaType === 'application/json' && isJsonMedia(essence)))
    return { code, detail: `this route takes ${mediaType}` }
  return kind === 'bytes' || /^(?:utf-?8|us-ascii)$/.test(charset)
    ? undefined
    : { code, detail: 'text must be encoded as UTF-8' }
}

/** A Content-Type in lower case, without its other parameters; empty when missing. */
export interface MediaType {
  readonly essence: string
  readonly charset: string
}

/** RFC 9110 §8.3. */
export function readMediaType(contentType: string): MediaType {
  const [essence = '', ...parameters] = contentType.toLowerCase().split(';')
  const charset = parameters.map((each) => /^\s*charset="?([^"\s]+)/.exec(each)?.[1]).find(Boolean)
  return { essence: essence.trim(), charset: charset ?? 'utf-8' }
}

/** Limits for discarding the rest of a body after its answer. */
const DISCARDED_MS = 5_000
const LINGER_MS = 1_000

/** Reads and discards the rest of a body, within limits: a client that only writes would never read its answer. */
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
