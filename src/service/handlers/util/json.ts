import { InvalidParameter } from 'ratecard/handler'
import { entryBeside, ThreadPool } from '../../threads/thread-pool.ts'
import { LIMIT_EXCEEDED } from '../../threads/thread.ts'
import type { Handler } from '../catalog.ts'
import type { Performed, Request } from './json/operations.ts'

/** Raised when the same request gets another answer than before. */
const VERSION = '1.0.0'

/** Ten times what the slowest honest request needs. */
const MILLISECONDS = 1000

/** One for the process: threads are dear. */
const pool = new ThreadPool<Request, Performed>(entryBeside(import.meta.url, './json/worker'), {
  threads: 2,
  milliseconds: MILLISECONDS,
  megabytes: 128,
})

/**
 * Operations on JSON documents: check, write, repair, describe, query, compare, change, turn into tables. A well-formed
 * request is either answered or refused with a sentence; whatever it asks for, it can occupy one thread for a second.
 */
export const json: Handler<'util/json'> = async (parameters, { signal, now }) => {
  const started = now().getTime()
  const performed = await pool.perform(parameters, signal)
  if (performed === LIMIT_EXCEEDED)
    throw new InvalidParameter('data', `input too complex to process within ${MILLISECONDS} ms`)
  return {
    source: [{ name: 'computed', version: VERSION }],
    body: { ...performed.body, elapsed_ms: now().getTime() - started },
    warnings: performed.warnings,
  }
}
