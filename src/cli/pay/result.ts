import { formatPrice, isJsonObject, type Json } from '../../engine/internal.ts'
import type { Call } from '../command.ts'
import type { Offer } from './protocol.ts'

/** How a call ended, and what it has cost. */
export interface Bill {
  readonly exit: number
  readonly status: number
  readonly charged: 'no' | 'yes' | 'unknown'
  readonly offer?: Offer
  readonly transaction?: string | undefined
  /** Name of the payment at the seller’s. */
  readonly payment?: string | undefined
  readonly body: Json
  readonly note?: string
}

/** Prints each step as it happens, for people; with --json only the result is printed. */
export class Steps {
  readonly #call: Call
  readonly #now: () => number
  readonly #began: number

  constructor(call: Call, now: () => number) {
    this.#call = call
    this.#now = now
    this.#began = now()
  }

  tell(line: string): void {
    if (this.#call.flags.given('json')) return
    this.#call.terminal.err(`${String(this.#now() - this.#began).padStart(6)} ms  ${line}`)
  }

  finish({ status, charged, offer, transaction, payment, body, note }: Bill): void {
    const { flags, terminal } = this.#call
    if (note !== undefined) this.tell(note)
    if (flags.given('json')) {
      const bill = {
        status,
        charged,
        protocol: offer?.protocol ?? null,
        network: offer?.network ?? null,
        amount: offer === undefined ? null : formatPrice(offer.amount),
        transaction: transaction ?? null,
        payment: payment ?? null,
        body,
      }
      terminal.out(JSON.stringify(bill))
      return
    }
    this.tell(`${status === 0 ? 'no answer' : status}, charged: ${charged}`)
    terminal.out(typeof body === 'string' ? body : JSON.stringify(briefly(body), null, 2))
  }
}

/** Only the parts of a problem that help the reader: its offers were printed before. */
function briefly(body: Json): Json {
  if (!isJsonObject(body) || body['title'] === undefined) return body
  const told = ['title', 'detail', 'hint', 'code', 'charged', 'would_fail'].flatMap(
    (key): [string, Json][] => {
      const value = body[key]
      return value === undefined ? [] : [[key, value]]
    },
  )
  return Object.fromEntries(told)
}
