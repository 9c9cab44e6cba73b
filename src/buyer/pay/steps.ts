import { isUtf8 } from 'node:buffer'
import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { formatPrice, toMicros } from '../../engine/base/money.ts'
import type { BuyerCall } from '../buyer-command.ts'
import { saveAnswer } from './answer-file.ts'
import type { Bill } from './bill.ts'
import { printNumbersAsWritten } from './numbers-as-written.ts'

/** Prints each step as it happens, for people; with --json only the result is printed. */
export class Steps {
  readonly #call: BuyerCall
  readonly #now: () => number
  readonly #began: number
  #printed = false

  constructor(call: BuyerCall, now: () => number) {
    this.#call = call
    this.#now = now
    this.#began = now()
  }

  tell(line: string): void {
    if (this.#call.flags.given('json')) return
    this.#call.terminal.err(`${String(this.#now() - this.#began).padStart(6)} ms  ${line}`)
  }

  /** A line of an answer that is not over. */
  print(line: string): void {
    const { flags, terminal } = this.#call
    if (flags.given('json') || flags.text('output') !== undefined) return
    this.#printed = true
    terminal.out(line)
  }

  /** Shows the result; an answer that cannot be saved is printed, as base64 when it is no text. */
  finish(bill: Bill): 'shown' | 'unsaved' {
    const { status, charged, offer, transaction, payment, receipts, usage, body, content, note } = bill
    const { flags, terminal } = this.#call
    if (note !== undefined) this.tell(note)
    const file = flags.text('output')
    const fault = file !== undefined && content !== undefined ? saveAnswer(file, content.bytes) : undefined
    const isSaved = file !== undefined && fault === undefined
    const result = fault === undefined ? 'shown' : 'unsaved'
    const isCoded = fault !== undefined && content !== undefined && isBinary(content.bytes)
    const shown = isCoded ? content.bytes.toString('base64') : body
    if (fault !== undefined)
      terminal.err(`${file} cannot be written (${fault}): the answer follows${isCoded ? ' as base64' : ''}`)
    if (flags.given('json')) {
      const printed = {
        status,
        charged,
        protocol: offer?.protocol ?? null,
        network: offer?.network ?? null,
        ...amountsOf(bill),
        transaction: transaction ?? null,
        payment: payment ?? null,
        ...(usage === undefined ? {} : { usage }),
        ...(receipts === undefined ? {} : { receipts }),
        body: shown,
      }
      terminal.out(printNumbersAsWritten(JSON.stringify(printed)))
      return result
    }
    this.tell(`${status === 0 ? 'no answer' : status}, charged: ${charged}`)
    if (content !== undefined && !isCoded && (isSaved || isBinary(content.bytes))) {
      const { bytes, mediaType } = content
      const place = file === undefined ? 'save them with --output FILE' : `in ${file}`
      this.tell(`${bytes.length} bytes of ${mediaType}: ${place}`)
      return result
    }
    if (this.#printed) return result
    terminal.out(
      typeof shown === 'string' ? shown : printNumbersAsWritten(JSON.stringify(briefly(shown), null, 2)),
    )
    return result
  }
}

/** The price; or what was charged, `null` while that is not known, and what was authorized for it. */
function amountsOf({ offer, charged, amount = toMicros(0n) }: Bill): JsonObject {
  if (offer === undefined) return { amount: null }
  if (offer.amountIs === 'price') return { amount: formatPrice(offer.amount) }
  return {
    amount: charged === 'unknown' ? null : formatPrice(amount),
    authorized: formatPrice(offer.amount),
  }
}

function isBinary(bytes: Buffer): boolean {
  return bytes.includes(0) || !isUtf8(bytes)
}

/** Only the parts of a problem that help the reader: its offers were printed before. */
function briefly(body: Json): Json {
  if (!isJsonObject(body) || body['title'] === undefined) return body
  const members = ['title', 'detail', 'hint', 'code', 'charged', 'would_fail'].flatMap(
    (key): [string, Json][] => {
      const value = body[key]
      return value === undefined ? [] : [[key, value]]
    },
  )
  return Object.fromEntries(members)
}
