import { InvalidParameter } from '../../../engine/index.ts'
import { entryBeside, ThreadPool } from '../../threads/thread-pool.ts'
import { OVERRUN } from '../../threads/thread.ts'
import type { Handler } from '../catalog.ts'
import type { Performed, Request } from './json/operations.ts'

/** Raised when the same request gets another answer than before. */
const VERSION = '1.0.0'

/** One pool for the process: threads are dear. A second is ten times what the slowest honest request needs. */
const pool = new ThreadPool<Request, Performed>(entryBeside(import.meta.url, './json/worker'), {
  threads: 2,
  milliseconds: 1000,
  megabytes: 128,
})

/**
 * Operations on JSON documents: check, write, repair, describe, query, compare, change, turn into tables. A well-formed
 * request is either answered or refused with a sentence; whatever it asks for, it can occupy one thread for a second.
 */
export const json: Handler<'util/json'> = async (parameters, { signal }) => {
  const performed = await pool.perform(parameters, signal)
  if (performed === OVERRUN)
    throw new InvalidParameter('data', 'data and schema together are too complex to process within 1 second')
  return { source: [{ name: 'computed', version: VERSION }], ...performed }
}
