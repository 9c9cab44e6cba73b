import { InvalidParameter } from 'ratecard/handler'
import { entryBeside, ThreadPool } from '../../threads/thread-pool.ts'
import { LIMIT_EXCEEDED } from '../../threads/thread.ts'
import type { Excerpt, ExcerptTask } from './excerpt/selection.ts'

/** Ranking 800 sentences takes a tenth of it. */
const MILLISECONDS = 3000
const pool = new ThreadPool<ExcerptTask, Excerpt>(entryBeside(import.meta.url, './excerpt/worker'), {
  threads: 2,
  milliseconds: MILLISECONDS,
  megabytes: 128,
})

/** The sentences that say most of a text. Throws `InvalidParameter` for `text` when it has no words, or takes too long. */
export async function takeExcerpt(task: ExcerptTask, signal: AbortSignal): Promise<Excerpt> {
  const excerpt = await pool.perform(task, signal)
  if (excerpt !== LIMIT_EXCEEDED) return excerpt
  throw new InvalidParameter('text', `input too complex to process within ${MILLISECONDS} ms`)
}
