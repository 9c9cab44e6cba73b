import { createHash } from 'node:crypto'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { AnswerReference, PaymentRecord, StoredAnswer } from './payment-record.ts'
import { LedgerError, payableUntil } from './payment-lifecycle.ts'

export const LARGEST_ANSWER_BYTES = 10 * 1024 * 1024

/**
 * What payments have bought, besides their records. An answer is written once, before its payment is settled, and is
 * either there as it was written or not at all: what is torn, swapped or lost counts as missing, and the payment it
 * belongs to is owed its answer. `test/contract/answers.ts` says what an implementation has to do.
 */
export interface AnswerStore {
  /**
   * Durable when it resolves. `expiresAt`: when the store may delete it by itself, milliseconds since the epoch. Rejects
   * with `AnswerTooLargeError` above `LARGEST_ANSWER_BYTES`, and with `LedgerError` when it cannot be stored.
   */
  write(
    answer: WrittenAnswer,
    body: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  ): Promise<AnswerReference>
  /** Undefined when it is missing. It was read once and was whole when this resolves. */
  read(id: string, reference: AnswerReference): Promise<AsyncIterable<Uint8Array> | undefined>
  delete(id: string, reference: AnswerReference): Promise<void>
  /** Deletes answers that are older than an hour at `now` and that `isKept` does not know; resolves to their number. */
  sweep(now: number, isKept: (id: string, attempt: number) => Promise<boolean>): Promise<number>
}

interface WrittenAnswer extends Pick<AnswerReference, 'kind' | 'mediaType' | 'headers' | 'attempt'> {
  /** Public id of the payment. */
  readonly id: string
  readonly expiresAt: number
}

/** The answer is larger than an answer store takes. */
export class AnswerTooLargeError extends Error {
  constructor() {
    super(`the answer is larger than ${LARGEST_ANSWER_BYTES / 1024 / 1024} MB`)
    this.name = 'AnswerTooLargeError'
  }
}

/** Where an implementation keeps the pieces of one answer. */
interface Pieces {
  /** Pieces have this size, except for the last. */
  readonly pieceBytes: number
  append(piece: Uint8Array, place: number): Promise<void>
  /** All are there: they become visible, and durable. */
  finish(): Promise<void>
  /** Nothing may be left of them. */
  abandon(): Promise<void>
}

/** Writes an answer in pieces of one size, whatever the sizes it comes in. */
export async function writePieces(
  { id, kind, mediaType, headers, attempt }: WrittenAnswer,
  body: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  pieces: Pieces,
): Promise<AnswerReference> {
  const hash = createHash('sha256').update(`${id}\n`)
  const piece = Buffer.alloc(pieces.pieceBytes)
  let [size, place, filled] = [0, 0, 0]
  const flush = async (): Promise<void> => {
    await pieces.append(piece.subarray(0, filled), place)
    place += 1
    filled = 0
  }
  try {
    for await (const chunk of body) {
      size += chunk.length
      if (size > LARGEST_ANSWER_BYTES) throw new AnswerTooLargeError()
      hash.update(chunk)
      for (let at = 0; at < chunk.length;) {
        const part = chunk.subarray(at, at + piece.length - filled)
        piece.set(part, filled)
        filled += part.length
        at += part.length
        if (filled === piece.length) await flush()
      }
    }
    if (filled > 0) await flush()
    await pieces.finish()
  } catch (fault) {
    await pieces.abandon().catch(() => undefined)
    throw fault
  }
  const reference = { kind, mediaType, size, attempt, digest: hash.digest('base64url') }
  return headers === undefined ? reference : { ...reference, headers }
}

/**
 * Reads an answer in pieces, twice: who sends it on must know that it is whole before the first byte has left. One of a
 * single piece is read once.
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

/** An answer without a record may be one whose record is about to be written. */
export const STALE_MS = 3_600_000

/** Stores what was worked for a payment, before the record refers to it. */
export function writeAnswer(
  store: AnswerStore,
  entry: PaymentRecord,
  answer: StoredAnswer,
): Promise<AnswerReference> {
  const { id, attempts: attempt, redeliver } = entry
  const expiresAt = payableUntil(entry) + redeliver + STALE_MS
  const { kind } = answer
  if (kind === 'json') {
    const bytes = Buffer.from(JSON.stringify(answer.value))
    return store.write({ id, kind, mediaType: JSON_TYPE, attempt, expiresAt }, [bytes])
  }
  const { type: mediaType, headers } = answer
  const bytes = kind === 'text' ? Buffer.from(answer.text) : answer.bytes
  return store.write({ id, kind, mediaType, headers, attempt, expiresAt }, [bytes])
}

