import { InvalidParameter, type EnvelopedAnswer, type Json } from 'ratecard/handler'
import { entryBeside, ThreadPool } from '../../threads/thread-pool.ts'
import { LIMIT_EXCEEDED } from '../../threads/thread.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import type { PricingTask } from './tokencost/pricing.ts'

/** The ranks are loaded within it, by the first that needs them. */
const MILLISECONDS = 8000
/** One thread, for it holds the ranks of two encodings: a hundred megabytes. */
const pool = new ThreadPool<PricingTask, EnvelopedAnswer>(
  entryBeside(import.meta.url, './tokencost/worker'),
  {
    threads: 1,
    milliseconds: MILLISECONDS,
    megabytes: 384,
  },
)

/** What a prompt and its answer cost at list prices, for one model or side by side, cheapest first. */
export const tokencost: HandlerWithPreview<'util/tokencost'> = {
  run: async (parameters, { now, signal }) => {
    const answer = await pool.perform({ parameters, at: now().getTime() }, signal)
    if (answer !== LIMIT_EXCEEDED) return answer
    throw new InvalidParameter('text', `input too complex to process within ${MILLISECONDS} ms`)
  },
  preview: (body) => ({ ...body, models: firstOf(body['models'], 3) }),
}

function firstOf(list: Json | undefined, count: number): readonly Json[] {
  return Array.isArray(list) ? list.slice(0, count) : []
}
