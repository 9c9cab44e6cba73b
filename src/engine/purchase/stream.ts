import { PassThrough, type Writable } from 'node:stream'
import { Failure, LedgerError } from '../base/errors.ts'
import { LeaseLostError } from '../ledger/lease.ts'
import type { AnswerHead, StoredAnswer } from '../ledger/payment-record.ts'
import type { LeasedPurchase, OpenStream, StreamedAnswer } from './request.ts'
import { within } from '../base/time-limit.ts'
import { receiptEvent } from './receipt-event.ts'

/** Longest duration of a stream, even while it sends data. */
const LONGEST_MS = 900_000

export interface StreamLimits {
  /** Bytes. */
  readonly maxSize: number
  /** Milliseconds to wait for each piece. */
  readonly patience: number
  /** When it is cut off at the latest, in milliseconds since the epoch. */
  readonly end: number
  readonly now: () => number
}

/** Nothing is read from `source` before the first piece is asked for. `controller` ends the work behind it. */
export function openStream(
  head: AnswerHead,
  source: AsyncIterable<string | Uint8Array>,
  { maxSize, patience, end, now }: StreamLimits,
  controller: AbortController,
): OpenStream {
  const pieces = source[Symbol.asyncIterator]()
  const { signal } = controller
  const close = (): void => {
    if (signal.aborted) return
    controller.abort(new Failure('source_error', 'the stream was broken off'))
    pieces.return?.().catch(() => undefined)
  }
  const chunks = async function* (): AsyncGenerator<Uint8Array, void> {
    let [size, left] = [0, LONGEST_MS]
    try {
      for (;;) {
        const asked = now()
        const next = await within(Math.min(patience, left, end - asked), pieces.next(), signal)
        // Time that the buyer takes does not count: otherwise a buyer could break a stream off by reading slowly.
        left -= now() - asked
        if (next.done === true) return
        const chunk = typeof next.value === 'string' ? Buffer.from(next.value) : next.value
        if (!(chunk instanceof Uint8Array)) throw new TypeError('a stream consists of texts and bytes')
        size += chunk.length
        if (size > maxSize)
          throw new Failure('answer_too_large', `the stream is larger than ${maxSize / 1_000_000} MB`)
        if (chunk.length > 0) yield chunk
      }
    } finally {
      close()
    }
  }
  return { kind: 'stream', ...head, chunks: chunks(), close }
}

/** Reads a stream to its end, for endpoints that send an answer in one piece. */
export async function collect(
  { status, type, headers, chunks, close }: OpenStream,
  ms: number,
): Promise<StoredAnswer> {
  const reading = async (): Promise<Uint8Array> => {
    const read: Uint8Array[] = []
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) read.push(next.value)
    return Buffer.concat(read)
  }
  try {
    return { kind: 'bytes', status, type, headers, bytes: await within(ms, reading()) }
  } finally {
    close()
  }
}

/**
 * Passes a stream of a settled payment on to the buyer while it comes, and into the record. A buyer who reads slowly slows
 * it down; for one who has left it is recorded to its end. The body ends after the record is complete. When it breaks off,
 * the body does, and `leave` decides what becomes of the payment.
 */
export function recordStream(
  purchase: LeasedPurchase,
  { status, type, headers, chunks, close }: OpenStream,
  leave: (fault: unknown) => Promise<void>,
): StreamedAnswer {
  const { deps, lease } = purchase
  const body = new PassThrough()
  // The response handles it, if there still is one.
  body.on('error', () => undefined)
  deps.stopping.addEventListener('abort', close)
  const record = async (): Promise<void> => {
    try {
      await lease
        .storeStream({ status, type, headers }, passOn(chunks, body, deps.now))
        .catch(async (fault: unknown) => {
          if (!(fault instanceof LedgerError || fault instanceof LeaseLostError)) throw fault
          // The buyer has paid and is connected: the stream is sent even if it cannot be recorded.
          deps.report(fault)
          for await (const _ of passOn(chunks, body, deps.now));
        })
      body.end(receiptEvent(purchase, purchase.lease.record))
    } catch (fault) {
      body.destroy(fault instanceof Error ? fault : new Error(String(fault)))
      await leave(fault)
    } finally {
      close()
      deps.stopping.removeEventListener('abort', close)
      lease.stopRenewal()
    }
  }
  return { kind: 'stream', status, type, headers, body, recorded: record().catch(deps.report) }
}

/** A buyer who reads nothing for this long is cut off, before the source times out: the record continues. */
const STALLED_MS = 10_000
/** How long a buyer may keep the source waiting in all. */
export const SLOWEST_MS = 300_000

/** Gives each piece to the buyer first, and waits until a connected one has room for the next. */
export async function* passOn(
  chunks: AsyncIterator<Uint8Array, void>,
  buyer: Writable,
  now: () => number,
  slowest = SLOWEST_MS,
): AsyncGenerator<Uint8Array, void> {
  let left = slowest
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
    const isFull = !buyer.destroyed && !buyer.write(next.value)
    yield next.value
    if (!isFull || buyer.destroyed || !buyer.writableNeedDrain) continue
    const began = now()
    await drained(buyer, Math.min(STALLED_MS, left))
    left -= now() - began
  }
}

/** Resolves when there is room or the buyer has gone; cuts off a buyer who makes none for `ms` milliseconds. */
function drained(buyer: Writable, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => buyer.destroy(), ms)
    const done = (): void => {
      clearTimeout(timer)
      buyer.off('drain', done).off('close', done)
      resolve()
    }
    buyer.on('drain', done).on('close', done)
  })
}
