import { createHash } from 'node:crypto'
import type { AnswerHead, AnswerReference, PaymentRecord, StoredAnswer } from './payment-record.ts'
import { payableUntil } from './payment-lifecycle.ts'

export const LARGEST_ANSWER_BYTES = 10 * 1024 * 1024

/**
 * What payments have bought, besides their records. An answer is written once, before its payment is settled, and is
 * either there as it was written or not at all: what is torn, swapped or lost counts as missing, and the payment it
 * belongs to is owed its answer. `test/contract/answers.ts` says what an implementation has to do.
 */
export interface AnswerStore {
  /**
   * Durable once it has resolved and a record that refers to it is stored. `expiresAt`: when the store may delete it by itself, milliseconds since the epoch. Rejects
   * with `AnswerTooLargeError` above `LARGEST_ANSWER_BYTES`, and with `LedgerError` when it cannot be stored.
   */
  write(answer: WrittenAnswer, body: AnswerBody): Promise<AnswerReference>
  /** Undefined when it is missing. When it resolves, the answer was read once and was complete. */
  read(id: string, reference: AnswerReference): Promise<AsyncIterable<Uint8Array> | undefined>
  delete(id: string, reference: AnswerReference): Promise<void>
  /** Deletes answers that are older than an hour at `now` and unknown to `isKept`; resolves to their number. */
  sweep(now: number, isKept: (id: string, attempt: number) => Promise<boolean>): Promise<number>
}

/** Complete, or as a stream. */
type AnswerBody = Uint8Array | AsyncIterable<Uint8Array>

interface WrittenAnswer extends Pick<
  AnswerReference,
  'kind' | 'status' | 'mediaType' | 'headers' | 'attempt'
> {
  /** Public id of the payment. */
  readonly id: string
  readonly expiresAt: number
}

/** The answer exceeds the limit of the answer store. */
export class AnswerTooLargeError extends Error {
  constructor() {
    super(`the answer is larger than ${LARGEST_ANSWER_BYTES / 1024 / 1024} MB`)
    this.name = 'AnswerTooLargeError'
  }
}

/** Where an implementation stores the pieces of one answer. */
interface Pieces {
  /** Size of every piece except the last. */
  readonly pieceBytes: number
  append(piece: Uint8Array, place: number): Promise<void>
  /** Makes the pieces visible and durable. */
  finish(): Promise<void>
  /** Removes all pieces. */
  abandon(): Promise<void>
}

/**
 * Writes an answer in pieces of one size, whatever the chunks it arrives in. Rejects with `AnswerTooLargeError`, and as
 * the body and the pieces do.
 */
export async function writePieces(
  { id, kind, status, mediaType, headers, attempt }: WrittenAnswer,
  body: AnswerBody,
  pieces: Pieces,
): Promise<AnswerReference> {
  const hash = createHash('sha256').update(`${id}\n`)
  let [size, place] = [0, 0]
  try {
    for await (const piece of body instanceof Uint8Array ? [body] : joined(body, pieces.pieceBytes))
      for (let at = 0; at < piece.length; at += pieces.pieceBytes) {
        const part = piece.subarray(at, at + pieces.pieceBytes)
        size += part.length
        if (size > LARGEST_ANSWER_BYTES) throw new AnswerTooLargeError()
        hash.update(part)
        await pieces.append(part, place)
        place += 1
      }
    await pieces.finish()
  } catch (fault) {
    await pieces.abandon().catch(() => undefined)
    throw fault
  }
  return {
    kind,
    mediaType,
    size,
    attempt,
    digest: hash.digest('base64url'),
    ...(headers && { headers }),
    ...(status && { status }),
  }
}

/** Rejoins chunks to pieces of one size, except for the last. Each piece reuses the memory of the one before. */
async function* joined(chunks: AsyncIterable<Uint8Array>, pieceBytes: number): AsyncGenerator<Uint8Array> {
  const piece = Buffer.alloc(pieceBytes)
  let filled = 0
  for await (const chunk of chunks)
    for (let at = 0; at < chunk.length;) {
      const part = chunk.subarray(at, at + pieceBytes - filled)
      piece.set(part, filled)
      filled += part.length
      at += part.length
      if (filled < pieceBytes) continue
      yield piece
      filled = 0
    }
  if (filled > 0) yield piece.subarray(0, filled)
}

