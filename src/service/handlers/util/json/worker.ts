import { parentPort } from 'node:worker_threads'
import { Failure, InvalidParameter } from '../../../../engine/index.ts'
import type { ErrorCode, JsonObject } from '../../../../engine/index.ts'
import { perform } from './operations.ts'
import type { Performed, Request } from './operations.ts'

/** What comes back from the thread, as JSON text: a plain copy would lose a member called `__proto__`. */
export type Reply =
  | { readonly kind: 'performed'; readonly performed: Performed }
  | {
      readonly kind: 'invalid'
      readonly parameter: string
      readonly sentence: string
      readonly ctx: JsonObject
    }
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly detail: string }
  | { readonly kind: 'exhausted' }
  | { readonly kind: 'broken'; readonly reason: string }

function reply(request: Request): Reply {
  try {
    return { kind: 'performed', performed: perform(request) }
  } catch (error) {
    if (error instanceof InvalidParameter) {
      return { kind: 'invalid', parameter: error.parameter, sentence: error.sentence, ctx: error.ctx }
    }
    if (error instanceof Failure) return { kind: 'failed', code: error.code, detail: error.detail }
    // the stack or the longest string: the caller's input asked for too much
    if (error instanceof RangeError) return { kind: 'exhausted' }
    return { kind: 'broken', reason: String(error) }
  }
}

parentPort?.on('message', (request: Request) => parentPort?.postMessage(JSON.stringify(reply(request))))
parentPort?.postMessage('ready')
