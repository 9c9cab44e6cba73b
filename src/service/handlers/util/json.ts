import { extname } from 'node:path'
import { Failure, InvalidParameter } from '../../../engine/index.ts'
import type { Handler } from '../catalog.ts'
import { Bench, OVERRUN } from './json/bench.ts'
import type { Reply } from './json/worker.ts'

/** Raised when the same request gets another answer than before. */
const VERSION = '1.0.0'

/** Ten times what the slowest honest request needs. */
const DEADLINE_MILLISECONDS = 1000

/** One for the process: threads are dear. The entry is `.ts` beside the sources and `.js` once they are built. */
const bench = new Bench(
  new URL(`./json/worker${extname(import.meta.url)}`, import.meta.url),
  DEADLINE_MILLISECONDS,
)

/**
 * Operations on JSON documents: check, write, repair, describe, query, compare, change, turn into tables. A well-formed
 * request is either answered or refused with a sentence; whatever it asks for, it can occupy one thread for a second.
 */
export const json: Handler<'util/json'> = async (parameters, { signal }) => {
  const outcome = await bench.perform(parameters, signal)
  if (outcome === OVERRUN) throw tooComplex()
  const reply: Reply = JSON.parse(outcome)
  switch (reply.kind) {
    case 'performed':
      return { source: [{ name: 'computed', version: VERSION }], ...reply.performed }
    case 'invalid':
      throw new InvalidParameter(reply.parameter, reply.sentence, reply.ctx)
    case 'failed':
      throw new Failure(reply.code, reply.detail)
    case 'exhausted':
      throw tooComplex()
    case 'broken':
      throw new Failure('internal', 'The operation failed unexpectedly', { cause: new Error(reply.reason) })
  }
}

function tooComplex(): InvalidParameter {
  return new InvalidParameter('data', 'data and schema together are too complex to process within 1 second')
}