/** Undefined when there is none, or none that is whole: a payment that was settled is owed its answer then. */
export async function readAnswer(
  store: AnswerStore,
  { id, answer }: Pick<PaymentRecord, 'id' | 'answer'>,
): Promise<StoredAnswer | undefined> {
  const body = answer === undefined ? undefined : await store.read(id, answer)
  if (answer === undefined || body === undefined) return undefined
  const pieces: Uint8Array[] = []
  for await (const piece of body) pieces.push(piece)
  const bytes = Buffer.concat(pieces)
  const { kind, mediaType: type, headers } = answer
  switch (kind) {
    case 'json':
      return { kind, value: JSON.parse(bytes.toString()) }
    case 'text':
      return { kind, type, text: bytes.toString(), ...(headers && { headers }) }
    case 'bytes':
      return { kind, type, bytes, ...(headers && { headers }) }
  }
}

const JSON_TYPE = 'application/json'

/** What stays is swept away later. */
export async function deleteAnswer(store: AnswerStore, id: string, answer: AnswerReference): Promise<void> {
  await store.delete(id, answer).catch(() => undefined)
}

const PIECE_BYTES = 256 * 1024

/**
 * Answers as files of a directory: `<shard>/<payment id>.<attempt>`. A file is written under another name, flushed, and
 * renamed, and its directory is flushed, so that a power cut leaves it whole or not there.
 */
export function openAnswerFiles(directory: string): AnswerStore {
  const fileOf = (id: string, attempt: number): string => {
    // Ids reach us in paths of requests, and here become names of files.
    if (!/^pay_[\w-]{22}$/.test(id)) throw new RangeError('this is no payment id')
    return join(directory, shardOf(id), `${id}.${attempt}`)
  }
  return {
    write: async (answer, body) => {
      const file = fileOf(answer.id, answer.attempt)
      const temporary = `${file}.tmp`
      const handle = await guarded(() => openNew(directory, temporary))
      // What is thrown by the body is not ours to explain.
      return writePieces(answer, body, {
        pieceBytes: PIECE_BYTES,
        append: (piece) => guarded(() => handle.writeFile(piece)),
        finish: () =>
          guarded(async () => {
            await handle.sync()
            await handle.close()
            await rename(temporary, file)
            await flushDirectory(dirname(file))
          }),
        abandon: async () => {
          await handle.close()
          await rm(temporary, { force: true })
        },
      })
    },
    read: (id, reference) => {
      const file = fileOf(id, reference.attempt)
      return guarded(() =>
        readPieces(id, reference, PIECE_BYTES, (place) => readPiece(file, place, reference.size)),
      )
    },
    delete: (id, { attempt }) => guarded(() => rm(fileOf(id, attempt), { force: true })),
    sweep: (now, isKept) => guarded(() => sweep(directory, now, isKept)),
  }
}

/** 64 directories, so that none grows too long to be listed. */
function shardOf(id: string): string {
  return id.slice(4, 5)
}

async function openNew(directory: string, file: string) {
  try {
    return await open(file, 'w', 0o600)
  } catch (fault) {
    if (codeOf(fault) !== 'ENOENT') throw fault
  }
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await flushDirectory(directory)
  return open(file, 'w', 0o600)
}

async function readPiece(file: string, place: number, size: number): Promise<Uint8Array | undefined> {
  const handle = await open(file, 'r').catch((fault: unknown) => {
    if (codeOf(fault) === 'ENOENT') return undefined
    throw fault
  })
  if (handle === undefined) return undefined
  try {
    if ((await handle.stat()).size !== size) return undefined
    const start = place * PIECE_BYTES
    const buffer = Buffer.alloc(Math.min(PIECE_BYTES, size - start))
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, start)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

async function flushDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function sweep(
  directory: string,
  now: number,
  isKept: (id: string, attempt: number) => Promise<boolean>,
): Promise<number> {
  let deleted = 0
  for (const shard of await list(directory))
    for (const name of await list(join(directory, shard))) {
      const file = join(directory, shard, name)
      const found = await stat(file).catch(() => undefined)
      if (found === undefined || now - found.mtimeMs < STALE_MS) continue
      const [, id = '', attempt = ''] = /^(pay_[\w-]{22})\.(\d+)$/.exec(name) ?? []
      if (id !== '' && (await isKept(id, Number(attempt)))) continue
      await rm(file, { force: true })
      deleted += 1
    }
  return deleted
}

function list(directory: string): Promise<string[]> {
  return readdir(directory).catch(() => [])
}

async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (fault) {
    const code = codeOf(fault)
    if (code === undefined) throw fault
    throw new LedgerError(`the answer of a payment could not be stored or read (${code})`, { cause: fault })
  }
}

function codeOf(fault: unknown): string | undefined {
  return fault instanceof Error && 'code' in fault && typeof fault.code === 'string' ? fault.code : undefined
}
