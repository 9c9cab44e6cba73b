import type { Database } from 'lmdb'
import type { AnswerStore } from '../answers.ts'
import { writePieces, readPieces, STALE_MS } from '../answers.ts'

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
  /** Makes a change with the next commit. */
  readonly join: (work: () => void) => Promise<void>
  readonly now: () => number
  /** Store for streams and larger answers. */
  readonly files: AnswerStore
}

/** Stores small answers as values of the ledger’s database, others as files. */
export function openLmdbAnswers({ values, change, join, now, files }: LmdbAnswers): AnswerStore {
  /** Values on their way into the database. */
  const joining = new Map<string, Buffer>()
  const isKept = (key: Key): boolean => joining.has(key.join(' ')) || values.doesExist(key)
  const remove = (key: Key): Promise<void> => {
    joining.delete(key.join(' '))
    return change(() => void values.remove(key))
  }
  const pageAfter = (last?: Key): { key: Key; value: Buffer }[] =>
    Array.from(
      values.getRange({ ...(last === undefined ? {} : { start: last, exclusiveStart: true }), limit: PAGE }),
    )
  return {
    write: async (answer, body) => {
      const key: Key = [answer.id, answer.attempt]
      if (!(body instanceof Uint8Array) || body.length > LARGEST_VALUE) {
        // An earlier run of the same attempt may have stored a small answer.
        if (isKept(key)) await remove(key)
        return files.write(answer, body)
      }
      const value = Buffer.allocUnsafe(HEAD_BYTES + body.length)
      value.writeDoubleBE(now())
      value.set(body, HEAD_BYTES)
      return writePieces(answer, body, {
        pieceBytes: LARGEST_VALUE,
        append: async () => undefined,
        // The record that refers to it is changed next: both are stored, or neither is.
        finish: async () => {
          const place = key.join(' ')
          joining.set(place, value)
          const stored = join(() => void values.put(key, value)).catch(() => undefined)
          void stored.then(() => joining.get(place) === value && joining.delete(place))
        },
        abandon: async () => undefined,
      })
    },
    read: async (id, reference) => {
      const key: Key = [id, reference.attempt]
      const value = joining.get(key.join(' ')) ?? values.get(key)
      if (value === undefined) return files.read(id, reference)
      return readPieces(id, reference, LARGEST_VALUE, async () => value.subarray(HEAD_BYTES))
    },
    delete: async (id, reference) => {
      const key: Key = [id, reference.attempt]
      if (isKept(key)) await remove(key)
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
