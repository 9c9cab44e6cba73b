import { readPieces, writePieces, type AnswerStore } from '../answers.ts'
import type { RedisConnection } from './redis-connection.ts'
import { KEYS } from './redis-scripts.ts'

/** Small enough that no command blocks Redis. */
const PIECE_BYTES = 256 * 1024

/** Answers as keys of one piece each, which expire in Redis. */
export function openRedisAnswers({ ask }: Pick<RedisConnection, 'ask'>): AnswerStore {
  const drop = async (id: string, attempt: number, pieces: number): Promise<void> => {
    const keys = Array.from({ length: pieces }, (_, place) => KEYS.answer(id, attempt, place))
    if (keys.length > 0) await ask((redis) => redis.unlink(keys))
  }
  return {
    write: (answer, body) => {
      const { id, attempt, expiresAt } = answer
      let pieces = 0
      return writePieces(answer, body, {
        pieceBytes: PIECE_BYTES,
        append: async (piece, place) => {
          pieces = place + 1
          const key = KEYS.answer(id, attempt, place)
          await ask((redis) => redis.set(key, Buffer.from(piece), 'PXAT', Math.round(expiresAt)))
        },
        finish: async () => undefined,
        abandon: () => drop(id, attempt, pieces),
      })
    },
    read: (id, reference) =>
      readPieces(
        id,
        reference,
        PIECE_BYTES,
        async (place) =>
          (await ask((redis) => redis.getBuffer(KEYS.answer(id, reference.attempt, place)))) ?? undefined,
      ),
    delete: (id, { attempt, size }) => drop(id, attempt, Math.ceil(size / PIECE_BYTES)),
    // Redis deletes expired keys itself.
    sweep: async () => 0,
  }
}
