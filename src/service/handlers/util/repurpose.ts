import { InvalidParameter, type EnvelopedAnswer } from 'ratecard/handler'
import { entryBeside, ThreadPool } from '../../threads/thread-pool.ts'
import { LIMIT_EXCEEDED } from '../../threads/thread.ts'
import type { HandlerWithPreview, Parameters } from '../catalog.ts'

/** Ranking 400 sentences takes a tenth of it. */
const MILLISECONDS = 3000
const pool = new ThreadPool<Parameters['util/repurpose'], EnvelopedAnswer>(
  entryBeside(import.meta.url, './repurpose/worker'),
  { threads: 2, milliseconds: MILLISECONDS, megabytes: 128 },
)

/** Passages of a text near the length of a clip, and posts of its best sentences: cut out, never worded again. */
export const repurpose: HandlerWithPreview<'util/repurpose'> = {
  run: async (parameters, { signal }) => {
    const answer = await pool.perform(parameters, signal)
    if (answer !== LIMIT_EXCEEDED) return answer
    throw new InvalidParameter('text', `input too complex to process within ${MILLISECONDS} ms`)
  },

  preview: ({
    language = null,
    input = null,
    target_seconds: target = null,
    segments = null,
    method = null,
  }) => ({
    language,
    input,
    target_seconds: target,
    segments,
    method,
  }),
}
