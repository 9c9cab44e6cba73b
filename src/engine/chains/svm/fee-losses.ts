import type { Refusal } from '../../base/errors.ts'
import type { SvmNetwork } from '../../base/networks.ts'
import type { Ledger } from '../../ledger/ledger.ts'

/** A payer with so many failed transactions within the time is refused until the first of them is that old. */
const MOST_FAILED = 2
const HOUR_MS = 3_600_000
/** Lamports that failed transactions may cost in an hour, in all processes of a ledger: 0.01 SOL. */
const MOST_LOST = 10_000_000n
const LAMPORTS_OF_A_COIN = 9

interface FeeLossSettings {
  readonly network: SvmNetwork
  readonly ledger: Ledger
  readonly now: () => number
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** A transaction that a block contains, and that has failed there. */
export interface FailedTransaction {
  readonly payer: string
  readonly signature: string
  /** Lamports. */
  readonly fee: bigint
}

/**
 * What failed transactions have cost on one network, over all processes of the ledger: a payer may move its money away
 * after the simulation. They are counted by payer, and altogether for each hour, as the gas of reverted ones is.
 */
export class FeeLosses {
  readonly #settings: FeeLossSettings
  #failed = 0

  constructor(settings: FeeLossSettings) {
    this.#settings = settings
  }

  async add({ payer, signature, fee }: FailedTransaction): Promise<void> {
    const { ledger, network, now, report } = this.#settings
    this.#failed += 1
    const fact = `${now()} ${fee} ${signature}`
    const until = now() + HOUR_MS
    await Promise.all(
      [['all'], ['payer', payer]].map((name) => ledger.addExpiring(this.#nameOf(...name), fact, until)),
    )
    const lost = sumOf(await this.#read('all'))
    report(
      `x402: ${network.title} (${network.id}): transaction ${signature} of payer ${payer} failed and cost ${formatSol(fee)}; ${formatSol(lost)} of at most ${formatSol(MOST_LOST)} ${network.coin} were lost in the last hour`,
    )
  }

  /** Transactions of this process that have failed since its start. */
  get failed(): number {
    return this.#failed
  }

  /** Lamports that were lost in the last hour, over all processes, and whether nothing is sent because of them. */
  async lastHour(): Promise<{ readonly lost: bigint; readonly isClosed: boolean }> {
    const lost = sumOf(await this.#read('all'))
    return { lost, isClosed: lost >= MOST_LOST }
  }

  /** Whether nothing is sent for this payer now. */
  async refuse(payer: string): Promise<Refusal | undefined> {
    const [own, all] = await Promise.all([this.#read('payer', payer), this.#read('all')])
    if (sumOf(all) >= MOST_LOST) {
      const detail = 'too many transactions have failed on this network lately; nothing was charged'
      return { code: 'chain_unavailable', detail, retryAfter: this.#secondsUntilOver(all[0]) }
    }
    if (own.length < MOST_FAILED) return undefined
    const detail = 'transactions for this payer have failed on the chain; nothing was charged'
    return { code: 'payer_suspended', detail, retryAfter: this.#secondsUntilOver(own.at(-MOST_FAILED)) }
  }

  /** At most an hour, although the clock of the process that has recorded the loss may be ahead of this one. */
  #secondsUntilOver(loss: Loss | undefined): number {
    const now = this.#settings.now()
    return Math.max(1, Math.ceil((Math.min(loss?.at ?? 0, now) + HOUR_MS - now) / 1_000))
  }

  /** Oldest first. */
  async #read(...name: readonly string[]): Promise<readonly Loss[]> {
    const { ledger, now } = this.#settings
    const facts = await ledger.listExpiring(this.#nameOf(...name), now())
    return facts
      .map((fact) => {
        const [at = '0', fee = '0'] = fact.split(' ')
        return { at: Number(at), fee: BigInt(fee) }
      })
      .toSorted((a, b) => a.at - b.at)
  }

  #nameOf(...parts: readonly string[]): string {
    return ['failed', this.#settings.network.id, ...parts].join(':')
  }
}

interface Loss {
  readonly at: number
  /** Lamports. */
  readonly fee: bigint
}

function sumOf(losses: readonly Loss[]): bigint {
  return losses.reduce((sum, { fee }) => sum + fee, 0n)
}

/** Lamports as SOL. */
export function formatSol(lamports: bigint): string {
  const digits = lamports.toString().padStart(LAMPORTS_OF_A_COIN + 1, '0')
  const [whole, rest] = [digits.slice(0, -LAMPORTS_OF_A_COIN), digits.slice(-LAMPORTS_OF_A_COIN)]
  return `${whole}.${rest}`.replace(/\.?0+$/, '')
}
