import { PassThrough } from 'node:stream'
import { Failure } from '../base/errors.ts'
import { formatShort, toMicros } from '../base/money.ts'
import type { Metered } from '../catalog/price/meter.ts'
import type { Changes } from '../ledger/lease.ts'
import { receiptEvent } from './receipt-event.ts'
import type { LeasedPurchase, MeteredStream, StreamedAnswer } from './request.ts'
import type { PurchaseResult } from './result.ts'
import { noteUnpaid, suspend, type Credit } from './payer-credit.ts'
import { passOn, SLOWEST_MS } from './stream.ts'
import { isSeries, TAIL_BYTES, type AnswerEnd } from './usage-documents.ts'

/** How a stream on credit is charged. */
interface Charging {
  readonly credit: Credit
  /** What is stored with the answer. */
  readonly changes: (metered: Metered) => Changes
  readonly settle: () => Promise<PurchaseResult>
}

/** The part of the time of a payment that a slow buyer may keep the source waiting. */
const PATIENT = 4

/**
 * Passes a stream on to the buyer while it comes, and into the record; then it is charged what it has used, also when the
 * buyer has left. The body ends after the charge: one that was not paid breaks off.
 */
export function sendOnCredit(
  purchase: LeasedPurchase,
  metered: MeteredStream,
  { credit, changes, settle }: Charging,
): StreamedAnswer {
  const { deps, lease, verified } = purchase
  const { status, type, headers, chunks, close } = metered.stream
  const body = new PassThrough()
  // The response handles it, if there still is one.
  body.on('error', () => undefined)
  deps.stopping.addEventListener('abort', close)
  const slowest = Math.min(SLOWEST_MS, (verified.validBefore - deps.now()) / PATIENT)
  const work = new CountedStream(chunks, type, deps.now)
  const send = async (): Promise<void> => {
    await lease.storeStream({ status, type, headers }, passOn(work.pieces(), body, deps.now, slowest), () =>
      changes(priceOf(work, metered, deps.stopping)),
    )
    const result = await settle()
    if (result.kind === 'answered') {
      await credit.end()
      if (work.fault === undefined) body.end(receiptEvent(purchase, result.record))
      else body.destroy(asError(work.fault))
      return
    }
    // What is not known yet stays owed until its payment is over.
    if (result.kind !== 'pending') {
      await credit.end()
      await leaveUnpaid(purchase, result)
    }
    body.destroy(new Failure('settlement_failed', 'this stream was not paid'))
  }
  const record = async (): Promise<void> => {
    try {
      await send()
    } catch (fault) {
      body.destroy(asError(fault))
      if (lease.record.answer !== undefined) throw fault
      await credit.end()
      await lease.delete()
      deps.report(fault)
    } finally {
      close()
      deps.stopping.removeEventListener('abort', close)
      lease.stopRenewal()
    }
  }
  return { kind: 'stream', status, type, headers, body, recorded: record().catch(deps.report) }
}

/** A stream that this process breaks off, or of which nothing has come, is not charged. */
function priceOf(
  { end, took, fault }: CountedStream,
  metered: MeteredStream,
  stopping: AbortSignal,
): Metered {
  if (fault === undefined) return metered.price(end, took)
  if (stopping.aborted || end.size === 0) throw asError(fault)
  return metered.priceOfPart(`its stream broke off: ${asError(fault).message}`)
}

async function leaveUnpaid(
  { deps: { ledger, now, report }, lease: { record } }: LeasedPurchase,
  { kind }: PurchaseResult,
): Promise<void> {
  const { id, payer, amount, operation } = record
  const usd = formatShort(toMicros(BigInt(amount)))
  report(new Error(`${operation} was sent to ${payer} on credit, and its ${usd} USD are unpaid: ${id}`))
  await noteUnpaid(ledger, record, now())
  if (kind === 'settlementFailed') await suspend(ledger, record, now())
}

/** Counts a stream while it is read. */
class CountedStream {
  readonly #chunks: AsyncIterator<Uint8Array, void>
  readonly #type: string
  readonly #now: () => number
  #size = 0
  #end: Uint8Array = Buffer.alloc(0)
  #took = 0
  #fault: unknown

  constructor(chunks: AsyncIterator<Uint8Array, void>, type: string, now: () => number) {
    this.#chunks = chunks
    this.#type = type
    this.#now = now
  }

  get end(): AnswerEnd {
    return { type: this.#type, size: this.#size, end: this.#end }
  }

  /** Milliseconds that its source has taken: those of its buyer do not count. */
  get took(): number {
    return this.#took
  }

  /** Why it has broken off. */
  get fault(): unknown {
    return this.#fault
  }

  async *pieces(): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const next = await this.#next()
      if (next === undefined) return
      this.#size += next.length
      const kept = Buffer.concat([this.#end, next])
      this.#end = isSeries(this.#type) ? kept.subarray(-TAIL_BYTES) : kept
      yield next
    }
  }

  async #next(): Promise<Uint8Array | undefined> {
    const asked = this.#now()
    try {
      const next = await this.#chunks.next()
      return next.done === true ? undefined : next.value
    } catch (fault) {
      this.#fault = fault ?? new Error('the stream has no more')
      return undefined
    } finally {
      this.#took += this.#now() - asked
    }
  }
}

function asError(fault: unknown): Error {
  return fault instanceof Error ? fault : new Error(String(fault))
}
