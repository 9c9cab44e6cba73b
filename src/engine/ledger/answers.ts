import { createHash } from 'node:crypto'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Database } from 'lmdb'
import type { AnswerHead, AnswerReference, PaymentRecord, StoredAnswer } from './payment-record.ts'
import { payableUntil } from './payment-lifecycle.ts'
import { LedgerError } from '../errors.ts'

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
  write(answer: WrittenAnswer, body: AnswerBody): Promise<AnswerReference>
  /** Undefined when it is missing. When it resolves, the answer was read once and was complete. */
  read(id: string, reference: AnswerReference): Promise<AsyncIterable<Uint8Array> | undefined>
  delete(id: string, reference: AnswerReference): Promise<void>
  /** Deletes answers that are older than an hour at `now` and unknown to `isKept`; resolves to their number. */
  sweep(now: number, isKept: (id: string, attempt: number) => Promise<boolean>): Promise<number>
}

/** Complete, or as a stream. */
type AnswerBody = Uint8Array | AsyncIterable<Uint8Array>

interface WrittenAnswer extends Pick<AnswerReference, 'kind' | 'mediaType' | 'headers' | 'attempt'> {
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

/** Writes an answer in pieces of one size, whatever the chunks it arrives in. */
export async function writePieces(
  { id, kind, mediaType, headers, attempt }: WrittenAnswer,
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
  const reference = { kind, mediaType, size, attempt, digest: hash.digest('base64url') }
  return headers === undefined ? reference : { ...reference, headers }
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
  entry: PaymentRecord,
  answer: StoredAnswer,
): Promise<AnswerReference> {
  const { kind } = answer
  if (kind === 'json') {
    const bytes = Buffer.from(JSON.stringify(answer.value))
    return store.write({ ...placeOf(entry), kind, mediaType: JSON_TYPE }, bytes)
  }
  const { type: mediaType, headers } = answer
  const bytes = kind === 'text' ? Buffer.from(answer.text) : answer.bytes
  return store.write({ ...placeOf(entry), kind, mediaType, headers }, bytes)
}

/** Stores a stream while it is sent; resolves once it is complete and durable. Rejects as the stream does. */
export function writeStream(
  store: AnswerStore,
  entry: PaymentRecord,
  { type: mediaType, headers }: AnswerHead,
  chunks: AsyncIterable<Uint8Array>,
): Promise<AnswerReference> {
  return store.write({ ...placeOf(entry), kind: 'bytes', mediaType, headers }, chunks)
}

function placeOf(entry: PaymentRecord): Pick<WrittenAnswer, 'id' | 'attempt' | 'expiresAt'> {
  const { id, attempts: attempt, redeliver } = entry
  return { id, attempt, expiresAt: payableUntil(entry) + redeliver + STALE_MS }
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

/** Deletes an answer; if that fails, the sweep deletes it later. */
export async function deleteAnswer(store: AnswerStore, id: string, answer: AnswerReference): Promise<void> {
  await store.delete(id, answer).catch(() => undefined)
}

/** Largest answer stored as a value: one write of the next commit, where a file takes eight calls and two flushes. */
const LARGEST_VALUE = 16 * 1024

/** Payment id and attempt. */
type Key = [id: string, attempt: number]

/** A value begins with its time of writing: milliseconds since the epoch, as a double. */
const HEAD_BYTES = 8

/** Values per read of a sweep. */
const PAGE = 500

interface LmdbAnswers {
  readonly values: Database<Buffer, Key>
  /** Makes changes in one commit, which is durable when it resolves. */
  readonly change: <T>(work: () => T) => Promise<T>
  readonly now: () => number
  /** Store for streams and larger answers. */
  readonly files: AnswerStore
}

/** Stores small answers as values of the ledger’s database, others as files. */
export function openLmdbAnswers({ values, change, now, files }: LmdbAnswers): AnswerStore {
  const pageAfter = (last?: Key): { key: Key; value: Buffer }[] =>
    Array.from(
      values.getRange({ ...(last === undefined ? {} : { start: last, exclusiveStart: true }), limit: PAGE }),
    )
  return {
    write: async (answer, body) => {
      const key: Key = [answer.id, answer.attempt]
      if (!(body instanceof Uint8Array) || body.length > LARGEST_VALUE) {
        // An earlier run of the same attempt may have stored a small answer.
        if (values.doesExist(key)) await change(() => values.remove(key))
        return files.write(answer, body)
      }
      const value = Buffer.allocUnsafe(HEAD_BYTES + body.length)
      value.writeDoubleBE(now())
      value.set(body, HEAD_BYTES)
      return writePieces(answer, body, {
        pieceBytes: LARGEST_VALUE,
        append: async () => undefined,
        finish: () => change(() => void values.put(key, value)),
        abandon: async () => undefined,
      })
    },
    read: async (id, reference) => {
      const value = values.get([id, reference.attempt])
      if (value === undefined) return files.read(id, reference)
      return readPieces(id, reference, LARGEST_VALUE, async () => value.subarray(HEAD_BYTES))
    },
    delete: async (id, reference) => {
      const key: Key = [id, reference.attempt]
      if (values.doesExist(key)) await change(() => void values.remove(key))
      else await files.delete(id, reference)
    },
    sweep: async (at, isKept) => {
      let deleted = 0
      for (let page = pageAfter(); page.length > 0; page = pageAfter(page.at(-1)?.key)) {
        const gone: Key[] = []
        for (const { key, value } of page)
          if (at - value.readDoubleBE() >= STALE_MS && !(await isKept(...key))) gone.push(key)
        if (gone.length > 0) await change(() => gone.forEach((key) => void values.remove(key)))
        deleted += gone.length
      }
      return deleted + (await files.sweep(at, isKept))
    },
  }
}

const PIECE_BYTES = 256 * 1024

/**
 * Answers as files of a directory: `<shard>/<payment id>.<attempt>`. A file is written under another name, flushed, and
 * renamed, and its directory is flushed, so that a power cut leaves it whole or not there.
 */
export function openAnswerFiles(directory: string): AnswerStore {
  const fileOf = (id: string, attempt: number): string => {
    // Ids come from paths of requests and become file names here.
    if (!/^pay_[\w-]{22}$/.test(id)) throw new RangeError('this is no payment id')
    return join(directory, shardOf(id), `${id}.${attempt}`)
  }
  return {
    write: async (answer, body) => {
      const file = fileOf(answer.id, answer.attempt)
      const temporary = `${file}.tmp`
      const handle = await guarded(() => openNew(directory, temporary))
      // An error of the body is passed on unchanged.
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

/** Distributes files over 64 directories, so that none grows too large. */
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
