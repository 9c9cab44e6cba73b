import type { Address } from '../../address.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Network } from '../../networks.ts'
import type { Refusal } from '../protocol.ts'
import { formatCoin } from '../../chains/evm/fees.ts'

/** A payer with so many reverted transactions within the time is refused until the first of them is that old. */
const MOST_REVERTS = 2
const HOUR_MS = 3_600_000
/** How long what other processes have lost is known late. */
const FRESH_MS = 5_000

export interface GasLossSettings {
  readonly network: Network
  readonly ledger: Ledger
  readonly now: () => number
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** A transaction of ours that was mined and has moved nothing. */
export interface Revert {
  readonly payer: Address
  readonly hash: string
  /** Wei. */
  readonly gasCost: bigint
}

/**
 * What reverted transactions have cost on one network, over all processes of the ledger. A payer may make them happen
 * (a contract wallet decides while it is carried out, anybody may move the money away after the simulation), so they
 * are counted by payer, and altogether against a budget for each hour.
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

  /** By this process, since it started. */
  get totals(): { readonly reverts: number; readonly gasLost: bigint; readonly isClosed: boolean } {
    return { reverts: this.#reverts, gasLost: this.#gasLost, isClosed: this.#closed }
  }

  /** Wei, within the last hour, over all processes. */
  async lastHour(): Promise<bigint> {
    const since = this.#settings.now() - HOUR_MS
    return sumOf((await this.#losses()).filter(({ at }) => at > since))
  }

  async add({ payer, hash, gasCost }: Revert, budget: bigint): Promise<void> {
    const { ledger, network, now } = this.#settings
    this.#reverts += 1
    this.#gasLost += gasCost
    const fact = `${now()} ${gasCost} ${hash}`
    const until = now() + HOUR_MS
    await Promise.all([
      ledger.remember(this.#nameOf('payer', payer.toLowerCase()), fact, until),
      ledger.remember(this.#nameOf('all'), fact, until),
    ])
    this.#spent = undefined
    const lost = sumOf(await this.#losses())
    this.#report(
      `transaction ${hash} for payer ${payer} reverted and cost ${formatCoin(gasCost)} ${network.coin}; ${formatCoin(lost)} of at most ${formatCoin(budget)} ${network.coin} were lost in the last hour`,
    )
  }

  /** Whether nothing is sent for this payer now. Contract wallets may lose half the budget, so that keys can still pay. */
  async refuse(payer: Address, signedBy: 'key' | 'contract', budget: bigint): Promise<Refusal | undefined> {
    const { ledger, now } = this.#settings
    const [own, all] = await Promise.all([
      ledger.recall(this.#nameOf('payer', payer.toLowerCase()), now()).then(readLosses),
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

  #secondsUntilOver(loss: Loss | undefined): number {
    return Math.max(1, Math.ceil(((loss?.at ?? 0) + HOUR_MS - this.#settings.now()) / 1000))
  }

  #losses(): Promise<readonly Loss[]> {
    const { ledger, now } = this.#settings
    if (this.#spent === undefined || now() - this.#spent.at >= FRESH_MS)
      this.#spent = { at: now(), losses: ledger.recall(this.#nameOf('all'), now()).then(readLosses) }
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
