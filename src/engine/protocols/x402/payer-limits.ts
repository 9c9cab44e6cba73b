import type { Address } from '../../address.ts'
import { formatCoin } from '../../chains/evm/account.ts'
import type { Clock } from '../../runtime.ts'
import type { Refusal } from '../../errors.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Network } from '../../networks.ts'
import { Holding } from '../payer-balance.ts'
import { NODE_UNREACHABLE } from './token.ts'

/** Transactions of one payer that may be in no block yet: so many, and one more for each that has settled. */
const FIRST_KEY = 8
const FIRST_CONTRACT = 1
const MOST = 64
/** How long a payment waits before the work while earlier ones of its payer are settled. */
const PATIENCE_MS = 5_000
const PAUSE_MS = 200
/** Number of payers whose settled payments are counted. */
const PAYERS = 10_000

/** One payment, as far as its payer’s limits go. */
export interface Exposure {
  readonly payer: Address
  /** Distinguishes it from others of its payer. */
  readonly nonce: string
  /** Atomic units. */
  readonly value: bigint
  readonly signedBy: 'key' | 'contract'
}

/** Reads a payer’s balance of the token; undefined when the node does not say. */
type BalanceReader = (payer: Address) => Promise<bigint | undefined>

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
      if (held === 'unknown') return NODE_UNREACHABLE
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

  /** Settles a payment when its payer's other pending amounts leave room for it. `isLate` ends the wait. */
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

  /** Counts a settled payment; a reverted transaction resets the payer. */
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

const SHORT: Refusal = {
  code: 'invalid_exact_evm_insufficient_balance',
  detail: 'the payer’s balance does not cover this payment and those of the same payer that are under way',
}

/** A payer with so many reverted transactions within the time is refused until the first of them is that old. */
const MOST_REVERTS = 2
const HOUR_MS = 3_600_000
/** How old the known losses of other processes may be. */
const LOSSES_FRESH_MS = 5_000

interface GasLossSettings {
  readonly network: Network
  readonly ledger: Ledger
  readonly now: () => number
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** A transaction of ours that was mined and has moved nothing. */
interface Revert {
  /** Undefined when no payer is responsible. */
  readonly payer: Address | undefined
  readonly hash: string
  /** Tells the payments of one transaction apart. */
  readonly nonce: string
  /** Wei. */
  readonly gasCost: bigint
}

/**
 * What reverted transactions have cost on one network, over all processes of the ledger. A payer may make them happen
 * (a contract wallet decides while it is carried out, anybody may move the money away after the simulation), so they
 * are counted by payer, and altogether against a budget for each hour.
 *
 * The most an operator can lose to them on one network within an hour is L + n × g × f:
 *
 * - L: `max_gas_loss` of the network; contract wallets alone can use up half of it.
 * - n: the transactions that are in no block yet when L is used up: per process and payer at most min(64, 8 + s) for a
 *   key and min(64, 1 + s) for a contract wallet, where s counts what the payer has settled since its last revert.
 *   Other processes of the ledger hear of a loss up to 5 s late, and go on so long.
 * - g: the gas limit, 200,000 for a key and 600,000 for a contract wallet; f: `max_fee_gwei`. A rollup’s fee for its
 *   parent chain is counted in L where the node reports it, and is not limited by f.
 */
export class GasLosses {
  readonly #settings: GasLossSettings
  #spent: { readonly at: number; readonly losses: Promise<readonly Loss[]> } | undefined
  #closed = false
  #reverts = 0
  #gasLost = 0n

  constructor(settings: GasLossSettings) {
    this.#settings = settings
  }

