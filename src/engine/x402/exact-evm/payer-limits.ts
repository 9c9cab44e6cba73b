import type { Address } from '../../base/address.ts'
import type { Clock } from '../../base/poll.ts'
import type { Refusal } from '../../base/errors.ts'
import { Holding } from '../../payment/payer-balance.ts'
import type { PaymentsUnderWay, Standing } from '../../chains/evm/gas-shares.ts'
import { NODE_UNREACHABLE } from './node-unreachable.ts'

/**
 * Transactions of one payer that may be in no block yet: one until the first has settled, then one for each that has
 * settled, and these more; `MOST` in all.
 */
const MORE_FOR_KEY = 8
const MORE_FOR_CONTRACT = 1
const MOST = 64
/** How long a payment waits before the work while earlier ones of its payer are settled. */
const PATIENCE_MS = 5_000
const PAUSE_MS = 200
/** Number of payers whose settled payments are counted. */
const PAYERS = 10_000

/** One payment, as far as its payer’s limits go. */
export interface Exposure<Payer extends string = Address> {
  readonly payer: Payer
  /** Distinguishes it from others of its payer. */
  readonly nonce: string
  /** Atomic units. */
  readonly value: bigint
  readonly signedBy: 'key' | 'contract'
}

/** Reads a payer’s balance of the token; undefined when the node does not say. */
type BalanceReader<Payer> = (payer: Payer) => Promise<bigint | undefined>

/**
 * Keeps what one payer has in flight within the balance that was read, and within a number that grows with its settled
 * payments: each payment is simulated as if it were the only one, so a wallet with the money for one call would pass
 * two hundred times, and all but one transaction would revert on our gas. For this process; several with one ledger
 * hold one such limit each.
 */
export class PayerLimits<Payer extends string = Address> {
  readonly #read: BalanceReader<Payer>
  readonly #clock: Clock
  readonly #payers = new Map<Payer, KnownPayer>()

  constructor(read: BalanceReader<Payer>, clock: Clock) {
    this.#read = read
    this.#clock = clock
  }

  /** Called before the work: holds the amount until `release`. A refusal holds nothing. */
  async reserve({ payer, nonce, value }: Exposure<Payer>): Promise<Refusal | undefined> {
    const known = this.#payer(payer)
    const patience = this.#clock.now() + PATIENCE_MS
    for (;;) {
      const held = await known.reserved.hold(nonce, value)
      if (held === 'held') return undefined
      if (held === 'unknown') return NODE_UNREACHABLE
      // Payments that are being settled may be counted twice: in the balance, and as amounts in flight.
      if (known.sent.size === 0 || this.#clock.now() >= patience) return SHORT
      await this.#clock.sleep(PAUSE_MS)
    }
  }

  release({ payer, nonce }: Pick<Exposure<Payer>, 'payer' | 'nonce'>): void {
    const known = this.#payers.get(payer)
    known?.reserved.drop(nonce)
    if (known !== undefined) this.#forget(payer, known)
  }

  /** Settles a payment when its payer's other pending amounts leave room for it. `isLate` ends the wait. */
  async whileSettling<T>(
    { payer, nonce, value, signedBy }: Exposure<Payer>,
    settle: () => Promise<T>,
    isLate: () => boolean,
  ): Promise<T | 'late'> {
    const known = this.#payer(payer)
    const more = signedBy === 'key' ? MORE_FOR_KEY : MORE_FOR_CONTRACT
    const admitted = known.turn.then(async () => {
      for (;;) {
        if (isLate()) return false
        const fits = known.sent.size < (known.settled === 0 ? 1 : Math.min(MOST, more + known.settled))
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

  /** Counts a settled payment; a reverted transaction resets the payer. */
  note({ payer }: Pick<Exposure<Payer>, 'payer'>, outcome: 'settled' | 'reverted'): void {
    const known = this.#payer(payer)
    known.settled = outcome === 'settled' ? known.settled + 1 : 0
  }

  /** `new`: nothing has settled since the start of this process, or since the last revert. */
  standing({ payer, signedBy }: Pick<Exposure<Payer>, 'payer' | 'signedBy'>): Standing {
    if (signedBy === 'contract') return 'code'
    return (this.#payers.get(payer)?.settled ?? 0) > 0 ? 'known' : 'new'
  }

  paymentsUnderWay({ payer }: Pick<Exposure<Payer>, 'payer'>): PaymentsUnderWay {
    return (this.#payers.get(payer)?.settling ?? 0) > 1 ? 'several' : 'one'
  }

  #payer(payer: Payer): KnownPayer {
    const known = this.#payers.get(payer)
    if (known !== undefined) return known
    const holding = (): Holding => new Holding(() => this.#read(payer), this.#clock.now)
    const fresh = { reserved: holding(), sent: holding(), settled: 0, settling: 0, turn: Promise.resolve() }
    this.#payers.set(payer, fresh)
    return fresh
  }

  /** The number of settled payments of a payer is kept while there is room. */
  #forget(payer: Payer, { reserved, settling, settled }: KnownPayer): void {
    if (reserved.size + settling > 0) return
    if (settled === 0 || this.#payers.size > PAYERS) this.#payers.delete(payer)
  }
}

interface KnownPayer {
  readonly reserved: Holding
  readonly sent: Holding
  settled: number
  /** Payments that are being settled, or wait for their turn. */
  settling: number
  /** Ends when the payment before has been admitted. */
  turn: Promise<unknown>
}

const SHORT: Refusal = {
  code: 'invalid_exact_evm_insufficient_balance',
  detail: 'the payer’s balance does not cover this payment and those of the same payer that are under way',
}
