import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { LedgerError } from '../base/errors.ts'
import type { AnswerStore } from './answers.ts'
import { writePieces, readPieces, STALE_MS } from './answers.ts'

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
