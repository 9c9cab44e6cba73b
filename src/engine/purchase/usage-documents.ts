import { parseJson, type Json } from '../base/json.ts'
import type { StoredAnswer } from '../ledger/payment-record.ts'

/** Bytes at the end of a stream in which its usage is looked for. */
export const TAIL_BYTES = 16_384

/** The end of an answer: all of a document, and the last bytes of a series of events or lines. */
export interface AnswerEnd {
  /** Media type. */
  readonly type: string
  /** Bytes of the whole answer, as it is sent before compression. */
  readonly size: number
  readonly end: Uint8Array
}

export function endOf(answer: StoredAnswer): AnswerEnd {
  const type = answer.kind === 'json' ? 'application/json' : answer.type
  const whole =
    answer.kind === 'json'
      ? Buffer.from(JSON.stringify(answer.value))
      : answer.kind === 'text'
        ? Buffer.from(answer.text)
        : answer.bytes
  return { type, size: whole.length, end: isSeries(type) ? whole.subarray(-TAIL_BYTES) : whole }
}

/** Server-sent events, or a document a line: only the last ones are looked at. */
export function isSeries(type: string): boolean {
  return formOf(type) !== 'document'
}

type Form = 'document' | 'events' | 'lines'

function formOf(type: string): Form {
  const bare = type.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (bare === 'text/event-stream') return 'events'
  return /^application\/(?:x-)?(?:ndjson|jsonl|json-lines|jsonlines)$/.test(bare) ? 'lines' : 'document'
}

/** The JSON documents at the end of an answer, the last one first. What is no JSON, such as `[DONE]`, is left out. */
export function documentsOf({ type, size, end }: AnswerEnd): readonly Json[] {
  const form = formOf(type)
  const text = new TextDecoder().decode(end).replaceAll(/\r\n?/g, '\n')
  const texts = form === 'document' ? [text] : text.split(form === 'lines' ? '\n' : EVENT_END)
  // The first one may be cut.
  const whole = form === 'document' || size === end.length ? texts : texts.slice(1)
  return whole
    .map((each) => parseJson(form === 'events' ? dataOf(each) : each))
    .filter((value) => value !== undefined)
    .toReversed()
}

/** WHATWG HTML §9.2: an empty line ends an event. */
const EVENT_END = '\n\n'

function dataOf(event: string): string {
  return event
    .split('\n')
    .flatMap((line) => (line.startsWith('data:') ? [line.slice('data:'.length)] : []))
    .join('\n')
}
