import type { Json } from '../engine/base/json.ts'
import { parseNumbersAsWritten } from './pay/numbers-as-written.ts'
import type { Reply } from './protocols/paying-protocol.ts'
import { withReceiptEvent } from './receipt-event.ts'

/** What a seller has answered. */
export interface Answer {
  /** Status over HTTP, also of a tool's result. */
  readonly status: number
  readonly reply: Reply
  readonly body: Json
}

/** RFC 9110 §15.3: what was asked for. */
export function isAnswered(status: number): boolean {
  return status >= 200 && status < 300
}

/** An answer of HTTP, read to its end. */
export interface Page extends Answer {
  readonly reply: Extract<Reply, { readonly kind: 'http' }>
  readonly bytes: Buffer
  /** The bytes as JSON, or else as text. */
  readonly body: Json
}

/** What is sent, without the payment. */
export interface HttpCall {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer> | undefined
}

/** Milliseconds to wait for the headers of an answer, and for each piece of it. */
const PATIENCE_MS = 60_000

/** Media types whose lines are printed before the answer ends. */
const STREAMS = /^(?:text\/event-stream|application\/(?:x-ndjson|jsonl))\b/

/** Sends one request; undefined without a complete answer. Prints the lines of a stream as they arrive. */
export async function request(
  call: HttpCall,
  payment: Readonly<Record<string, string>>,
  print?: (line: string) => void,
): Promise<Page | undefined> {
  const { url, method, body = null } = call
  const headers = { accept: 'application/json, */*;q=0.9', ...call.headers, ...payment }
  const silence = new AbortController()
  const timer = setTimeout(() => silence.abort(), PATIENCE_MS)
  try {
    // A redirect would send a signed payment to another host.
    const init = { method, headers, body, redirect: 'manual', signal: silence.signal } as const
    const response = await fetch(url, init)
    const { status, headers: said } = response
    const isStream = isAnswered(status) && STREAMS.test(said.get('content-type') ?? '')
    const feed = print !== undefined && isStream ? linePrinter(print) : undefined
    const chunks: Uint8Array[] = []
    for await (const chunk of response.body ?? []) {
      timer.refresh()
      chunks.push(chunk)
      feed?.(chunk)
    }
    feed?.()
    const bytes = Buffer.concat(chunks)
    const text = bytes.toString()
    return {
      status,
      reply: { kind: 'http', headers: withReceiptEvent(said, text) },
      bytes,
      body: readJson(text),
    }
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}

/** Takes the bytes of a text as they arrive; a call without bytes ends the text. */
function linePrinter(print: (line: string) => void): (chunk?: Uint8Array) => void {
  const decoder = new TextDecoder()
  let rest = ''
  return (chunk) => {
    const lines = (rest + decoder.decode(chunk, { stream: chunk !== undefined })).split('\n')
    rest = lines.pop() ?? ''
    if (chunk === undefined && rest !== '') lines.push(rest)
    for (const line of lines) print(line)
  }
}

function readJson(text: string): Json {
  try {
    return parseNumbersAsWritten(text)
  } catch {
    return text
  }
}
