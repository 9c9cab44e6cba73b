import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { digestJson, isJsonObject, type JsonObject } from '../../engine/base/json.ts'
import { type Micros, toMicros } from '../../engine/base/money.ts'
import type { BuyerRuntime } from '../buyer-runtime.ts'
import type { Offer, ProtocolName } from '../protocols/paying-protocol.ts'
import { lockFile, readState, writeState } from '../state-file.ts'

/** A payment that is signed and may have been sent: it counts as spent, and is the only one its call is paid with. */
export interface OpenPayment {
  readonly protocol: ProtocolName
  /** CAIP-2. */
  readonly network: string
  /** Micro-dollars. */
  readonly amount: Micros
  readonly amountIs: Offer['amountIs']
  /** The payment in the `_meta` of the call. */
  readonly meta: JsonObject
}

/** What one wallet has spent at one origin, as the file has it. */
interface Spending {
  readonly since: string
  readonly spent: Micros
  /** Unresolved payments by call. */
  readonly open: ReadonlyMap<string, OpenPayment>
}

export type Reservation =
  | { readonly kind: 'reserved'; readonly payment: OpenPayment }
  /** The same call is being paid, perhaps by another process: send this payment again. */
  | { readonly kind: 'open'; readonly payment: OpenPayment }
  | { readonly kind: 'over'; readonly used: Micros; readonly since: string }

interface BudgetOptions {
  readonly file: string
  readonly max: Micros
  readonly runtime: BuyerRuntime
}

/** Longer than any process holds the lock. */
const PATIENCE_MS = 10_000

/**
 * What a wallet spends at an origin, in a file that several processes share. A payment is in it before it is sent, and
 * counts until it is known that nothing was charged: the sum never exceeds the budget, whichever process is killed. All
 * methods fail when the file cannot be locked, read or written.
 */
export class Budget {
  readonly max: Micros
  readonly #file: string
  readonly #runtime: BuyerRuntime

  constructor({ file, max, runtime }: BudgetOptions) {
    this.max = max
    this.#file = file
    this.#runtime = runtime
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  }

  /** The payment of this call whose outcome is unknown. */
  find(call: string): OpenPayment | undefined {
    return this.#read().open.get(call)
  }

  used(): { readonly used: Micros; readonly since: string } {
    const { since, ...spending } = this.#read()
    return { used: usedOf(spending), since }
  }

  /** What is left once the payment of a call, if it is open, counts with what it has cost. */
  leftAfter(call: string, charged: Micros): Micros {
    const spending = this.#read()
    const open = spending.open.get(call)
    const returned = open === undefined ? 0n : open.amount - charged
    return toMicros(this.max - usedOf(spending) + returned)
  }

  /** Takes the amount of a payment from the budget, and keeps the payment, before it is sent. */
  reserve(call: string, payment: OpenPayment): Promise<Reservation> {
    return this.#change<Reservation>((spending) => {
      const known = spending.open.get(call)
      if (known !== undefined) return { result: { kind: 'open', payment: known } }
      const { since } = spending
      const used = usedOf(spending)
      if (used + payment.amount > this.max) return { result: { kind: 'over', used, since } }
      const open = new Map([...spending.open, [call, payment]])
      return { changed: { ...spending, open }, result: { kind: 'reserved', payment } }
    })
  }

  /**
   * The outcome is known, and the answer has reached the client: what was charged counts instead of what was signed, and
   * the same call buys again from now on.
   */
  close(call: string, payment: OpenPayment, charged: Micros): Promise<void> {
    return this.#change((spending) => {
      const known = spending.open.get(call)
      // Another process has closed it, and may have opened another one.
      if (known === undefined || digestJson(known.meta) !== digestJson(payment.meta))
        return { result: undefined }
      const open = new Map([...spending.open].filter(([each]) => each !== call))
      const spent = toMicros(spending.spent + charged)
      return { changed: { ...spending, open, spent }, result: undefined }
    })
  }

  async #change<T>(
    edit: (spending: Spending) => { readonly changed?: Spending; readonly result: T },
  ): Promise<T> {
    const release = await lockFile(this.#file, PATIENCE_MS, this.#runtime)
    try {
      const { changed, result } = edit(this.#read())
      if (changed !== undefined) this.#write(changed)
      return result
    } finally {
      release()
    }
  }

  #read(): Spending {
    const text = readState(this.#file)
    if (text === undefined)
      return { since: new Date(this.#runtime.now()).toISOString(), spent: toMicros(0n), open: new Map() }
    const spending = parseSpending(text)
    // An unreadable file taken as empty would allow the whole budget again.
    if (spending === undefined) throw new Error(`the record of spending in ${this.#file} cannot be read`)
    return spending
  }

  #write({ since, spent, open }: Spending): void {
    const payments = Object.fromEntries(
      [...open].map(([call, payment]) => [call, { ...payment, amount: String(payment.amount) }]),
    )
    writeState(this.#file, { since, spent: String(spent), open: payments })
  }
}

function usedOf({ spent, open }: Pick<Spending, 'spent' | 'open'>): Micros {
  return toMicros([...open.values()].reduce<bigint>((sum, { amount }) => sum + amount, spent))
}

function parseSpending(text: string): Spending | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const { since, spent, open } = isJsonObject(value) ? value : {}
    if (typeof since !== 'string' || typeof spent !== 'string' || !isJsonObject(open)) return undefined
    const payments = Object.entries(open).map(([call, each]): [string, OpenPayment] => {
      const { protocol, network, amount, amountIs: kind, meta } = isJsonObject(each) ? each : {}
      if (protocol !== 'x402' && protocol !== 'mpp') throw new Error(call)
      if (typeof network !== 'string' || typeof amount !== 'string' || !isJsonObject(meta))
        throw new Error(call)
      // Records of versions that paid prices alone do not say it.
      const amountIs = kind === 'ceiling' ? 'ceiling' : 'price'
      return [call, { protocol, network, amount: toMicros(BigInt(amount)), amountIs, meta }]
    })
    return { since, spent: toMicros(BigInt(spent)), open: new Map(payments) }
  } catch {
    return undefined
  }
}
