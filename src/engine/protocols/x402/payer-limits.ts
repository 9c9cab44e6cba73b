import type { Address } from '../../address.ts'
import type { Refusal } from '../protocol.ts'
import type { Clock } from '../../chains/evm/rpc.ts'

/** Transactions of one payer that may be in no block yet: so many, and one more for each that has settled. */
const FIRST_KEY = 8
const FIRST_CONTRACT = 1
const MOST = 64
/** How long a payment waits, before the work, for earlier ones of its payer that are being settled. */
const PATIENCE_MS = 5_000
const PAUSE_MS = 200
/** Payers whose settled payments are remembered. */
const PAYERS = 10_000
/** How long a balance that was read is reckoned with. */
const FRESH_MS = 2_000
const YOUNG_MS = 100

/** One payment, as far as its payer’s limits go. */
export interface Exposure {
  readonly payer: Address
  /** Tells it from others of its payer. */
  readonly nonce: string
  /** Atomic units. */
  readonly value: bigint
  readonly signedBy: 'key' | 'contract'
}

/** Reads a payer’s balance of the token; undefined when the node does not say. */
export type BalanceReader = (payer: Address) => Promise<bigint | undefined>

/**
 * Keeps what one payer has in flight within what we have seen it hold, and within what it has earned: each payment is
 * simulated as if it were the only one, so a wallet with the money for one call would pass two hundred times, and all
 * but one transaction would revert on our gas. For this process; several with one ledger hold one such limit each.
 */
export class PayerLimits {
  readonly #read: BalanceReader
  readonly #clock: Clock
  readonly #payers = new Map<Address, Payer>()

  constructor(read: BalanceReader, clock: Clock) {
    this.#read = read
    this.#clock = clock
  }

  /** Before the work: holds the amount until `release`. A refusal holds nothing. */
  async reserve({ payer, nonce, value }: Exposure): Promise<Refusal | undefined> {
    const known = this.#payer(payer)
    const patience = this.#clock.now() + PATIENCE_MS
    for (;;) {
      const held = await known.reserved.hold(nonce, value)
      if (held === 'held') return undefined
      if (held === 'unknown') return UNREACHABLE
      // Those that are being settled may be counted twice: in the balance, and as being in flight.
      if (known.sent.size === 0 || this.#clock.now() >= patience) return SHORT
      await this.#clock.sleep(PAUSE_MS)
    }
  }

  release({ payer, nonce }: Pick<Exposure, 'payer' | 'nonce'>): void {
    const known = this.#payers.get(payer)
    known?.reserved.drop(nonce)
    if (known !== undefined) this.#forget(payer, known)
  }

  /**
   * Runs the settlement of a payment in its turn: when the amounts of its payer that are being settled leave room for
   * it. `isLate` ends the waiting.
   */
  async whileSettling<T>(
    { payer, nonce, value, signedBy }: Exposure,
    settle: () => Promise<T>,
    isLate: () => boolean,
  ): Promise<T | 'late'> {
    const known = this.#payer(payer)
    const room = signedBy === 'key' ? FIRST_KEY : FIRST_CONTRACT
    const admitted = known.turn.then(async () => {
      for (;;) {
        if (isLate()) return false
        const fits = known.sent.size < Math.min(MOST, room + known.settled)
        if (fits && (await known.sent.hold(nonce, value)) === 'held') return true
        await this.#clock.sleep(PAUSE_MS)
      }
    })
    known.turn = admitted.catch(() => undefined)
    known.settling += 1
    try {
      return (await admitted) ? await settle() : 'late'
    } finally {
      known.settling -= 1
      known.sent.drop(nonce)
      this.#forget(payer, known)
    }
  }

  /** A payment has settled; a payer whose transaction reverts begins anew. */
  note({ payer }: Pick<Exposure, 'payer'>, outcome: 'settled' | 'reverted'): void {
    const known = this.#payer(payer)
    known.settled = outcome === 'settled' ? known.settled + 1 : 0
  }

  #payer(payer: Address): Payer {
    const known = this.#payers.get(payer)
    if (known !== undefined) return known
    const holding = (): Holding => new Holding(() => this.#read(payer), this.#clock.now)
    const fresh = { reserved: holding(), sent: holding(), settled: 0, settling: 0, turn: Promise.resolve() }
    this.#payers.set(payer, fresh)
    return fresh
  }

  /** What a payer has earned is kept while there is room. */
  #forget(payer: Address, { reserved, settling, settled }: Payer): void {
    if (reserved.size + settling > 0) return
    if (settled === 0 || this.#payers.size > PAYERS) this.#payers.delete(payer)
  }
}

interface Payer {
  readonly reserved: Holding
  readonly sent: Holding
  settled: number
  /** Payments that are being settled, or wait for their turn. */
  settling: number
  /** Ends when the payment before has been admitted. */
  turn: Promise<unknown>
}

/** Amounts held against one balance. The first needs no look at it: its simulation shows that it is there. */
class Holding {
  readonly #read: () => Promise<bigint | undefined>
  readonly #now: () => number
  readonly #amounts = new Map<string, bigint>()
  #sum = 0n
  /** What is left of the balance that was read is reckoned without what has left since: it may have been spent. */
  #seen: { balance: bigint; readonly at: number } | undefined
  #turn: Promise<unknown> = Promise.resolve()

  constructor(read: () => Promise<bigint | undefined>, now: () => number) {
    this.#read = read
    this.#now = now
  }

  get size(): number {
    return this.#amounts.size
  }

  hold(name: string, value: bigint): Promise<'held' | 'short' | 'unknown'> {
    const held = this.#turn.then(() => this.#hold(name, value))
    this.#turn = held.catch(() => undefined)
    return held
  }

  async #hold(name: string, value: bigint): Promise<'held' | 'short' | 'unknown'> {
    if (this.#amounts.has(name)) return 'held'
    if (this.#amounts.size > 0) {
      if (!this.#fits(value, FRESH_MS) && !(await this.#look(value)))
        return this.#seen === undefined ? 'unknown' : 'short'
    }
    this.#amounts.set(name, value)
    this.#sum += value
    return 'held'
  }

  #fits(value: bigint, fresh: number): boolean {
    if (this.#seen === undefined || this.#now() - this.#seen.at >= fresh) return false
    return this.#sum + value <= this.#seen.balance
  }

  async #look(value: bigint): Promise<boolean> {
    if (this.#seen === undefined || this.#now() - this.#seen.at >= YOUNG_MS) {
      const at = this.#now()
      const balance = await this.#read()
      this.#seen = balance === undefined ? undefined : { balance, at }
    }
    return this.#fits(value, FRESH_MS)
  }

  drop(name: string): void {
    const value = this.#amounts.get(name)
    if (value === undefined) return
    this.#amounts.delete(name)
    this.#sum -= value
    if (this.#seen !== undefined) this.#seen.balance -= value
  }
}

const SHORT: Refusal = {
  code: 'invalid_exact_evm_insufficient_balance',
  detail: 'the payer’s balance does not cover this payment and those of the same payer that are under way',
}
const UNREACHABLE: Refusal = {
  code: 'chain_unavailable',
  detail: 'the payment network cannot be reached now',
}