  /** Totals of this process since its start. */
  get totals(): { readonly reverts: number; readonly gasLost: bigint; readonly isClosed: boolean } {
    return { reverts: this.#reverts, gasLost: this.#gasLost, isClosed: this.#closed }
  }

  /** Wei, within the last hour, over all processes. */
  async lastHour(): Promise<bigint> {
    const since = this.#settings.now() - HOUR_MS
    return sumOf((await this.#losses()).filter(({ at }) => at > since))
  }

  async add({ payer, hash, nonce, gasCost }: Revert, budget: bigint): Promise<void> {
    const { ledger, network, now } = this.#settings
    this.#reverts += 1
    this.#gasLost += gasCost
    const fact = `${now()} ${gasCost} ${hash} ${nonce}`
    const until = now() + HOUR_MS
    const names = payer === undefined ? [['all']] : [['all'], ['payer', payer.toLowerCase()]]
    await Promise.all(names.map((name) => ledger.addExpiring(this.#nameOf(...name), fact, until)))
    this.#spent = undefined
    const lost = sumOf(await this.#losses())
    this.#report(
      `transaction ${hash} for ${payer === undefined ? 'several payers' : `payer ${payer}`} reverted and cost ${formatCoin(gasCost)} ${network.coin}; ${formatCoin(lost)} of at most ${formatCoin(budget)} ${network.coin} were lost in the last hour`,
    )
  }

  /** Whether nothing is sent for this payer now. Contract wallets may lose half the budget, so that keys can still pay. */
  async refuse(payer: Address, signedBy: 'key' | 'contract', budget: bigint): Promise<Refusal | undefined> {
    const { ledger, now } = this.#settings
    const [own, all] = await Promise.all([
      ledger.listExpiring(this.#nameOf('payer', payer.toLowerCase()), now()).then(readLosses),
      this.#losses(),
    ])
    const spent = sumOf(all)
    this.#noteClosed(spent >= budget, budget)
    if (spent >= (signedBy === 'key' ? budget : budget / 2n)) {
      const detail = 'too many transactions have failed on this network lately; nothing was charged'
      return { code: 'chain_unavailable', detail, retryAfter: this.#secondsUntilOver(all[0]) }
    }
    if (own.length < MOST_REVERTS) return undefined
    const detail = 'transactions for this payer have failed on the chain; nothing was charged'
    return { code: 'payer_suspended', detail, retryAfter: this.#secondsUntilOver(own.at(-MOST_REVERTS)) }
  }

  #noteClosed(isClosed: boolean, budget: bigint): void {
    if (isClosed === this.#closed) return
    this.#closed = isClosed
    const { coin } = this.#settings.network
    this.#report(
      isClosed
        ? `CLOSED: reverted transactions have cost ${formatCoin(budget)} ${coin} within an hour; nothing is sold on this network until that is an hour ago. The limit is max_gas_loss in payments.x402.limits`
        : 'open again: the gas that reverted transactions cost is within its limit',
    )
  }

  /** At most an hour, although the clock of the process that has recorded the loss may be ahead of this one. */
  #secondsUntilOver(loss: Loss | undefined): number {
    const now = this.#settings.now()
    const start = Math.min(loss?.at ?? 0, now)
    return Math.max(1, Math.ceil((start + HOUR_MS - now) / 1000))
  }

  #losses(): Promise<readonly Loss[]> {
    const { ledger, now } = this.#settings
    if (this.#spent === undefined || now() - this.#spent.at >= LOSSES_FRESH_MS)
      this.#spent = { at: now(), losses: ledger.listExpiring(this.#nameOf('all'), now()).then(readLosses) }
    const spent = this.#spent
    return spent.losses.catch((fault: unknown) => {
      if (this.#spent === spent) this.#spent = undefined
      throw fault
    })
  }

  #nameOf(...parts: readonly string[]): string {
    return ['reverts', this.#settings.network.chainId, ...parts].join(':')
  }

  #report(line: string): void {
    const { network, report } = this.#settings
    report(`x402: ${network.title} (${network.id}): ${line}`)
  }
}

interface Loss {
  readonly at: number
  /** Wei. */
  readonly gasCost: bigint
}

/** Oldest first. */
function readLosses(facts: readonly string[]): readonly Loss[] {
  return facts
    .map((fact) => {
      const [at = '0', gasCost = '0'] = fact.split(' ')
      return { at: Number(at), gasCost: BigInt(gasCost) }
    })
    .toSorted((a, b) => a.at - b.at)
}

function sumOf(losses: readonly Loss[]): bigint {
  return losses.reduce((sum, { gasCost }) => sum + gasCost, 0n)
}
