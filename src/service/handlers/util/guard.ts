import {
  InvalidParameter,
  isJsonObject,
  type EnvelopedAnswer,
  type Json,
  type JsonObject,
} from 'ratecard/handler'
import { entryBeside, ThreadPool } from '../../threads/thread-pool.ts'
import { LIMIT_EXCEEDED } from '../../threads/thread.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import type { Screened } from './guard/screening.ts'

/** No text is known that takes a tenth of it. */
const MILLISECONDS = 3000
const pool = new ThreadPool<Screened, EnvelopedAnswer>(entryBeside(import.meta.url, './guard/worker'), {
  threads: 2,
  milliseconds: MILLISECONDS,
  megabytes: 128,
})

/** Screens a text for prompt injection, personal data and secrets by rules; nothing of it is kept. */
export const guard: HandlerWithPreview<'util/guard'> = {
  run: async ({ text, kind }, { signal }) => {
    const answer = await pool.perform({ text, kind }, signal)
    if (answer !== LIMIT_EXCEEDED) return answer
    throw new InvalidParameter('text', `input too complex to process within ${MILLISECONDS} ms`)
  },

  preview: ({ verdict = null, risk_score: risk = null, injection, pii, secrets }) => ({
    verdict,
    risk_score: risk,
    injection: counted(injection),
    pii: counted(pii),
    secrets: counted(secrets),
  }),
}

function counted(part: Json | undefined): JsonObject {
  if (!isJsonObject(part)) return {}
  const { detected = false, count = 0, counts } = part
  return { detected, count, ...(counts === undefined ? {} : { counts }) }
}
