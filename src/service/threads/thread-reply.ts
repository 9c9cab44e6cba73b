import { Failure, InvalidParameter, type ErrorCode, type JsonObject } from 'ratecard/handler'

/** What comes back from a thread, as JSON text: a plain copy would lose a member called `__proto__`. */
export type Reply<Result> =
  | { readonly kind: 'performed'; readonly result: Result }
  | {
      readonly kind: 'invalid'
      readonly parameter: string
      readonly sentence: string
      readonly ctx: JsonObject
    }
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly detail: string }
  /** The stack or the longest text was not enough: the input asked for too much. */
  | { readonly kind: 'exhausted' }
  | { readonly kind: 'broken'; readonly reason: string }

/** Does a task and puts into words what it throws. */
export async function replyTo<Task, Result>(
  task: Task,
  perform: (task: Task) => Result | Promise<Result>,
): Promise<Reply<Result>> {
  try {
    return { kind: 'performed', result: await perform(task) }
  } catch (error) {
    if (error instanceof InvalidParameter) {
      return { kind: 'invalid', parameter: error.parameter, sentence: error.sentence, ctx: error.ctx }
    }
    if (error instanceof Failure) return { kind: 'failed', code: error.code, detail: error.detail }
    if (error instanceof RangeError) return { kind: 'exhausted' }
    return { kind: 'broken', reason: String(error) }
  }
}