/**
 * Reads an answer in pieces, twice: the sender must know that it is complete before the first byte is sent. An
 * answer of a single piece is read once.
 */
export async function readPieces(
  id: string,
  { size, digest }: AnswerReference,
  pieceBytes: number,
  pieceAt: (place: number) => Promise<Uint8Array | undefined>,
): Promise<AsyncIterable<Uint8Array> | undefined> {
  const count = Math.ceil(size / pieceBytes)
  const hash = createHash('sha256').update(`${id}\n`)
  let only: Uint8Array | undefined
  for (let place = 0; place < count; place += 1) {
    const piece = await pieceAt(place)
    if (piece?.length !== Math.min(pieceBytes, size - place * pieceBytes)) return undefined
    hash.update(piece)
    if (count === 1) only = piece
  }
  if (hash.digest('base64url') !== digest) return undefined
  return (async function* () {
    for (let place = 0; place < count; place += 1) {
      const piece = only ?? (await pieceAt(place))
      if (piece === undefined) throw new Error(`the answer of ${id} was deleted while it was read`)
      yield piece
    }
  })()
}

/** A younger answer without a record may belong to a record that is about to be written. */
export const STALE_MS = 3_600_000

/** Stores the answer of a payment, before its record refers to it. */
export function writeAnswer(
  store: AnswerStore,
  record: PaymentRecord,
  answer: StoredAnswer,
): Promise<AnswerReference> {
  const { kind, status } = answer
  if (kind === 'json') {
    const bytes = Buffer.from(JSON.stringify(answer.value))
    return store.write({ ...placeOf(record), kind, status, mediaType: JSON_TYPE }, bytes)
  }
  const { type: mediaType, headers } = answer
  const bytes = kind === 'text' ? Buffer.from(answer.text) : answer.bytes
  return store.write({ ...placeOf(record), kind, status, mediaType, headers }, bytes)
}

/** Stores a stream while it is sent; resolves once it is complete and durable. Rejects as the stream does. */
export function writeStream(
  store: AnswerStore,
  record: PaymentRecord,
  { status, type: mediaType, headers }: AnswerHead,
  chunks: AsyncIterable<Uint8Array>,
): Promise<AnswerReference> {
  return store.write({ ...placeOf(record), kind: 'bytes', status, mediaType, headers }, chunks)
}

function placeOf(record: PaymentRecord): Pick<WrittenAnswer, 'id' | 'attempt' | 'expiresAt'> {
  const { id, attempts: attempt, redeliver } = record
  return { id, attempt, expiresAt: payableUntil(record) + redeliver + STALE_MS }
}

/** Undefined when no complete answer exists: a settled payment is then still owed its answer. */
export async function readAnswer(
  store: AnswerStore,
  { id, answer }: Pick<PaymentRecord, 'id' | 'answer'>,
): Promise<StoredAnswer | undefined> {
  const body = answer === undefined ? undefined : await store.read(id, answer)
  if (answer === undefined || body === undefined) return undefined
  const pieces: Uint8Array[] = []
  for await (const piece of body) pieces.push(piece)
  const bytes = Buffer.concat(pieces)
  const { kind, mediaType: type, headers, status } = answer
  const head = { ...(headers && { headers }), ...(status && { status }) }
  switch (kind) {
    case 'json':
      return { kind, value: JSON.parse(bytes.toString()), ...(status && { status }) }
    case 'text':
      return { kind, type, text: bytes.toString(), ...head }
    case 'bytes':
      return { kind, type, bytes, ...head }
  }
}

const JSON_TYPE = 'application/json'

/** Deletes an answer; if that fails, the sweep deletes it later. */
export async function deleteAnswer(store: AnswerStore, id: string, answer: AnswerReference): Promise<void> {
  await store.delete(id, answer).catch(() => undefined)
}
